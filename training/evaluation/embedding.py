"""Unit rows of images and texts by a model under evaluation, and what was lost on the way.

Models that embed: CLIP and what is built on it. A FocalLens model reads an instruction beside the image; FocalLens-MLLM
has no embedding of an image without one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.errors import UsageError
from pairwright.training.evaluation.evaluated_models import OpenedModel
from pairwright.training.evaluation.images import ImageBatch, image_batches
from pairwright.training.loading.tokenization import TextOptions, encode, load_tokenizer, pad_rows, padding_id
from pairwright.training.models.clip import Clip, PixelSettings
from pairwright.training.models.focallens_clip import FocalLensClip
from pairwright.training.models.focallens_mllm import FocalLensMllm

EmbeddingRows = npt.NDArray[np.float32]
IMAGE_TEXT_KINDS = ("clip", "react-clip", "focallens-clip")
INSTRUCTED_KINDS = ("focallens-clip", "focallens-mllm")
_INSTRUCTION_TOKENS = 512  # of a language model, which sets no limit of its own that is reached


@dataclass
class Embedder:
    """Embeds for one subject.

    Attributes:
        subject: whose towers are used.
        batch: images or texts at once.
        cut: texts that were longer than the model reads.
    """

    subject: OpenedModel
    batch: int = 64
    cut: int = field(default=0, init=False)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.subject.model.parameters()).device

    @property
    def size(self) -> int:
        """Pixels of a side of the images that the model takes."""
        return self._pixels().size

    @property
    def context(self) -> int:
        """Tokens that its text tower reads, marks included."""
        return self._clip().context

    def images(self, images: Sequence[str], instruction: str = "") -> EmbeddingRows:
        """Return one unit row an image, float32 (n, d).

        Args:
            images: locators, n of them; each is read once however often it comes.
            instruction: read beside each image; a model that reads none gives the same rows with any.

        Raises:
            UsageError: a FocalLens-MLLM without an instruction.
            UnusableImage: an image does not decode.
        """
        places = {one: place for place, one in enumerate(dict.fromkeys(images))}
        asked = self._asked(instruction)
        with torch.inference_mode():
            blocks = [
                self._seen(shown, asked)
                for shown in image_batches(list(places), self._pixels(), self.batch, self.device, tiles=self._tiles())
            ]
        return np.concatenate(blocks)[[places[image] for image in images]]

    def texts(self, texts: Sequence[str]) -> EmbeddingRows:
        """Return one unit row a text, float32 (n, d); equal texts are embedded once, and counted once when cut."""
        clip = self._clip()
        options = TextOptions(self._text_folder(), clip.context)
        places = {one: place for place, one in enumerate(dict.fromkeys(texts))}
        distinct, blocks = list(places), []
        for start in range(0, len(distinct), self.batch):
            ids, cut = encode(distinct[start : start + self.batch], options)
            self.cut += cut
            with torch.inference_mode():
                blocks.append(_to_numpy(clip.encode_texts(pad_rows(ids, padding_id(options))[0].to(self.device))))
        return np.concatenate(blocks)[[places[text] for text in texts]]

    def _clip(self) -> Clip:
        model = self.subject.model
        clip = model.target if isinstance(model, FocalLensMllm) else model
        assert isinstance(clip, Clip)  # tasks.py lets no other kind come here
        return clip

    def _pixels(self) -> PixelSettings:
        model = self.subject.model
        return model.llava.pixels if isinstance(model, FocalLensMllm) else self._clip().pixels

    def _tiles(self) -> bool:
        model = self.subject.model
        return isinstance(model, FocalLensMllm) and model.llava.connection.tiles

    def _text_folder(self) -> str:
        folder = self.subject.named.folder
        return f"{folder}/target" if isinstance(self.subject.model, FocalLensMllm) else folder

    def _asked(self, instruction: str) -> Tensor | None:
        """Return the instruction's tokens, int64 (1, t); None where there is none or the model reads none."""
        model = self.subject.model
        if isinstance(model, FocalLensMllm):
            if not instruction:
                raise UsageError(f"{self.subject.named.name} embeds an image only under an instruction: give one.")
            return self._for_language(instruction)
        if not instruction or not isinstance(model, FocalLensClip):
            return None
        options = TextOptions(self._text_folder(), model.context)
        ids, cut = encode([instruction], options)
        self.cut += cut
        return torch.tensor(ids, device=self.device)

    def _for_language(self, instruction: str) -> Tensor:
        options = TextOptions(f"{self.subject.named.folder}/llava/language", _INSTRUCTION_TOKENS)
        (ids,), cut = encode([instruction], options)
        self.cut += cut
        end = load_tokenizer(options.tokenizer).eos_token_id  # the model puts it there itself
        return torch.tensor([ids[:-1] if ids and ids[-1] == end else ids], device=self.device)

    def _seen(self, shown: ImageBatch, asked: Tensor | None) -> EmbeddingRows:
        model = self.subject.model
        if asked is None:
            return _to_numpy(self._clip().encode_images(shown.pixels))
        each = asked.expand(len(shown), -1)
        if isinstance(model, FocalLensMllm):
            said = torch.ones_like(each, dtype=torch.bool)
            return _to_numpy(model.encode_images(shown.pixels, each, said, grids=shown.grids))
        assert isinstance(model, FocalLensClip)
        return _to_numpy(model.encode_images(shown.pixels, each))


def _to_numpy(rows: Tensor) -> EmbeddingRows:
    found: EmbeddingRows = rows.float().cpu().numpy()
    return found
