"""LLaVA: both stages of visual instruction tuning (Liu, section 3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pairwright.datasets.errors import UsageError
from pairwright.training.recipes.method import Method, PreparedMethod, rank_weighted_mean

if TYPE_CHECKING:
    from torch import nn

    from pairwright.training.loading.batches import ConversationBatch
    from pairwright.training.models.llava import LlavaOutput
    from pairwright.training.objectives.batch_embeddings import WeightedLoss
    from pairwright.training.objectives.distributed import Ranks
    from pairwright.training.recipes.schema import Recipe

_CONVERSATION_TOKENS = 2048


class LlavaMethod(Method):
    """A vision tower, a projection and a language model; the loss is on answers and their stop tokens."""

    kind: Literal["llava-align", "llava-instruct"]
    language: str = Field("", description="The language model, if --model is a CLIP; empty: --model is a LLaVA.")
    projection: Literal["linear", "mlp"] = "mlp"
    tiles: bool = Field(
        default=False, description="AnyRes: tiles of the image and the whole; kept if the model has it."
    )
    types: tuple[str, ...] = Field((), description="Conversation types; empty: all.")

    def prepare(self, recipe: Recipe, model: str) -> PreparedMethod:
        """Open a LLaVA, or join a CLIP's vision tower and a language model.

        Raises:
            UsageError: a language model is missing, or named although ``model`` is a LLaVA.
        """
        from pairwright.training.loading.conversations import ConversationCollator
        from pairwright.training.loading.tokenization import TextOptions
        from pairwright.training.models.llava import IMAGE_TOKEN, Llava, ProjectionSettings, tokenizer_path
        from pairwright.training.models.registry import model_kind
        from pairwright.training.models.trainable_parameters import train_only
        from pairwright.training.recipes.model_options import image_options

        saved = model_kind(model) == Llava.kind
        if saved == bool(self.language):
            raise UsageError(
                f"{model} is a LLaVA with its own language model: remove method.language."
                if saved
                else f"{model} is not a LLaVA: also pass --set method.language=PATH."
            )
        begin = ProjectionSettings(projection=self.projection)
        llava = Llava.load(model) if saved else Llava.begin(model, self.language, begin)
        if llava.connection.projection != self.projection:
            raise UsageError(f"{model} has a projection of kind {llava.connection.projection}: set method.projection.")
        if self.tiles:
            llava.enable_tiles()
        train_only(llava, self.kind)
        tokens = recipe.batches.max_tokens or _CONVERSATION_TOKENS
        return PreparedMethod(
            llava,
            ConversationCollator(IMAGE_TOKEN, self.types),
            TextOptions(tokenizer_path(model) if saved else self.language, tokens),
            image_options(llava, recipe),
        )

    def loss(self, model: nn.Module, batch: ConversationBatch, ranks: Ranks) -> WeightedLoss:
        """Return this rank's part of the mean over all counted tokens; rows are independent, so nothing is gathered."""
        from pairwright.training.models.llava import batch_grids
        from pairwright.training.objectives.batch_embeddings import WeightedLoss
        from pairwright.training.objectives.next_token import IGNORE_INDEX, next_token_loss

        out: LlavaOutput = model(
            batch.texts, batch.text_mask, batch.images, batch.labels, grids=batch_grids(batch.grids)
        )
        counted = out.targets != IGNORE_INDEX
        mean = next_token_loss(out.logits, out.targets, counted)
        return WeightedLoss(rank_weighted_mean(mean, counted[:, 1:].sum(), ranks), {})
