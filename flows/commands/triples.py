"""Evaluation triples (caption, negative, positive) from any candidate rows: what ``pairwright generate triples`` runs.

Rows that speak of one caption of one image are worked on together: none of their negatives may be a positive of it. The
other captions that the rows have of the image tell what is true of it. A row that comes in rejected stays as it is;
a positive that it brings is made anew.

Memory: the rows, as `filters.candidates` holds them, and with a model the tokens of their captions.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.progress import track
from pairwright.datasets.readers.pairs import ErrorPolicy, ReadOptions
from pairwright.datasets.records import Edit, Pair, edit_to_dict, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.filters.candidates.files import check_extension, read_candidates, write_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.rows import candidate_frame, candidate_rows, edit_type_name
from pairwright.flows.commands.annotation_files import require_candidate_rows
from pairwright.flows.commands.auxiliary_inputs import read_auxiliary_pairs
from pairwright.flows.commands.generate import BATCH, CHECKED_CAPTIONS
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edit_checks.checks import EditChecks
from pairwright.generators.edits.general_english import pool_or_general_english
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import tag_all
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.positives import TYPES as POSITIVES
from pairwright.generators.positives import PositiveOptions, RewriteRule, rewrite_rules
from pairwright.generators.registry import Materials
from pairwright.generators.triples import (
    CachingTagger,
    TripleNegative,
    TriplePositive,
    Triples,
    overlap,
    rule_candidates,
)

NAME, VERSION = "triples", 1
NO_POSITIVE = "no_positive"
_OURS = ("positive_form", "positive_target", "positive_edit", "why_no_positive")


@dataclass(frozen=True)
class TripleRequest:
    """What to make triples of, and how.

    Attributes:
        input: a file of candidate rows.
        out: file to write.
        pool: captions that tell which words are used; those of the rows when empty.
        any_type: see `generators.triples.Triples`.
        as_given: see `generators.triples.Triples`.
        seed: of what is drawn.
        on_error: what becomes of rows of ``input`` that are none.
    """

    input: Path
    out: Path
    pool: str = ""
    any_type: bool = False
    as_given: bool = False
    seed: int = 0
    on_error: ErrorPolicy = "stop"


@dataclass
class CaptionGroup:
    """The rows of one caption of one image.

    Attributes:
        caption: with its tokens and the other captions of the image.
        rows: positions of the rows in the input.
        negatives: of each row, as read.
    """

    caption: Caption
    rows: list[int]
    negatives: list[TripleNegative]

    @property
    def usable(self) -> list[tuple[int, TripleNegative]]:
        """The rows whose negative is one."""
        return [(row, negative) for row, negative in zip(self.rows, self.negatives, strict=True) if not negative.reason]

    @property
    def against(self) -> list[str]:
        """All negatives."""
        return [negative.text for negative in self.negatives]


@dataclass
class TripleResults:
    """What became of the rows, by their position: the negative as read, and its positive or why it has none."""

    negatives: dict[int, TripleNegative] = field(default_factory=dict)
    positives: dict[int, TriplePositive | str] = field(default_factory=dict)

    def add(self, group: CaptionGroup, found: Mapping[int, TriplePositive | str]) -> None:
        """Take note of a group."""
        self.negatives.update(zip(group.rows, group.negatives, strict=True))
        self.positives.update(found)


class TripleRows:
    """The rows of a request, and what is needed to read them.

    Raises:
        InputError: INPUT is missing, broken or empty.
        UsageError: the ending of INPUT or OUT names no format, or OUT is INPUT.
    """

    def __init__(self, request: TripleRequest, note: Callable[[str], None]) -> None:
        refuse_overwriting(request.out, str(request.input), request.pool)
        check_extension(request.out)
        self.request, self.note = request, note
        self.started = time.perf_counter()
        self._screening = InvalidRowPolicy(request.on_error)
        self.frame = read_candidates(request.input, self._screening)
        require_candidate_rows(request.input, self.frame.height)
        wordnet, self.tagger = load_wordnet(), load_tagger()
        pool = pool_or_general_english(self._statistics(), wordnet)
        if not isinstance(pool, PoolStatistics):
            note("Too few captions to tell which words go together: going by general English. --pool FILE does better.")
        self.materials = Materials(wordnet, pool, request.seed)
        self.remembering = CachingTagger(self.tagger)
        self.triples = Triples(
            EditChecks(wordnet, pool, self.remembering),
            self.remembering,
            any_type=request.any_type,
            as_given=request.as_given,
        )

    def _statistics(self) -> PoolStatistics:
        captions = islice(self._pool_captions(), CHECKED_CAPTIONS)
        return count_captions(tag_all(self.tagger, list(captions))).frozen()

    def _pool_captions(self) -> Iterator[str]:
        if not self.request.pool:
            yield from dict.fromkeys(self.frame["caption"])
            return
        for pair in read_auxiliary_pairs(ReadOptions(input=self.request.pool), self.note):
            yield from (pair.caption, *pair.captions)

    def batches(self) -> Iterator[list[CaptionGroup]]:
        """Yield the captions with their negatives read, in the order in which they come first."""
        members: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        said: defaultdict[str, dict[str, None]] = defaultdict(dict)
        entering = self.frame.with_row_index("row").filter(pl.col("status") == "kept")
        for row, key, image, caption in entering.select("row", "key", "image", "caption").iter_rows():
            locator = image or key
            members[locator, caption].append(row)
            if locator:
                said[locator][caption] = None
        texts = self.frame["negative"].to_list()
        told = [edit_type_name(*each) if any(each) else "" for each in self.frame.select("form", "target").iter_rows()]
        waiting = iter(track(members.items(), "reading rows", unit="captions"))
        while batch := list(islice(waiting, BATCH)):
            self.remembering.learn(
                [caption for (_, caption), _ in batch] + [texts[row] for _, rows in batch for row in rows]
            )
            yield [
                self._group(locator, text, [other for other in said[locator] if other != text], rows, told)
                for (locator, text), rows in batch
            ]

    def _group(
        self, locator: str, text: str, others: Sequence[str], rows: list[int], told: Sequence[str]
    ) -> CaptionGroup:
        pair = Pair(pair_key("", locator, text), text, image=locator, captions=tuple(others))
        caption = Caption(pair, self.remembering.tag([text])[0])
        given = self.frame["negative"]
        return CaptionGroup(caption, rows, self._read(caption, [(given[row], told[row]) for row in rows]))

    def _read(self, caption: Caption, given: Sequence[tuple[str, str]]) -> list[TripleNegative]:
        found: list[TripleNegative] = []
        for text, told in given:
            taken = [negative.text for negative in found if not negative.reason]
            found.append(self.triples.read(caption, text, told, taken))
        return found

    def chosen(
        self, group: CaptionGroup, offered: Mapping[str, Sequence[TriplePositive]]
    ) -> dict[int, TriplePositive | str]:
        """Return for each row whose negative is one the positive, or why it has none.

        Args:
            group: the rows.
            offered: positives of the caption by type; types that were not tried are left out.
        """
        found: dict[int, TriplePositive | str] = {}
        for row, negative in group.usable:
            found[row] = "no_such_type"
            for types in self.triples.rounds(negative.type):
                offers = [offer for kind in types for offer in offered.get(kind, ())]
                found[row] = self.triples.choose(group.caption, negative, offers, group.against)
                if isinstance(found[row], TriplePositive):
                    break
        return found

    def finish(self, outcome: TripleResults) -> dict[str, Any]:
        """Write the rows and return what became of them.

        Returns:
            ``rows``, ``kept``, ``rejected`` (reason to number; all of them together are the rows), ``types`` (of the
            negatives, likewise), ``positives`` (type to number), ``overlap`` (positives that edit the words that the
            negative edits), ``mended`` (negatives put into the format of their caption), ``no_positive`` (why),
            ``broken`` and ``broken_captions`` (as `datasets.skipped` tells them), ``seconds``, ``out``.
        """
        rows = [self._row(at, given, outcome) for at, given in enumerate(self._given())]
        frame = candidate_frame((f"row {at}", row) for at, row in enumerate(rows))
        write_candidates(frame, self.request.out)
        kept = [row for row in rows if row["status"] == "kept"]
        types = sorted({edit_type_name(row["form"], row["target"]) for row in rows})
        return {
            **_counted(rows),
            "types": {
                kind: _counted([row for row in rows if edit_type_name(row["form"], row["target"]) == kind])
                for kind in types
            },
            "positives": _numbers(edit_type_name(row["positive_form"], row["positive_target"]) for row in kept),
            "same_place": sum(int(row["scores"]["same_place"]) for row in kept),
            "mended": sum(negative.mended for negative in outcome.negatives.values()),
            "no_positive": _numbers(row["why_no_positive"] for row in rows if "why_no_positive" in row),
            **self._screening.skipped.as_json(),
            "seconds": round(time.perf_counter() - self.started, 2),
            "out": str(self.request.out),
        }

    def _given(self) -> Iterator[dict[str, Any]]:
        for extra, row in zip(self.frame["extra"], candidate_rows(self.frame), strict=True):
            yield orjson.loads(extra) | row

    def _row(self, at: int, given: dict[str, Any], outcome: TripleResults) -> dict[str, Any]:
        """Return a row as it is written."""
        if at not in outcome.negatives:
            return given | {"reason": given["reason"] or "rejected_before"}
        negative, positive = outcome.negatives[at], outcome.positives.get(at)
        row = {name: value for name, value in given.items() if name not in _OURS} | {"positive": ""}
        if negative.reason:
            return row | {"status": "rejected", "reason": negative.reason}
        form, _, target = negative.type.partition("-")
        row |= {"negative": negative.text, "form": form, "target": target}
        row["edit"] = _edits(negative.edits) or (given["edit"] if negative.text == given["negative"] else [])
        if negative.mended:
            row.setdefault("negative_as_given", given["negative"])
        if not isinstance(positive, TriplePositive):
            return row | {"status": "rejected", "reason": NO_POSITIVE, "why_no_positive": positive}
        return row | _beside(negative, positive, row["scores"])


def _beside(negative: TripleNegative, positive: TriplePositive, scores: Mapping[str, float]) -> dict[str, Any]:
    form, _, target = positive.type.partition("-")
    told = {"positive": positive.text, "positive_form": form, "positive_target": target}
    near = float(overlap(positive.edits, negative.places))
    return {**told, "positive_edit": _edits(positive.edits), "scores": {**scores, "same_place": near}}


def run_by_rules(request: TripleRequest, note: Callable[[str], None]) -> dict[str, Any]:
    """Make triples whose positives are rewordings by rules, and write them.

    Returns:
        As `TripleWork.finish`.

    Raises:
        InputError: INPUT is missing, broken or empty.
        UsageError: the ending of INPUT or OUT names no format, or OUT is INPUT.
    """
    work, outcome = TripleRows(request, note), TripleResults()
    known = work.materials
    rules = rewrite_rules(known.wordnet, known.pool, minimum=PositiveOptions().minimum)
    for batch in work.batches():
        offered = [_offered(work, rules, group) for group in batch]
        near = zip(batch, offered, strict=True)
        work.remembering.learn(text for group, offers in near for text in _near(group, offers))
        for group, offers in zip(batch, offered, strict=True):
            outcome.add(group, work.chosen(group, offers))
    return work.finish(outcome)


def _offered(
    work: TripleRows, rules: Mapping[str, RewriteRule], group: CaptionGroup
) -> dict[str, list[TriplePositive]]:
    seed = make_rng(work.request.seed, 0, NAME, VERSION, group.caption.pair.key).getrandbits(60)
    offered: defaultdict[str, list[TriplePositive]] = defaultdict(list)
    for offer in rule_candidates(rules, group.caption, _wanted(work.triples, group), seed):
        offered[offer.type].append(offer)
    return offered


def _near(group: CaptionGroup, offered: Mapping[str, Sequence[TriplePositive]]) -> Iterator[str]:
    """Yield the positives that will be compared with a negative: tagged together they take a tenth of the time."""
    for offers in offered.values():
        for offer in offers:
            if any(negative.is_compatible(offer) for _, negative in group.usable):
                yield offer.text


def _wanted(triples: Triples, group: CaptionGroup) -> list[str]:
    """Return the types of positives that some row of a group may take."""
    kinds = {kind for _, each in group.usable for types in triples.rounds(each.type) for kind in types}
    return [kind for kind in POSITIVES if kind in kinds]


def _edits(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    return [edit_to_dict(edit) for edit in edits]


def _counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    reasons = _numbers(row["reason"] for row in rows if row["status"] == "rejected")
    return {"rows": len(rows), "kept": len(rows) - sum(reasons.values()), "rejected": reasons}


def _numbers(words: Any) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))
