"""Unit embeddings of images and texts by an evaluated model, with a count of truncated texts.

For CLIP and models built on it. A FocalLens model reads an instruction with each image; FocalLens-MLLM requires one. Images
are decoded by several threads, one batch at a time.
"""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.images.loading import UnusableImageError, decode_image
from pairwright.datasets.progress import track
from pairwright.filters.evaluation.crops import cropped_size, open_cropped
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.training.evaluation.evaluated_models import ENCODER_KIND, EvaluatedModel
from pairwright.training.loading.image_transforms import ImageOptions, PreparedImage, load_parts
from pairwright.training.loading.tokenization import encode, load_tokenizer
from pairwright.training.models.anyres import Grid
from pairwright.training.models.clip import Clip
from pairwright.training.models.focallens_mllm import FocalLensMllm

EmbeddingRows = npt.NDArray[np.float32]
IMAGE_TEXT_KINDS = ("clip", "react-clip", "focallens-clip", ENCODER_KIND)
INSTRUCTED_KINDS = ("focallens-clip", "focallens-mllm")
_INSTRUCTION_TOKENS = 512  # far below a language model's own limit
_THREADS = 4


def image_sizes(images: Sequence[str]) -> dict[str, int]:
    """Return the shorter side in pixels of each distinct image by locator; InputError on unreadable images."""
    sides: dict[str, int] = {}
    errors: list[UnusableImageError] = []
    wanted = dict.fromkeys(images)
    for image in wanted:
        try:
            sides[image] = min(cropped_size(image))
        except UnusableImageError as error:
            errors.append(error)
    if errors:
        raise InputError(
            f"{len(errors):,} of {len(wanted):,} images are not readable; the first {errors[0].what}",
            where=errors[0].where,
            fix="Set their folder with --images, or remove their rows.",
        )
    return sides


@dataclass
class Embedder:
    """Embeds images and texts with one model."""

    subject: EvaluatedModel  # opened
    batch: int = 64  # images or texts per batch
    cut: int = field(default=0, init=False)  # truncated texts so far

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self._clip().parameters()).device

    @property
    def size(self) -> int:
        """Image side in pixels; 0 for a model that reads images in their own shape."""
        return self._encoder.image_size if self._encoder is not None else self._pixels().size

    @property
    def context(self) -> int:
        """Maximum tokens of the text tower, including start and end token."""
        return self._encoder.context if self._encoder is not None else self._clip().context

    def images(self, images: Sequence[str], instruction: str = "") -> EmbeddingRows:
        """Return the unit embeddings of images, float32 (n, d).

        Each distinct locator is read once. Models without instructions ignore ``instruction``.
        """
        places = {one: place for place, one in enumerate(dict.fromkeys(images))}
        distinct, blocks = list(places), list[EmbeddingRows]()
        if (encoder := self._encoder) is not None:
            for start in track(range(0, len(distinct), self.batch), "embedding images", unit="batches"):
                opened = [decode_image(open_cropped(each), each) for each in distinct[start : start + self.batch]]
                blocks.append(encoder.encode_images(opened))
        else:
            instruction_ids = self._instruction_tokens(instruction)
            for shown, grids in image_batches(distinct, self._pixels(), self.batch, self.device):
                blocks.append(self._embed_batch(shown, grids, instruction_ids))
        return np.concatenate(blocks)[[places[image] for image in images]]

    def texts(self, texts: Sequence[str]) -> EmbeddingRows:
        """Return the unit embeddings of texts, float32 (n, d); each distinct text is embedded and counted once."""
        places = {one: place for place, one in enumerate(dict.fromkeys(texts))}
        if (encoder := self._encoder) is not None:
            before = encoder.truncated
            rows = encoder.encode_texts(list(places))
            self.cut += encoder.truncated - before
            return rows[[places[text] for text in texts]]
        clip = self._clip()
        distinct, blocks = list(places), []
        for start in range(0, len(distinct), self.batch):
            ids, _, cut = encode(distinct[start : start + self.batch], clip.tokenizer, clip.context)
            self.cut += cut
            with torch.inference_mode():
                blocks.append(_to_numpy(clip.encode_texts(ids.to(self.device))))
        return np.concatenate(blocks)[[places[text] for text in texts]]

    @property
    def _encoder(self) -> ClipEncoder | None:
        return self.subject.model if isinstance(self.subject.model, ClipEncoder) else None

    def _clip(self) -> Clip:
        model = self.subject.model
        clip = model.target if isinstance(model, FocalLensMllm) else model
        assert isinstance(clip, Clip)  # checked by tasks.py
        return clip

    def _pixels(self) -> ImageOptions:
        model = self.subject.model
        return model.pixels if isinstance(model, FocalLensMllm) else self._clip().pixels

    def _instruction_tokens(self, instruction: str) -> Tensor | None:
        """Return the instruction's tokens, int64 (1, t); None without one or if the model ignores it."""
        subject = self.subject
        if isinstance(subject.model, FocalLensMllm):
            if not instruction:
                raise UsageError(f"{subject.name} requires an instruction to embed an image.")
            tokenizer = load_tokenizer(f"{subject.folder}/llava")
            ids, _, cut = encode([instruction], tokenizer, _INSTRUCTION_TOKENS, end=False)
        elif instruction and subject.kind in INSTRUCTED_KINDS:
            ids, _, cut = encode([instruction], self._clip().tokenizer, self.context)
        else:
            return None
        self.cut += cut
        return ids.to(self.device)

    @torch.inference_mode()
    def _embed_batch(self, shown: Tensor, grids: list[Grid], instruction_ids: Tensor | None) -> EmbeddingRows:
        each = None if instruction_ids is None else instruction_ids.expand(len(grids or shown), -1)
        if isinstance(self.subject.model, FocalLensMllm):
            assert each is not None  # checked by `_instruction_tokens`
            mask = torch.ones_like(each, dtype=torch.bool)
            return _to_numpy(self.subject.model.encode_images(shown, each, mask, grids=grids or None))
        return _to_numpy(self._clip().encode_images(shown, each))


def image_batches(
    images: Sequence[str], options: ImageOptions, size: int, device: torch.device
) -> Iterator[tuple[Tensor, list[Grid]]]:
    """Yield images by locator in order, ``size`` per batch: float32 (n, 3, side, side), normalized.

    With tiles these are all parts, one image after the other, and the grid of each image follows; else no grids.
    """
    middle, spread = (torch.tensor(each, device=device)[:, None, None] for each in (options.mean, options.std))

    def load(image: str) -> PreparedImage:
        return load_parts(open_cropped(image), options, random.Random(0), image)  # no crops: nothing is drawn

    with ThreadPoolExecutor(_THREADS) as threads:
        for start in track(range(0, len(images), size), "embedding images", unit="batches"):
            found = list(threads.map(load, images[start : start + size]))
            raw = torch.from_numpy(np.concatenate([each.parts for each in found])).to(device)
            yield (raw.float() / 255 - middle) / spread, [each.grid for each in found if each.grid]


def _to_numpy(rows: Tensor) -> EmbeddingRows:
    found: EmbeddingRows = rows.float().cpu().numpy()
    return found
