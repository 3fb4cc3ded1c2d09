"""FocalLens-MLLM: one embedding of image and instruction, the state of an added end token in a LLaVA (000, section 5.3.1).

The language model's end token is appended to image and instruction; its last state is trained to match the embedding of
the output by a frozen CLIP text tower. The dissertation does not specify the map from the state to CLIP's embedding size:
here it is linear. The temperature starts at CLIP's and is trained.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from pairwright.datasets.errors import UsageError
from pairwright.training.models.anyres import Grid
from pairwright.training.models.checkpoints import (
    copy_weights,
    read_added_weights,
    read_description,
    save_added_weights,
    start_saving,
)
from pairwright.training.models.clip import Clip, ClipOutput, clamp_scale
from pairwright.training.models.llava import IMAGE_TOKEN, Llava


class FocalLensMllm(nn.Module):
    """A LLaVA with an embedding head.

    Attributes:
        llava: after at least the alignment stage, as in the dissertation.
        target: the CLIP whose text tower embeds the outputs; frozen.
        end: id of the end token in the language model's vocabulary.
        head: from the language model's width to the target's.
        logit_scale: logarithm of 1 / temperature.
    """

    kind = "focallens-mllm"

    def __init__(self, llava: Llava, target: Clip, *, end: int | None = None) -> None:
        """Join both models; the head is initialized from torch's global generator.

        Args:
            llava: the model to be trained.
            target: the CLIP of the output embeddings.
            end: end token; by default the tokenizer's.

        Raises:
            UsageError: no end token.
        """
        super().__init__()
        if end is None:
            end = None if llava.tokenizer is None else llava.tokenizer.eos_token_id
        if end is None:
            raise UsageError("the language model's tokenizer has no end token: pass `end`")
        self.llava, self.target, self.end = llava, target, end
        self.head = nn.Linear(llava.width, target.dim).to(next(llava.language.parameters()))
        self.logit_scale = nn.Parameter(target.network.logit_scale.detach().clone())

    @classmethod
    def load(cls, name: str, *, dtype: torch.dtype = torch.float32) -> Self:
        """Load a folder that `save` wrote.

        Raises:
            StorageError: it is damaged.
            UsageError: ``name`` is not such a folder.
        """
        folder = Path(name)
        described = read_description(folder)
        if described.get("kind") != cls.kind:
            raise UsageError(f"{name} is not a saved {cls.kind}: create one with FocalLensMllm(llava, clip)")
        llava = Llava.load(str(folder / "llava"), dtype=dtype)
        model = cls(llava, Clip.load(str(folder / "target"), dtype=dtype), end=described["end"])
        copy_weights(model.added_weights(), read_added_weights(folder), folder)
        return model

    @property
    def scale(self) -> Tensor:
        """1 / temperature, 0-d, with its gradient."""
        return self.logit_scale.float().exp()

    def encode_images(
        self, images: Tensor, texts: Tensor, text_mask: Tensor, *, grids: Sequence[Grid] | None = None
    ) -> Tensor:
        """Return the unit embeddings, one per text, float32 (b, d).

        Args:
            images: one per image token, as for `Llava.join`.
            texts: instructions, int64 (b, t), without the end token, which is appended. If none has an image token, one is
                inserted at the start of each, after the start token if all have one.
            text_mask: bool (b, t), False for padding.
            grids: as for `Llava.join`.

        Raises:
            UsageError: the numbers of images and image tokens differ.
        """
        states = self.llava.last_states(*self._add_special_tokens(texts, text_mask), images, grids=grids)
        return functional.normalize(self.head(states.to(self.head.weight.dtype)).float(), dim=-1)

    def forward(
        self,
        images: Tensor,
        texts: Tensor,
        text_mask: Tensor,
        outputs: Tensor,
        *,
        grids: Sequence[Grid] | None = None,
    ) -> ClipOutput:
        """Embed a batch of triplets.

        Args:
            images: as for `encode_images`.
            texts: as for `encode_images`.
            text_mask: as for `encode_images`.
            outputs: token ids of the target's tokenizer, int64 (b, t).
            grids: as for `encode_images`.
        """
        with torch.no_grad():  # T of eq. 5.1 is frozen
            rows = self.target.encode_texts(outputs)
        return ClipOutput(self.encode_images(images, texts, text_mask, grids=grids), rows, self.scale)

    def limit_scale(self) -> None:
        """Clamp the scale as `Clip.limit_scale` does; call after each training step."""
        clamp_scale(self.logit_scale)

    def unused_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the output layer unless they are shared with the word embeddings."""
        language: Any = self.llava.language
        out, words = language.get_output_embeddings(), language.get_input_embeddings()
        shared = {id(one) for one in words.parameters()}
        return [] if out is None else [one for one in out.parameters() if id(one) not in shared]

    def added_weights(self) -> dict[str, Tensor]:
        """Return the weights of the head and the temperature."""
        return {"head.weight": self.head.weight, "head.bias": self.head.bias, "logit_scale": self.logit_scale}

    def save(self, folder: Path) -> None:
        """Write both models and the head."""
        start_saving(folder)
        self.llava.save(folder / "llava")
        self.target.save(folder / "target")
        save_added_weights(folder, self.added_weights(), {"kind": self.kind, "end": self.end})

    def _add_special_tokens(self, texts: Tensor, text_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Append the end token to each text, and insert an image token if no text has one."""
        # Padding within a text is harmless: `Llava.join` drops it.
        texts, text_mask = _insert_token(texts, text_mask.bool(), self.end, texts.shape[1])
        if (texts == IMAGE_TOKEN).any():
            return texts, text_mask
        begin = self.llava.language.config.get_text_config().bos_token_id
        return _insert_token(
            texts, text_mask, IMAGE_TOKEN, int((texts[:, 0] == begin).all()) if isinstance(begin, int) else 0
        )


def _insert_token(texts: Tensor, mask: Tensor, token: int, place: int) -> tuple[Tensor, Tensor]:
    """Insert ``token`` at position ``place`` of each text."""
    column, present = texts.new_full((len(texts), 1), token), mask.new_ones((len(mask), 1))
    return (
        torch.cat([texts[:, :place], column, texts[:, place:]], dim=1),
        torch.cat([mask[:, :place], present, mask[:, place:]], dim=1),
    )
