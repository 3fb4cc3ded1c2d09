"""FocalLens-MLLM: one embedding of image and instruction, the state of an added end token in a LLaVA (Hsieh, section 5.3.1).

The language model's end token is appended to image and instruction; its last state is trained to match the embedding of
the output by a frozen CLIP text tower. The dissertation does not specify the map from the state to CLIP's embedding size:
here it is linear. The temperature starts at CLIP's and is trained.

The LLaVA is transformers' own. With tiles (AnyRes, Liu, chapter 4) an image is the whole image and its tiles, whose features
take the place of one image's.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers import LlavaForConditionalGeneration

from pairwright.datasets.errors import UsageError
from pairwright.training.loading.image_transforms import ImageOptions
from pairwright.training.models.anyres import Grid, merge_features
from pairwright.training.models.checkpoints import (
    ADDED_FILE,
    copy_weights,
    load_pretrained,
    read_description,
    read_weights,
    save_added_weights,
    start_saving,
)
from pairwright.training.models.clip import Clip, ClipOutput, clamp_scale, read_pixel_settings
from pairwright.training.models.generative import ImageTextModel


class FocalLensMllm(nn.Module):
    """A LLaVA with an embedding head.

    Attributes:
        llava: after at least the alignment stage, as in the dissertation.
        processor: of the LLaVA; None for a model made from configs.
        target: the CLIP whose text tower embeds the outputs; frozen.
        pixels: how images are prepared for the LLaVA's vision tower; with tiles, also as the parts of AnyRes.
        end: id of the end token in the language model's vocabulary.
        head: from the language model's width to the target's.
        logit_scale: logarithm of 1 / temperature.
    """

    kind = "focallens-mllm"

    def __init__(
        self,
        llava: LlavaForConditionalGeneration,
        target: Clip,
        *,
        processor: Any = None,
        pixels: ImageOptions | None = None,
        end: int | None = None,
    ) -> None:
        """Join both models; the head is initialized from torch's global generator.

        ``pixels`` are by default CLIP's, of the vision tower's size; ``end`` is by default the tokenizer's end token.
        """
        super().__init__()
        if end is None:
            end = None if processor is None else processor.tokenizer.eos_token_id
        if end is None:
            raise UsageError("the language model's tokenizer has no end token: pass `end`")
        self.llava, self.target, self.end = llava, target, end
        self.processor = processor
        config = cast("Any", llava.config)
        self.pixels = pixels or ImageOptions(config.vision_config.image_size)
        self.head = nn.Linear(config.text_config.hidden_size, target.dim).to(next(llava.parameters()))
        self.logit_scale = nn.Parameter(target.network.logit_scale.detach().clone())

    @classmethod
    def begin(cls, name: str, target: Clip, *, tiles: bool = False) -> Self:
        """Join a LLaVA of transformers, by folder or name, and a target."""
        llava = cast("Any", load_pretrained(LlavaForConditionalGeneration, name))
        pixels = replace(read_pixel_settings(name, llava.config.vision_config.image_size), tiles=tiles)
        return cls(llava, target, processor=ImageTextModel.read_processor(name), pixels=pixels)

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a folder that `save` wrote; errors as of `clip.ExtendedClip.load`."""
        folder = Path(name)
        described = read_description(folder)
        if described.get("kind") != cls.kind:
            raise UsageError(f"{name} is not a saved {cls.kind}: create one with FocalLensMllm(llava, clip)")
        target = Clip.load(str(folder / "target"))
        model = cls.begin(str(folder / "llava"), target, tiles=described["tiles"])
        model.end = described["end"]
        copy_weights(model.added_weights(), read_weights(folder / ADDED_FILE), folder)
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
            images: float (b, 3, h, w), one per text; with ``grids`` all parts of each image (`anyres.split_image`).
            texts: instructions, int64 (b, t), without image and end token. The image is inserted at the start, after the
                start token if all have one, and the end token appended.
            text_mask: bool (b, t), False for padding.
            grids: one per image if images are in parts.
        """
        features = self._image_features(images, grids)
        if len(features) != len(texts):
            raise UsageError(f"{len(features)} images for {len(texts)} texts")
        rows = [
            self._row(ids[is_token], image)
            for ids, is_token, image in zip(texts, text_mask.bool(), features, strict=True)
        ]
        lengths = torch.tensor([len(row) for row in rows], device=texts.device)
        states = pad_sequence(rows, batch_first=True)
        mask = torch.arange(states.shape[1], device=texts.device) < lengths[:, None]
        inner = cast("Any", self.llava.model).language_model
        found = inner(inputs_embeds=states, attention_mask=mask.long(), use_cache=False).last_hidden_state
        last = found[torch.arange(len(rows), device=texts.device), lengths - 1]
        return functional.normalize(self.head(last.to(self.head.weight.dtype)).float(), dim=-1)

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

        ``outputs``: token ids of the target's tokenizer, int64 (b, t). Other arguments as of `encode_images`.
        """
        with torch.no_grad():  # T of eq. 5.1 is frozen
            rows = self.target.encode_texts(outputs)
        return ClipOutput(self.encode_images(images, texts, text_mask, grids=grids), rows, self.scale)

    def limit_scale(self) -> None:
        """Clamp the scale as `Clip.limit_scale` does; call after each training step."""
        clamp_scale(self.logit_scale)

    def added_weights(self) -> dict[str, Tensor]:
        """Return the weights of the head and the temperature."""
        return {"head.weight": self.head.weight, "head.bias": self.head.bias, "logit_scale": self.logit_scale}

    def save(self, folder: Path) -> None:
        """Write both models and the head."""
        start_saving(folder)
        ImageTextModel(self.llava, self.processor).save(folder / "llava")
        self.target.save(folder / "target")
        described = {"kind": self.kind, "end": self.end, "tiles": self.pixels.tiles}
        save_added_weights(folder, self.added_weights(), described)

    def _image_features(self, images: Tensor, grids: Sequence[Grid] | None) -> list[Tensor]:
        """Return the projected features of each image, (patches, width)."""
        found = list(cast("Any", self.llava.model).get_image_features(images, return_dict=True).pooler_output)
        if grids is None:
            return found
        sizes = [1 + grid.tiles for grid in grids]
        if sum(sizes) != len(found):
            raise UsageError(f"{len(found)} image parts, but the grids need {sum(sizes)}")
        parts = torch.split(torch.stack(found), sizes)
        return [merge_features(each, grid) for each, grid in zip(parts, grids, strict=True)]

    def _row(self, ids: Tensor, image: Tensor) -> Tensor:
        """Return the embedded start token, image, instruction and end token, (n, width)."""
        words = cast("Any", self.llava.get_input_embeddings())(torch.cat([ids, ids.new_tensor([self.end])]))
        begin = cast("Any", self.llava.config).text_config.bos_token_id
        first = int(len(ids) > 0 and bool(ids[0] == begin)) if isinstance(begin, int) else 0
        return torch.cat([words[:first], image.to(words.dtype), words[first:]])
