"""Distilling step-by-step: an encoder-decoder learns labels and, as a second task, rationales (Hsieh, chapter 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from pairwright.datasets.errors import UsageError
from pairwright.training.recipes.method import Method, PreparedMethod, rank_weighted_mean

if TYPE_CHECKING:
    from torch import Tensor, nn

    from pairwright.training.loading.batches import RationaleBatch
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.schema import Recipe

_STUDENT_TOKENS = 1024


class StepByStepMethod(Method):
    """An encoder-decoder writes labels and rationales."""

    kind: Literal["step-by-step"]
    objectives: Literal["multi-task", "single-task", "label"] = "multi-task"
    rationale_weight: float = Field(1.0, ge=0, description="lambda, eq. 2.3; for multi-task only.")

    @model_validator(mode="after")
    def _weight_of_a_task(self) -> Self:
        if self.objectives != "multi-task" and "rationale_weight" in self.model_fields_set:
            raise ValueError(f"`rationale_weight` is for multi-task, not for {self.objectives}. Remove it")
        return self

    def prepare(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open an encoder-decoder.

        Raises:
            UsageError: ``model`` is of another kind.
        """
        from pairwright.training.loading.image_transforms import ImageOptions
        from pairwright.training.loading.rationales import RationaleCollator
        from pairwright.training.loading.tokenization import TextOptions
        from pairwright.training.models.encoder_decoder import EncoderDecoder
        from pairwright.training.models.registry import model_kind
        from pairwright.training.models.trainable_parameters import train_only

        if (kind := model_kind(model)) != EncoderDecoder.kind:
            raise UsageError(f"{model} is a {kind}; this recipe requires an encoder-decoder such as T5.")
        student = EncoderDecoder.load(model)
        train_only(student, "step-by-step")
        texts = TextOptions(model, recipe.batches.max_tokens or _STUDENT_TOKENS)
        return PreparedMethod(student, RationaleCollator(self.objectives), texts, ImageOptions())

    def loss(self, model: nn.Module, batch: RationaleBatch, ranks: Ranks) -> WeightedLoss:
        """Return this rank's part of the mean over all examples; rows are independent, so nothing is gathered."""
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.next_token import IGNORE_INDEX
        from pairwright.training.objectives.step_by_step import WrittenTexts, written_loss

        logits: Tensor = model(batch.texts, batch.text_mask, batch.targets)
        counted = batch.targets != IGNORE_INDEX
        if self.objectives != "multi-task":
            mean = written_loss(WrittenTexts(logits, batch.targets, counted))
            return WeightedLoss(rank_weighted_mean(mean, counted.any(dim=1).sum(), ranks), {})
        parts = {}
        for name, rows in (("label", ~batch.rationale), ("rationale", batch.rationale)):
            tokens = counted & rows[:, None]
            parts[name] = rank_weighted_mean(
                written_loss(WrittenTexts(logits, batch.targets, tokens)), tokens.any(dim=1).sum(), ranks
            )
        return WeightedLoss(parts["label"] + self.rationale_weight * parts["rationale"], parts)

    def loss_parts(self) -> tuple[str, ...]:
        """Return the names of the loss's parts."""
        return ("label", "rationale") if self.objectives == "multi-task" else ()
