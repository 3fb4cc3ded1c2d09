"""Groups of two images and two texts from a pool, in the layout of Winoground (``pairwright generate groups``).

Candidates are captions of two images that differ in one word or in the order of their words (`minimal_pairs`), and
negatives of a file that are captions of another image. A candidate becomes a group if each text is a hard negative of
the other one's caption by the checks on written rows, with all captions and boxes of both images known: no caption of
an image says what the other text says. Words that do not exclude each other ("a large plane", "a prop plane") are
rejected as ``may_both_hold``.

Memory: about 2 kB per caption.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import UsageError
from pairwright.datasets.progress import track
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Pair, pair_key
from pairwright.filters.candidates.files import read_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.minimal_pairs import PoolCaption, find_minimal_pairs
from pairwright.filters.scorers.image_groups import pair_group
from pairwright.filters.validation.caption_context import ImageFacts
from pairwright.flows.commands.checked_pool import count_checked_pool
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.edits.written.sentence_extraction import comparison_key
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.triples import CachingTagger, TripleNegative, Triples

NAME: Final = "groups"
MAY_BOTH_HOLD: Final = "may_both_hold"
IMAGE_TAKEN: Final = "image_taken"

Candidate = tuple[PoolCaption, PoolCaption]


@dataclass(frozen=True)
class GroupRequest:
    """Options of mining groups.

    Attributes:
        read: the pool; all captions of an image, one per pair or several.
        out: JSONL file of the groups.
        negatives: file of candidate rows whose negatives may be captions of the pool; empty for none.
        per_image: groups per image, at most (0 = unlimited).
        seed: of the sampling of candidates.
    """

    read: ReadOptions
    out: Path
    negatives: str = ""
    per_image: int = 1
    seed: int = 0

    def check(self) -> None:
        """Check the request before anything is read.

        Raises:
            UsageError: for a wrong extension, or an output that is an input.
        """
        if self.out.suffix != ".jsonl":
            raise UsageError(f"{self.out}: groups are written as .jsonl. Change the extension.")
        refuse_overwriting(self.out, self.read.input, self.negatives)


@dataclass
class CaptionPool:
    """The captions and boxes of the images of a pool.

    Attributes:
        images: image locator, or source id, by group.
        facts: captions and boxes by group.
    """

    images: dict[str, str] = field(default_factory=dict)
    facts: dict[str, ImageFacts] = field(default_factory=dict)

    def add(self, pair: Pair) -> None:
        """Add a pair; one without an image or id is ignored."""
        if image := pair.image or pair.source_id:
            group = pair_group(pair)
            self.images.setdefault(group, image)
            self.facts.setdefault(group, ImageFacts()).add(pair)

    def captions(self) -> Iterator[PoolCaption]:
        """Yield every caption of every image."""
        for group, facts in self.facts.items():
            for text in facts.captions:
                yield PoolCaption(group, text)


def mine_groups(request: GroupRequest) -> dict[str, Any]:
    """Find groups and write them.

    Args:
        request: files and options.

    Returns:
        ``images``, ``captions``, ``candidates``, ``groups``, ``types`` (groups by type), ``rejected`` (candidates by
        reason), ``broken`` and ``broken_captions`` (as `SkipCounts.as_json`), ``seconds``, ``out``.

    Raises:
        InputError: when an input is not readable.
        UsageError: as `GroupRequest.check`.
    """
    started = time.perf_counter()
    request.check()
    pool, skipped = CaptionPool(), SkipCounts()
    for batch in read_pairs(request.read):
        skipped.add(batch.rejects)
        for pair in batch.pairs:
            pool.add(pair)
    candidates = list(
        chain(
            _candidates_from_rows(request.negatives, pool) if request.negatives else (),
            find_minimal_pairs(pool.captions(), request.seed),
        )
    )
    selection = _GroupSelection(pool, request.per_image)
    types, reasons = Counter[str](), Counter[str]()
    with replace_atomically(request.out) as temporary, temporary.open("wb") as out:
        for one, other in track(candidates, "judging", unit="candidates"):
            kind, reason = selection.judge(one, other)
            if reason:
                reasons[reason] += 1
                continue
            out.write(orjson.dumps(_group_row(types.total(), one, other, kind, pool)) + b"\n")
            types[kind] += 1
    return {
        "images": len(pool.images),
        "captions": sum(len(facts.captions) for facts in pool.facts.values()),
        "candidates": len(candidates),
        "groups": types.total(),
        "types": dict(sorted(types.items())),
        "rejected": dict(sorted(reasons.items())),
        **skipped.as_json(),
        "seconds": round(time.perf_counter() - started, 2),
        "out": str(request.out),
    }


def _group_row(number: int, one: PoolCaption, other: PoolCaption, kind: str, pool: CaptionPool) -> dict[str, Any]:
    """Return a row of Winoground's ``examples.jsonl``, without its numbers of predicates."""
    return {
        "id": number,
        "image_0": pool.images[one.group],
        "image_1": pool.images[other.group],
        "caption_0": one.text,
        "caption_1": other.text,
        "tag": kind,
    }


def _candidates_from_rows(path: str, pool: CaptionPool) -> Iterator[Candidate]:
    """Yield the captions of kept rows whose negative is a caption of another image."""
    owners: dict[str, PoolCaption] = {}
    for caption in pool.captions():
        owners.setdefault(comparison_key(caption.text), caption)
    frame = read_candidates(Path(path), InvalidRowPolicy("skip")).filter(pl.col("status") == "kept")
    for caption, negative in frame.select("caption", "negative").iter_rows():
        one, other = owners.get(comparison_key(caption)), owners.get(comparison_key(negative))
        if one is not None and other is not None and one.group != other.group:
            yield one, other


class _GroupSelection:
    """Selects candidates that are groups, each pair of texts once and at most ``per_image`` of an image (0 = unlimited)."""

    def __init__(self, pool: CaptionPool, per_image: int) -> None:
        self._judge, self._per_image = _GroupJudge(pool), per_image
        self._texts: set[frozenset[str]] = set()
        self._of_image = Counter[str]()

    def judge(self, one: PoolCaption, other: PoolCaption) -> tuple[str, str]:
        """Return the type of a group, and the reason if the candidate is rejected."""
        texts = frozenset((comparison_key(one.text), comparison_key(other.text)))
        if texts in self._texts:
            return "", "duplicate"
        if self._per_image and max(self._of_image[one.group], self._of_image[other.group]) >= self._per_image:
            return "", IMAGE_TAKEN
        kind, reason = self._judge.judge(one, other)
        if not reason:
            self._texts.add(texts)
            self._of_image.update((one.group, other.group))
        return kind, reason


class _GroupJudge:
    """Judges candidates by the captions and boxes of both images."""

    def __init__(self, pool: CaptionPool) -> None:
        self._pool = pool
        wordnet, self._tagger = load_wordnet(), CachingTagger(load_tagger())
        counted = count_checked_pool((caption.text for caption in pool.captions()), load_tagger())
        self._triples = Triples(EditChecks(wordnet, counted, self._tagger), self._tagger)
        self._known = Knowledge(wordnet, counted)

    def judge(self, one: PoolCaption, other: PoolCaption) -> tuple[str, str]:
        """Return the type of the difference, and the reason why it makes no group; empty for a group."""
        self._tagger.learn((one.text, other.text))
        first, caption = self._read(one, other.text)
        if not first.reason and not self._excludes(first, caption):
            return first.type, MAY_BOTH_HOLD
        return first.type, first.reason or self._read(other, one.text)[0].reason

    def _read(self, caption: PoolCaption, text: str) -> tuple[TripleNegative, Caption]:
        facts = self._pool.facts[caption.group]
        others = tuple(each for each in facts.captions if each != caption.text)
        key = pair_key(NAME, caption.group, caption.text)
        pair = Pair(key, caption.text, captions=others, boxes=tuple(facts.boxes))
        read = Caption(pair, self._tagger.tag([caption.text])[0])
        return self._triples.read(read, text, "", ()), read

    def _excludes(self, negative: TripleNegative, caption: Caption) -> bool:
        """Return whether the words of a replacement exclude each other in the lexicon; swaps are left to the checks."""
        form, _, target = negative.type.partition("-")
        if form != "replace":
            return True
        edit = negative.edits[0]
        old = _lemmas(caption.tokens, edit.before_span)
        new = _lemmas(self._tagger.tag([negative.text])[0], edit.after_span)
        if target == "object":
            return self._known.nouns.exclusive(old, new)
        behind = (token.lemma for token in caption.tokens if token.start >= edit.before_span[1] and token.pos == "NOUN")
        noun = next(behind, "")
        if target == "attribute":
            return self._known.attributes.exclusive(old, new, noun)
        return self._known.relations.refutes(old, new, thing=noun)


def _lemmas(tokens: Sequence[Token], span: tuple[int, int]) -> str:
    return " ".join(token.lemma for token in tokens if span[0] <= token.start < span[1])
