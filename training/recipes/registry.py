"""Which method a recipe means."""

from pairwright.training.recipes.contrastive import ContrastiveTraining
from pairwright.training.recipes.focallens import FocalLensClipTraining, FocalLensMllmTraining
from pairwright.training.recipes.generative import LlavaTraining, StepByStepTraining
from pairwright.training.recipes.method import Method
from pairwright.training.recipes.schema import (
    FocalLensClipMethod,
    FocalLensMllmMethod,
    LlavaMethod,
    Recipe,
    StepByStepMethod,
)


def method_for(recipe: Recipe) -> Method:
    """Return the method of a recipe."""
    if isinstance(recipe.method, FocalLensClipMethod):
        return FocalLensClipTraining()
    if isinstance(recipe.method, FocalLensMllmMethod):
        return FocalLensMllmTraining()
    if isinstance(recipe.method, LlavaMethod):
        return LlavaTraining()
    return StepByStepTraining() if isinstance(recipe.method, StepByStepMethod) else ContrastiveTraining()
