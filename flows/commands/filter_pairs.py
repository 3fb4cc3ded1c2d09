"""Filters over pairs: what ``pairwright filter`` runs.

Held in memory: the pairs as columns, some 0.3 kB each, with a verdict; for near-duplicates a sketch of each caption that
stays, for concepts the phrases of all captions.

Cheap filters come first, and each looks only at what the ones before left: shape of caption and image, near-duplicates,
CLIP score, and over all that is left, concept coverage.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.images.loading import UnusableImageError, decode_image, is_url, open_image
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.filters.pairs.concept_coverage import ConceptCoverage
from pairwright.filters.pairs.size_limits import SizeLimits, has_unknown_size
from pairwright.filters.scorers.image_groups import pair_group
from pairwright.flows.commands.generate import BATCH, total_for_progress
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.language.tagger import load_tagger

if TYPE_CHECKING:
    from PIL import Image

    from pairwright.filters.validation.clip_margin import ImageTextEncoder

_IMAGES = 64  # held at once


@dataclass(frozen=True)
class FilterRequest:
    """What to filter, and how; a filter whose number is 0 is left out.

    Attributes:
        read: the input.
        out: Parquet file of the pairs that are left.
        bounds: on single pairs.
        near_duplicates: Jaccard similarity from which a later caption goes.
        min_clip_score: cosine of image and caption.
        clip_model: folder, hub name or ``ARCH::pretrained``.
        device: of the model.
        concept_floor: captions that a noun phrase has to be in to count.
        concept_cap: captions taken for a noun phrase, at most.
        seed: of the choice by concepts.
    """

    read: ReadOptions
    out: Path
    bounds: SizeLimits = field(default_factory=SizeLimits)
    near_duplicates: float = 0.0
    min_clip_score: float = 0.0
    clip_model: str = ""
    device: str = ""
    concept_floor: int = 0
    concept_cap: int = 0
    seed: int = 0

    @property
    def rejected(self) -> Path:
        """Parquet file of the pairs that went, each with its reason."""
        return self.out.with_suffix(".rejected.parquet")

    def check(self) -> None:
        """Find what cannot work before anything is read.

        Raises:
            UsageError: no filter, a wrong ending, a number out of its range, or OUT is INPUT.
        """
        if self.out.suffix != ".parquet":
            raise UsageError(f"{self.out}: pairs are written as .parquet. Rename it.")
        if not 0 <= self.near_duplicates <= 1:
            raise UsageError(f"near_duplicates {self.near_duplicates}: a similarity is in 0-1, such as 0.8.")
        if bool(self.concept_floor) != bool(self.concept_cap):
            raise UsageError("concepts need both a floor and a cap, such as 3 and 100.")
        if self.clip_model and not self.min_clip_score:
            raise UsageError("a CLIP model does nothing without a least score, such as 0.25.")
        if self.device and not self.min_clip_score:
            raise UsageError("a device is for a CLIP model, and does nothing without a least score, such as 0.25.")
        wanted = (self.bounds != SizeLimits(), self.near_duplicates, self.min_clip_score, self.concept_cap)
        if not any(wanted):
            raise UsageError("no filter is asked for. Name one, such as --min-words 3.")
        given = self.read.input
        for out in (self.out, self.rejected):
            refuse_overwriting(out, given)


def run_filters(request: FilterRequest, watch: Callable[[str, int, int], None]) -> dict[str, Any]:
    """Filter pairs and write what is left, and what went.

    Args:
        request: what, and how.
        watch: told what is going on, how many are done, and of how many (0: unknown).

    Returns:
        ``in``, ``kept``, ``rejected`` (reason to number, of pairs and of rows that are none), ``broken_captions`` (of rows whose
        other captions were taken: no pairs, and in no other count), ``has_unknown_size`` (pairs that the bounds let pass, since nobody knows how
        large their image is),
        ``concepts`` where asked for, ``seconds``, ``out``, ``rejected_out``.

    Raises:
        UsageError: as `FilterRequest.check`.
        InputError: the input cannot be read.
    """
    started = time.perf_counter()
    request.check()
    total = total_for_progress(request.read) or 0
    watch("judging", 0, total)
    judge = _FilterPass(request)
    frames: list[pl.DataFrame] = []
    unread: list[Reject] = []
    for batch in read_pairs(replace(request.read, batch_size=BATCH)):
        judge.take(batch.pairs)
        frames.append(PAIRS.frame(batch.pairs))
        unread += batch.rejects
        watch("judging", len(judge.reasons), total)
    told = judge.finish()
    pairs = pl.concat([PAIRS.frame([]), *frames]).with_columns(pl.Series("reason", judge.reasons, dtype=pl.String))
    kept, gone = pairs.filter(reason="").drop("reason"), pairs.filter(pl.col("reason") != "")
    columns = gone.select("key", "reason", "image", "caption").iter_rows()
    rejects = [make_reject(f"pair {key}", reason, image, caption) for key, reason, image, caption in columns]
    PAIRS.write_frame(kept, request.out)
    REJECTS.write([*unread, *rejects], request.rejected)
    skipped = SkipCounts()
    skipped.add(unread)
    reasons = skipped.rows + Counter(one.reason for one in rejects)
    return {
        "in": len(pairs) + skipped.rows.total(),
        "kept": len(kept),
        "rejected": dict(sorted(reasons.items())),
        "broken_captions": skipped.as_json()["broken_captions"],
        **told,
        "seconds": round(time.perf_counter() - started, 2),
        "out": str(request.out),
        "rejected_out": str(request.rejected),
    }


class _FilterPass:
    """Reasons pair by pair, in the order of the input; an empty one keeps the pair."""

    def __init__(self, request: FilterRequest) -> None:
        self.reasons: list[str] = []
        self._request = request
        self._unknown = 0
        self._concepts = (
            ConceptCoverage(request.concept_floor, request.concept_cap, request.seed) if request.concept_cap else None
        )
        self._at: list[int] = []  # of the pairs whose concepts were taken
        self._tagger = load_tagger() if request.concept_cap else None
        self._encoder: ImageTextEncoder | None = None
        self._said = None
        if request.near_duplicates:
            from pairwright.filters.pairs.near_duplicates import NearDuplicates  # imports scipy: half a second

            self._said = NearDuplicates(request.near_duplicates)
        if request.min_clip_score:
            from pairwright.indexes.encoders.clip import ClipEncoder  # torch: seconds

            self._encoder = ClipEncoder(request.clip_model, device=request.device)

    def take(self, pairs: Sequence[Pair]) -> None:
        """Judge pairs one by one, as far as that goes."""
        start = len(self.reasons)
        bounds = self._request.bounds
        for pair in pairs:
            reason = bounds.violated_limit(pair)
            self._unknown += bounds.of_images and not reason and has_unknown_size(pair)
            if not reason and self._said and not self._said.is_new(pair.caption, pair_group(pair)):
                reason = "near_duplicate"
            self.reasons.append(reason)
        self._score(pairs, start)
        if self._concepts is not None and self._tagger is not None:
            left = [at for at in range(start, len(self.reasons)) if not self.reasons[at]]
            tokens = self._tagger.tag([pairs[at - start].caption for at in left])
            for at, words in zip(left, tokens, strict=True):
                self._concepts.add(pairs[at - start].key, words)
            self._at += left

    def _score(self, pairs: Sequence[Pair], start: int) -> None:
        if self._encoder is None:
            return
        left = [at for at in range(start, len(self.reasons)) if not self.reasons[at]]
        for first in range(0, len(left), _IMAGES):
            places = left[first : first + _IMAGES]
            opened: dict[int, Image.Image] = {}
            for at in places:
                image = _read_image_or_reason(pairs[at - start].image)
                if isinstance(image, str):
                    self.reasons[at] = image
                else:
                    opened[at] = image
            if opened:
                seen = self._encoder.encode_images(list(opened.values()))
                said = self._encoder.encode_texts([pairs[at - start].caption for at in opened])
                for at, score in zip(opened, np.einsum("nd,nd->n", seen, said), strict=True):
                    if score < self._request.min_clip_score:
                        self.reasons[at] = "low_clip_score"

    def finish(self) -> dict[str, Any]:
        """Judge what takes all pairs, and return what there is to tell."""
        told: dict[str, Any] = {"unknown_size": int(self._unknown)} if self._request.bounds.of_images else {}
        if self._concepts is not None:
            found = self._concepts.covered()
            for at, kept, rare in zip(self._at, found.kept, found.rare, strict=True):
                if not kept:
                    self.reasons[at] = "rare_concepts" if rare else "common_concepts"
            told["concepts"] = {"phrases": found.phrases, "counted": found.counted, "capped": found.capped}
        return told


def _read_image_or_reason(locator: str) -> "Image.Image | str":
    """Return the image, or why there is none to score."""
    if not locator:
        return "missing_image"
    if is_url(locator):
        return "not_fetched"
    try:
        return decode_image(open_image(locator), locator)
    except UnusableImageError as error:
        return error.reason
    except InputError:  # a tar that is none
        return "bad_image"
