"""Batches of a training step, one named tuple of tensors per kind of row, and the collators that make them.

Shape letters: b rows, n texts per row, t tokens, s target tokens, h and w pixels. Masks are False at padding. Rows keep
the order of their samples, and rows of one sample are adjacent. Workers send images as bytes, a quarter of the memory;
`move_batch` normalizes them on the training device.

`PairCollator`: a row is a sample with a fixed number of places for negatives and positives. Of more, each epoch draws
again: first one of every type (form and target of the edit), then the rest. Negatives may also be generated in
training, new ones for each caption and epoch, as in FSC-CLIP; those in the shards are then ignored.

`TripletCollator`: a row is a question-answer turn (FocalLens, section 5.1); all rows of a sample share a batch, so that
only the instruction distinguishes them. ``turns`` bounds their number, and each epoch draws again. A repeated turn of a
sample counts once: it would be its own negative. Several samples of one image (one per caption) are drawn
independently.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pairwright.datasets.errors import UsageError
from pairwright.datasets.rejects import Reject
from pairwright.datasets.rng import make_rng
from pairwright.training.loading.image_transforms import ImageOptions, PreparedImage
from pairwright.training.loading.shard_index import SampleJson, SampleSelection, StoredSample
from pairwright.training.loading.tokenization import TextOptions, encode, load_tokenizer, padding_id

NegativeMaker = Callable[..., Mapping[str, Sequence[str]]]
"""Returns negatives by type of a caption, the image's other captions and ``epoch``; the same in any process."""


class PairBatch(NamedTuple):
    """Images, captions and edited captions."""

    images: Tensor  # float32 (b, 3, h, w), normalized; uint8 as a worker sends them
    # int64 (b, n, t), token ids of each row's texts: its caption, places for hard negatives, places for hard positives
    texts: Tensor
    text_mask: Tensor  # bool (b, n, t)
    mask: Tensor  # bool (b, n), False where a row has no such text
    # bool (b, n), which texts to embed: those that there are, or all with texts of fixed length. On the host, so that no
    # step waits for the device to count them.
    embedded: npt.NDArray[np.bool_]
    negatives: int  # places for hard negatives, set by the recipe; may be 0
    keys: list[str]  # sample keys, b of them
    cut: int  # texts of this batch that were truncated
    skipped: Sequence[Reject] = ()  # unusable samples of this step, which are not in the batch


class TripletBatch(NamedTuple):
    """Images with an instruction and its answer each (FocalLens)."""

    # (m, 3, h, w), as in `PairBatch`, each image once; with tiles (AnyRes) all its parts, the whole first
    images: Tensor
    image_index: Tensor  # int64 (b,), the image of each row; with tiles the indices of all parts, row by row
    grids: Sequence[tuple[int, int]]  # rows and columns of the tiles, per row; empty without tiles
    instructions: Tensor  # int64 (b, t); ``instruction_mask`` is bool (b, t)
    instruction_mask: Tensor
    texts: Tensor  # int64 (b, s), the answers; ``text_mask`` is bool (b, s)
    text_mask: Tensor
    keys: list[str]  # sample keys, one per row
    cut: int  # as in `PairBatch`
    skipped: Sequence[Reject] = ()  # likewise


B = TypeVar("B", PairBatch, TripletBatch)
B_co = TypeVar("B_co", PairBatch, TripletBatch, covariant=True)


@dataclass(frozen=True, slots=True)
class CollationContext:
    """Text and image options, and the seed and epoch that random choices depend on."""

    texts: TextOptions
    images: ImageOptions
    seed: int
    epoch: int = 0


class Collator(Protocol[B_co]):
    """Collates samples to batches; frozen, picklable, and independent of files, workers and ranks."""

    @property
    def selection(self) -> SampleSelection:
        """Return which samples are used."""

    def collate(
        self, samples: Sequence[StoredSample], images: Sequence[PreparedImage], context: CollationContext
    ) -> B_co:
        """Return the batch of one or more samples and their images, in order."""


def move_batch(batch: B, device: torch.device, mean: tuple[float, ...], std: tuple[float, ...]) -> B:
    """Return a worker's batch on ``device``, images as float32 normalized by ``mean`` and ``std`` of channels in 0-1."""
    named = batch._asdict().items()
    moved: dict[str, Any] = {name: one.to(device, non_blocking=True) for name, one in named if isinstance(one, Tensor)}
    middle, spread = (_channels(values, device) for values in (mean, std))
    return batch._replace(**moved | {"images": moved["images"].float().sub_(middle).div_(spread)})


@lru_cache(maxsize=8)
def _channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Return values in 0-1 for bytes of each channel, (3, 1, 1); cached, as a copy to a device waits for it."""
    return 255 * torch.tensor(values, device=device).view(3, 1, 1)


@dataclass(frozen=True, slots=True)
class PairCollator:
    """Collator of pairs, one row per sample."""

    negatives: int = 0  # hard negatives per row
    positives: int = 0  # hard positives per row
    online: NegativeMaker | None = None  # generator of negatives; None: those of the shards

    def __post_init__(self) -> None:
        if min(self.negatives, self.positives) < 0 or (self.online and not self.negatives):
            raise UsageError(
                "pairs: negatives and positives must be at least 0; online negatives require negatives of at least 1."
            )

    @property
    def selection(self) -> SampleSelection:
        """Return the samples with image and caption, also those without edited texts, whose rows are masked."""
        edited = self.positives or (self.negatives and not self.online)
        members = frozenset({"image", "caption"})
        return SampleSelection(self._lacks if edited else None, required=False, members=members)

    def _lacks(self, body: SampleJson) -> str:
        """Return which of the used kinds of texts a sample lacks."""
        negatives = self.negatives and not self.online and not body.get("hard_negatives")
        positives = self.positives and not body.get("hard_positives")
        if negatives and positives:
            return "no_hard_texts"
        return "no_hard_negatives" if negatives else "no_hard_positives" if positives else ""

    def collate(
        self, samples: Sequence[StoredSample], images: Sequence[PreparedImage], context: CollationContext
    ) -> PairBatch:
        """Return the batch of these samples."""
        options = context.texts
        rows = [self._texts(sample, context) for sample in samples]
        counts = np.array([[len(texts) for texts in row] for row in rows])
        places = (1, self.negatives, self.positives)
        present = np.hstack([np.arange(most) < counts[:, [kind]] for kind, most in enumerate(places)])
        tokenizer, width = load_tokenizer(options.tokenizer), options.max_tokens if options.fixed else 0
        listed_texts = [text for row in rows for texts in row for text in texts]
        listed, listed_mask, cut = encode(listed_texts, tokenizer, options.max_tokens, width=width)
        mask = torch.from_numpy(present)
        texts = torch.full((*mask.shape, listed.shape[1]), padding_id(tokenizer), dtype=torch.int64)
        text_mask = torch.zeros(texts.shape, dtype=torch.bool)
        texts[mask], text_mask[mask] = listed, listed_mask
        return PairBatch(
            images=torch.from_numpy(np.concatenate([each.parts for each in images])),
            texts=texts,
            text_mask=text_mask,
            mask=mask,
            embedded=np.ones_like(present) if options.fixed else present,
            negatives=self.negatives,
            keys=[sample.key for sample in samples],
            cut=cut,
        )

    def _texts(self, sample: StoredSample, context: CollationContext) -> tuple[list[str], list[str], list[str]]:
        """Return the caption, hard negatives and hard positives of a sample."""
        wrong, right = (_group_by_type(sample.body.get(name, ())) for name in ("hard_negatives", "hard_positives"))
        if self.online is not None:
            others = sample.body.get("provenance", {}).get("captions", ())
            wrong = self.online(sample.caption, others, epoch=context.epoch)
        negatives = _draw_texts(wrong, self.negatives, sample.key, context)
        return [sample.caption], negatives, _draw_texts(right, self.positives, sample.key, context)


def _group_by_type(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[str]]:
    kinds: dict[str, list[str]] = {}
    for row in rows:
        kinds.setdefault(f"{row['form']}-{row['target']}", []).append(row["text"])
    return kinds


def _draw_texts(kinds: Mapping[str, Sequence[str]], places: int, key: str, context: CollationContext) -> list[str]:
    """Return up to ``places`` texts: one of each type, then a second of each, and so on, with random ties."""
    if not places:
        return []
    rng = make_rng(context.seed, context.epoch, "texts", key)
    ranked = []
    for kind in sorted(kinds):
        texts = rng.sample(kinds[kind], len(kinds[kind]))
        ranked += [(turn, rng.random(), text) for turn, text in enumerate(texts)]
    return [text for _, _, text in sorted(ranked)[:places]]


@dataclass(frozen=True, slots=True)
class TripletCollator:
    """Collator of triplets, one row per turn."""

    turns: int = 0  # maximum per sample in a batch; 0: all
    types: tuple[str, ...] = ()  # conversation types; empty: all
    # Tokenization of instructions for a language model (FocalLens-MLLM), without the end token, which the model
    # appends; None: as for answers
    instructions: TextOptions | None = None

    def __post_init__(self) -> None:
        if self.turns < 0:
            raise UsageError("triplets: turns must be at least 0 (0: all).")

    @property
    def selection(self) -> SampleSelection:
        """Return the samples with an image and a turn."""
        return SampleSelection(self._lacks, members=frozenset({"image"}))

    def _lacks(self, body: SampleJson) -> str:
        return "" if exchanges(body, self.types) else "no_triplets"

    def collate(
        self, samples: Sequence[StoredSample], images: Sequence[PreparedImage], context: CollationContext
    ) -> TripletBatch:
        """Return the batch of these samples."""
        drawn = [exchanges(sample.body, self.types) for sample in samples]
        for place, found in enumerate(drawn):
            if self.turns and len(found) > self.turns:
                rng = make_rng(context.seed, context.epoch, "turns", samples[place].key)
                drawn[place] = rng.sample(found, self.turns)
        rows = [(place, *exchange) for place, found in enumerate(drawn) for exchange in found]
        asked, said = self.instructions or context.texts, context.texts
        instructions, instruction_mask, cut_instructions = encode(
            [instruction for _, instruction, _ in rows],
            load_tokenizer(asked.tokenizer),
            asked.max_tokens,
            end=self.instructions is None,
        )
        answers = [answer for _, _, answer in rows]
        texts, text_mask, cut_answers = encode(answers, load_tokenizer(said.tokenizer), said.max_tokens)
        ends = np.cumsum([len(each.parts) for each in images])
        parts = [np.arange(end - len(each.parts), end) for each, end in zip(images, ends, strict=True)]
        grids = [images[place].grid for place, _, _ in rows]
        return TripletBatch(
            images=torch.from_numpy(np.concatenate([each.parts for each in images])),
            image_index=torch.from_numpy(np.concatenate([parts[place] for place, _, _ in rows])),
            grids=[(grid.rows, grid.columns) for grid in grids if grid],
            instructions=instructions,
            instruction_mask=instruction_mask,
            texts=texts,
            text_mask=text_mask,
            keys=[samples[place].key for place, _, _ in rows],
            cut=cut_instructions + cut_answers,
        )


def exchanges(body: SampleJson, types: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the distinct (instruction, answer) pairs of a sample's conversations, in order."""
    found: dict[tuple[str, str], None] = {}
    for conversation in select_conversations(body, types):
        question = ""
        for turn in conversation["turns"]:
            if turn["role"] == "assistant" and question:
                found[question, turn["text"]] = None
            question = turn["text"] if turn["role"] == "human" else ""
    return list(found)


def select_conversations(body: SampleJson, types: Sequence[str]) -> list[Any]:
    """Return a sample's conversations of these types (empty: all), in order."""
    return [row for row in body.get("conversations", ()) if not types or row["type"] in types]
