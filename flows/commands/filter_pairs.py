"""Filters over pairs (``pairwright filter``).

Cheap filters come first, and each judges only the pairs that the earlier ones keep: sizes of caption and image,
language and near-duplicates of captions, copies of evaluation images, near-duplicate images by hash and then by
embedding, CLIP score, and at last, over the whole set, concept coverage.

Memory: the pairs as columns, about 0.3 kB each; for near-duplicates a sketch of each kept caption, a hash or an
embedding of each kept image, for concepts the phrases of all captions.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import BROKEN_PARTS, SkipCounts
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import COPY_OF_EVALUATION_IMAGE, NEAR_DUPLICATE_IMAGE, Reject, make_reject
from pairwright.datasets.suggestions import require_known
from pairwright.filters.pairs.concept_coverage import ConceptCoverage
from pairwright.filters.pairs.near_duplicate_embeddings import SimilarImages, read_image_or_reason
from pairwright.filters.pairs.near_duplicate_images import NearDuplicateImages
from pairwright.filters.pairs.size_limits import SizeLimits, has_unknown_size
from pairwright.filters.scorers.image_groups import pair_group
from pairwright.flows.commands.pair_inputs import BATCH, total_for_progress
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.language.identification import known_languages, other_language
from pairwright.generators.language.tagger import load_tagger
from pairwright.indexes.image_copies.known_images import NO_IMAGES, hash_images
from pairwright.indexes.image_copies.perceptual_hash import COPY_DISTANCE, HASH_BITS
from pairwright.indexes.retrieval.exclusion import read_exclusions

if TYPE_CHECKING:
    from PIL import Image

    from pairwright.filters.validation.clip_margin import ImageTextEncoder
    from pairwright.indexes.encoders.protocols import Vectors

_IMAGES = 64  # in memory at a time


@dataclass(frozen=True)
class FilterRequest:
    """Filters and files; a filter with number 0 is off.

    Attributes:
        read: the input.
        out: Parquet file of the kept pairs.
        bounds: limits on single pairs.
        language: of the captions, an ISO 639 code such as "en"; empty for any.
        near_duplicates: Jaccard similarity from which the later caption is rejected.
        exclude_images: evaluation images (folders, or pairs) of which no copy is kept.
        near_duplicate_images: bits of the perceptual hash up to which the later image is rejected.
        image_similarity: cosine of embeddings from which the later image is rejected, and a copy of an evaluation image.
        min_clip_score: minimal cosine of image and caption.
        clip_model: folder, hub name or ``ARCH::pretrained``.
        device: of the model.
        concept_floor: minimal number of captions of a noun phrase.
        concept_cap: maximal number of captions per noun phrase.
        seed: of the sampling by concepts.
    """

    read: ReadOptions
    out: Path
    bounds: SizeLimits = field(default_factory=SizeLimits)
    language: str = ""
    near_duplicates: float = 0.0
    exclude_images: tuple[str, ...] = ()
    near_duplicate_images: int = 0
    image_similarity: float = 0.0
    min_clip_score: float = 0.0
    clip_model: str = ""
    device: str = ""
    concept_floor: int = 0
    concept_cap: int = 0
    seed: int = 0

    @property
    def uses_model(self) -> bool:
        """Whether a filter sees images through a model."""
        return bool(self.min_clip_score or self.image_similarity)

    @property
    def rejected(self) -> Path:
        """Parquet file of the rejected pairs, each with its reason."""
        return self.out.with_suffix(".rejected.parquet")

    def check(self) -> None:
        """Check the request before anything is read.

        Raises:
            UsageError: without a filter, for a wrong extension, a number out of range, or an output that is the input.
        """
        if self.out.suffix != ".parquet":
            raise UsageError(f"{self.out}: pairs are written as .parquet. Change the extension.")
        if self.language:
            require_known("no such language:", [self.language], sorted(known_languages()))
        if not 0 <= self.near_duplicates <= 1:
            raise UsageError(f"near_duplicates {self.near_duplicates}: a similarity is from 0 to 1, such as 0.8.")
        self._check_image_filters()
        if bool(self.concept_floor) != bool(self.concept_cap):
            raise UsageError("concepts require both a floor and a cap, such as 3 and 100.")
        of_images = (self.exclude_images, self.near_duplicate_images, self.uses_model)
        of_captions = (self.language, self.near_duplicates, self.concept_cap)
        if not any((self.bounds != SizeLimits(), *of_captions, *of_images, self.read.where)):
            raise UsageError("no filter given. Add one, such as --min-words 3.")
        for out in (self.out, self.rejected):
            refuse_overwriting(out, self.read.input)

    def _check_image_filters(self) -> None:
        if not 0 <= self.near_duplicate_images < HASH_BITS // 4:
            raise UsageError(
                f"near_duplicate_images {self.near_duplicate_images}: give the bits of {HASH_BITS} that may differ, from 1 "
                f"to {HASH_BITS // 4 - 1}, such as {COPY_DISTANCE}; unrelated images differ in more."
            )
        if not 0 <= self.image_similarity <= 1:
            raise UsageError(f"image_similarity {self.image_similarity}: a cosine is from 0 to 1, such as 0.95.")
        if self.clip_model and not self.uses_model:
            raise UsageError("a CLIP model requires a minimal score, such as 0.25, or a similarity of images.")
        if self.device and not self.uses_model:
            raise UsageError("a device is for a CLIP model: it requires a minimal score or a similarity of images.")


def run_filters(request: FilterRequest, watch: Callable[[str, int, int], None]) -> dict[str, Any]:
    """Filter pairs; write the kept and the rejected ones.

    Args:
        request: filters and files.
        watch: receives the current step, the number done, and the total (0 = unknown).

    Returns:
        ``in``, ``kept``, ``rejected`` (pairs and invalid rows by reason), `BROKEN_PARTS` (of rows that are
        pairs), ``featureless`` and ``uncompared`` (pairs that pass the comparison of images since theirs has no
        perceptual hash or cannot be read), ``unknown_size`` (pairs that pass the limits since the size of their image is unknown), ``concepts``
        if requested, ``seconds``, ``out``, ``rejected_out``.

    Raises:
        UsageError: as `FilterRequest.check`.
        InputError: when the input is not readable.
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
    facts = judge.finish()
    pairs = pl.concat([PAIRS.frame([]), *frames]).with_columns(pl.Series("reason", judge.reasons, dtype=pl.String))
    kept, removed = pairs.filter(reason="").drop("reason"), pairs.filter(pl.col("reason") != "")
    columns = removed.select("key", "reason", "image", "caption").iter_rows()
    rejects = [
        make_reject(f"pair {key}", reason, judge.copies.get(key, image), caption)
        for key, reason, image, caption in columns
    ]
    PAIRS.write_frame(kept, request.out)
    REJECTS.write([*unread, *rejects], request.rejected)
    skipped = SkipCounts()
    skipped.add(unread)
    reasons = skipped.rows + Counter(one.reason for one in rejects)
    return {
        "in": len(pairs) + skipped.rows.total(),
        "kept": len(kept),
        "rejected": dict(sorted(reasons.items())),
        **{name: skipped.as_json()[name] for name in BROKEN_PARTS},
        **facts,
        "seconds": round(time.perf_counter() - started, 2),
        "out": str(request.out),
        "rejected_out": str(request.rejected),
    }


class _FilterPass:
    """Filters applied to all pairs of the input in order.

    Attributes:
        reasons: the reason to reject each pair; empty for a kept pair.
        copies: what the image of a rejected pair is a copy of, by key.
    """

    def __init__(self, request: FilterRequest) -> None:
        self.reasons: list[str] = []
        self.copies: dict[str, str] = {}
        self._request = request
        self._unknown = 0
        self._image_outcomes = Counter[str]()
        self._excluded = read_exclusions((), images=request.exclude_images)
        self._images = NearDuplicateImages(request.near_duplicate_images) if request.near_duplicate_images else None
        self._concepts = (
            ConceptCoverage(request.concept_floor, request.concept_cap, request.seed) if request.concept_cap else None
        )
        self._at: list[int] = []  # positions of the pairs in the concept counts
        self._tagger = load_tagger() if request.concept_cap else None
        self._encoder: ImageTextEncoder | None = None
        self._captions = None
        if request.near_duplicates:
            from pairwright.filters.pairs.near_duplicate_captions import NearDuplicates  # slow to import

            self._captions = NearDuplicates(request.near_duplicates)
        self._similar = SimilarImages(request.image_similarity) if request.image_similarity else None
        if request.uses_model:
            from pairwright.indexes.encoders.clip import ClipEncoder  # slow to import

            self._encoder = ClipEncoder(request.clip_model, device=request.device)
            if self._similar is not None and self._excluded is not None:
                self._similar.add_known(self._excluded.images.names, self._encoder)

    def take(self, pairs: Sequence[Pair]) -> None:
        """Apply the filters on single pairs."""
        start = len(self.reasons)
        bounds = self._request.bounds
        for pair in pairs:
            reason = bounds.violated_limit(pair)
            self._unknown += bounds.of_images and not reason and has_unknown_size(pair)
            if not reason and self._request.language and other_language(pair.caption, self._request.language):
                reason = "other_language"
            if not reason and self._captions and not self._captions.is_new(pair.caption, pair_group(pair)):
                reason = "near_duplicate"
            self.reasons.append(reason)
        self._compare_images(pairs, start)
        self._see_images(pairs, start)
        if self._concepts is not None and self._tagger is not None:
            left = [at for at in range(start, len(self.reasons)) if not self.reasons[at]]
            tokens = self._tagger.tag([pairs[at - start].caption for at in left])
            for at, words in zip(left, tokens, strict=True):
                self._concepts.add(pairs[at - start].key, words)
            self._at += left

    def _compare_images(self, pairs: Sequence[Pair], start: int) -> None:
        """Reject copies of evaluation images and of earlier images."""
        if not self._compares_hashes:
            return
        known = self._excluded.images if self._excluded else NO_IMAGES
        left = [at for at in range(start, len(self.reasons)) if not self.reasons[at]]
        images = hash_images([pairs[at - start].image for at in left])
        for at, image, judged in zip(left, images, known.judge(images), strict=True):
            pair = pairs[at - start]
            if judged.outcome == "copy":
                self.reasons[at], self.copies[pair.key] = COPY_OF_EVALUATION_IMAGE, judged.describe()
            elif self._images is not None and (earlier := self._images.find_or_add(image.hashes, pair.image)):
                self.reasons[at], self.copies[pair.key] = NEAR_DUPLICATE_IMAGE, earlier
            else:
                self._image_outcomes[judged.outcome] += 1

    def _see_images(self, pairs: Sequence[Pair], start: int) -> None:
        """Apply the filters that see images through a model."""
        if self._encoder is None:
            return
        left = [at for at in range(start, len(self.reasons)) if not self.reasons[at]]
        for first in range(0, len(left), _IMAGES):
            opened: dict[int, Image.Image] = {}
            for at in left[first : first + _IMAGES]:
                image = read_image_or_reason(pairs[at - start].image)
                if not isinstance(image, str):
                    opened[at] = image
                elif self._request.min_clip_score:
                    self.reasons[at] = image
                elif not self._compares_hashes:  # which counts it
                    self._image_outcomes["unreadable"] += 1
            if opened:
                vectors = dict(zip(opened, self._encoder.encode_images(list(opened.values())), strict=True))
                self._compare_embeddings(pairs, start, vectors)
                self._score(pairs, start, {at: vector for at, vector in vectors.items() if not self.reasons[at]})

    def _compare_embeddings(self, pairs: Sequence[Pair], start: int, vectors: Mapping[int, "Vectors"]) -> None:
        """Reject images that are similar to evaluation images or earlier images."""
        if self._similar is None:
            return
        for at, vector in vectors.items():
            pair = pairs[at - start]
            reason, found = self._similar.find_or_add(vector[None], pair.image)
            if reason:
                self.reasons[at], self.copies[pair.key] = reason, found

    def _score(self, pairs: Sequence[Pair], start: int, vectors: Mapping[int, "Vectors"]) -> None:
        """Reject captions that do not fit their images."""
        if self._encoder is None or not self._request.min_clip_score or not vectors:
            return
        texts = self._encoder.encode_texts([pairs[at - start].caption for at in vectors])
        for (at, image), text in zip(vectors.items(), texts, strict=True):
            if image @ text < self._request.min_clip_score:
                self.reasons[at] = "low_clip_score"

    @property
    def _compares_hashes(self) -> bool:
        return self._excluded is not None or self._images is not None

    def finish(self) -> dict[str, Any]:
        """Apply the filters on the whole set, and return facts for the summary."""
        facts: dict[str, Any] = {"unknown_size": int(self._unknown)} if self._request.bounds.of_images else {}
        if self._compares_hashes:
            facts["featureless"] = self._image_outcomes["featureless"]
        if self._compares_hashes or self._similar is not None:
            facts["uncompared"] = self._image_outcomes["unreadable"]
        if self._concepts is not None:
            found = self._concepts.covered()
            for at, kept, rare in zip(self._at, found.kept, found.rare, strict=True):
                if not kept:
                    self.reasons[at] = "rare_concepts" if rare else "common_concepts"
            facts["concepts"] = {"phrases": found.phrases, "counted": found.counted, "capped": found.capped}
        return facts
