"""Which method a recipe means."""

from pairwright.training.methods.contrastive import Contrastive
from pairwright.training.methods.focallens import FocalLens, FocalLensByLanguage
from pairwright.training.methods.method import Method
from pairwright.training.methods.written import StepByStep, Talking
from pairwright.training.recipe import FocalLensClipMethod, FocalLensMllmMethod, LlavaMethod, Recipe, StepByStepMethod


def method_of(recipe: Recipe) -> Method:
    """Return the method of a recipe."""
    if isinstance(recipe.method, FocalLensClipMethod):
        return FocalLens()
    if isinstance(recipe.method, FocalLensMllmMethod):
        return FocalLensByLanguage()
    if isinstance(recipe.method, LlavaMethod):
        return Talking()
    return StepByStep() if isinstance(recipe.method, StepByStepMethod) else Contrastive()
