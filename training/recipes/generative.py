"""Methods whose models write: LLaVA's two stages, and the student of Distilling step-by-step.

Rows do not depend on each other, so nothing is gathered: each rank's mean is weighted by what it counts.
"""

from typing import cast

from torch import Tensor, nn

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.batches import IGNORE_INDEX, ConversationBatch, RationaleBatch
from pairwright.training.loading.conversations import ConversationCollator
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.loading.rationales import RationaleCollator
from pairwright.training.loading.tokenization import TextOptions
from pairwright.training.models.encoder_decoder import EncoderDecoder
from pairwright.training.models.llava import (
    IMAGE_TOKEN,
    Llava,
    LlavaOutput,
    ProjectionSettings,
    batch_grids,
    tokenizer_path,
)
from pairwright.training.models.registry import model_kind
from pairwright.training.models.trainable_parameters import train_only
from pairwright.training.objectives.batch_embeddings import WeightedLoss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.next_token import next_token_loss
from pairwright.training.objectives.step_by_step import WrittenTexts, written_loss
from pairwright.training.recipes.contrastive import image_options
from pairwright.training.recipes.method import PreparedMethod, rank_weighted_mean
from pairwright.training.recipes.schema import LlavaMethod, Recipe, StepByStepMethod

_CONVERSATION_TOKENS, _STUDENT_TOKENS = 2048, 1024


class LlavaTraining:
    """LLaVA: the loss is on answers and the stop marks behind them."""

    def ready(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a LLaVA, or join a CLIP's vision tower and a language model.

        Raises:
            UsageError: ``model`` is a LLaVA and a language model is named as well, or neither.
        """
        method = cast("LlavaMethod", recipe.method)
        saved = model_kind(model) == Llava.kind
        if saved == bool(method.language):
            raise UsageError(
                f"{model} is a LLaVA and has its language model: leave out method.language."
                if saved
                else f"{model} is no LLaVA: name a language model too, --set method.language=PATH."
            )
        begin = ProjectionSettings(projection=method.projection)
        llava = Llava.load(model) if saved else Llava.begin(model, method.language, begin)
        if llava.connection.projection != method.projection:
            raise UsageError(f"{model} has a projection of kind {llava.connection.projection}: set method.projection.")
        if method.tiles:
            llava.show_tiles()
        train_only(llava, method.kind)
        return PreparedMethod(
            llava,
            ConversationCollator(IMAGE_TOKEN, method.types),
            TextOptions(
                tokenizer_path(model) if saved else method.language, recipe.batches.max_tokens or _CONVERSATION_TOKENS
            ),
            image_options(llava, recipe),
        )

    def loss(self, recipe: Recipe, model: nn.Module, batch: ConversationBatch, ranks: Ranks) -> WeightedLoss:  # noqa: ARG002 - as every method
        """Return this rank's part of the mean over all counted tokens."""
        out: LlavaOutput = model(
            batch.texts, batch.text_mask, batch.images, batch.labels, grids=batch_grids(batch.grids)
        )
        counted = out.targets != IGNORE_INDEX
        mean = next_token_loss(out.logits, out.targets, counted)
        return WeightedLoss(rank_weighted_mean(mean, counted[:, 1:].sum(), ranks), {})

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model


class StepByStepTraining:
    """A student that writes labels, and rationales as a second task."""

    def ready(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open an encoder-decoder.

        Raises:
            UsageError: ``model`` is none.
        """
        method = cast("StepByStepMethod", recipe.method)
        if (kind := model_kind(model)) != EncoderDecoder.kind:
            raise UsageError(f"{model} is a {kind}; this recipe begins with an encoder-decoder such as T5.")
        student = EncoderDecoder.load(model)
        train_only(student, "step-by-step")
        texts = TextOptions(model, recipe.batches.max_tokens or _STUDENT_TOKENS)
        return PreparedMethod(student, RationaleCollator(method.objectives), texts, ImageOptions())

    def loss(self, recipe: Recipe, model: nn.Module, batch: RationaleBatch, ranks: Ranks) -> WeightedLoss:
        """Return this rank's part of the mean over all examples."""
        method = cast("StepByStepMethod", recipe.method)
        logits: Tensor = model(batch.texts, batch.text_mask, batch.targets)
        counted = batch.targets != IGNORE_INDEX
        if method.objectives != "multi-task":
            mean = written_loss(WrittenTexts(logits, batch.targets, counted))
            return WeightedLoss(rank_weighted_mean(mean, counted.any(dim=1).sum(), ranks), {})
        parts = {}
        for name, mine in (("label", ~batch.rationale), ("rationale", batch.rationale)):
            told = counted & mine[:, None]
            parts[name] = rank_weighted_mean(
                written_loss(WrittenTexts(logits, batch.targets, told)), told.any(dim=1).sum(), ranks
            )
        return WeightedLoss(parts["label"] + method.rationale_weight * parts["rationale"], parts)

    def finished(self, model: nn.Module) -> nn.Module:
        """Return the model as it is."""
        return model
