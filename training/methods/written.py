"""Methods whose models write: LLaVA's two stages, and the student of Distilling step-by-step.

Rows do not depend on each other, so nothing is gathered: each rank's mean is weighted by what it counts.
"""

from typing import cast

from torch import Tensor, nn

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.batches import IGNORED, StudentBatch, TalkBatch
from pairwright.training.loading.images import ImageOptions
from pairwright.training.loading.students import Students
from pairwright.training.loading.talks import Talks
from pairwright.training.loading.texts import TextOptions
from pairwright.training.methods.contrastive import images_for
from pairwright.training.methods.method import Ready, share
from pairwright.training.models.llava import IMAGE, Connection, Llava, Predicted, grids_of, tokenizer_of
from pairwright.training.models.opening import kind_of
from pairwright.training.models.rationales import Student
from pairwright.training.models.trained import train_only
from pairwright.training.objectives.embedded import Total
from pairwright.training.objectives.next_token import next_token_loss
from pairwright.training.objectives.rationales import Written, written_loss
from pairwright.training.ranks import Ranks
from pairwright.training.recipe import LlavaMethod, Recipe, StepByStepMethod

_TALK_TOKENS, _STUDENT_TOKENS = 2048, 1024


class Talking:
    """LLaVA: the loss is on answers and the stop marks behind them."""

    def ready(self, recipe: Recipe, model: str) -> Ready:
        """Open a LLaVA, or join a CLIP's vision tower and a language model.

        Raises:
            UsageError: ``model`` is a LLaVA and a language model is named as well, or neither.
        """
        method = cast("LlavaMethod", recipe.method)
        saved = kind_of(model) == Llava.kind
        if saved == bool(method.language):
            raise UsageError(
                f"{model} is a LLaVA and has its language model: leave out method.language."
                if saved
                else f"{model} is no LLaVA: name a language model too, --set method.language=PATH."
            )
        begin = Connection(projection=method.projection)
        llava = Llava.load(model) if saved else Llava.begin(model, method.language, begin)
        if llava.connection.projection != method.projection:
            raise UsageError(f"{model} has a projection of kind {llava.connection.projection}: set method.projection.")
        if method.tiles:
            llava.show_tiles()
        train_only(llava, method.kind)
        return Ready(
            llava,
            Talks(IMAGE, method.types),
            TextOptions(tokenizer_of(model) if saved else method.language, recipe.batches.max_tokens or _TALK_TOKENS),
            images_for(llava, recipe),
        )

    def loss(self, recipe: Recipe, model: nn.Module, batch: TalkBatch, ranks: Ranks) -> Total:  # noqa: ARG002 - as every method
        """Return this rank's part of the mean over all counted tokens."""
        out: Predicted = model(batch.texts, batch.text_mask, batch.images, batch.labels, grids=grids_of(batch.grids))
        counted = out.targets != IGNORED
        mean = next_token_loss(out.logits, out.targets, counted)
        return Total(share(mean, counted[:, 1:].sum(), ranks), {})

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model


class StepByStep:
    """A student that writes labels, and rationales as a second task."""

    def ready(self, recipe: Recipe, model: str) -> Ready:
        """Open an encoder-decoder.

        Raises:
            UsageError: ``model`` is none.
        """
        method = cast("StepByStepMethod", recipe.method)
        if (kind := kind_of(model)) != Student.kind:
            raise UsageError(f"{model} is a {kind}; this recipe begins with an encoder-decoder such as T5.")
        student = Student.load(model)
        train_only(student, "step-by-step")
        texts = TextOptions(model, recipe.batches.max_tokens or _STUDENT_TOKENS)
        return Ready(student, Students(method.objectives), texts, ImageOptions())

    def loss(self, recipe: Recipe, model: nn.Module, batch: StudentBatch, ranks: Ranks) -> Total:
        """Return this rank's part of the mean over all examples."""
        method = cast("StepByStepMethod", recipe.method)
        logits: Tensor = model(batch.texts, batch.text_mask, batch.targets)
        counted = batch.targets != IGNORED
        if method.objectives != "multi-task":
            mean = written_loss(Written(logits, batch.targets, counted))
            return Total(share(mean, counted.any(dim=1).sum(), ranks), {})
        parts = {}
        for name, mine in (("label", ~batch.rationale), ("rationale", batch.rationale)):
            told = counted & mine[:, None]
            parts[name] = share(written_loss(Written(logits, batch.targets, told)), told.any(dim=1).sum(), ranks)
        return Total(parts["label"] + method.rationale_weight * parts["rationale"], parts)

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model
