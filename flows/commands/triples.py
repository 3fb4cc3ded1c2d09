"""Evaluation triples (caption, negative, positive) from candidate rows (``pairwright generate triples``).

The rows of a caption of an image are processed together: none of their negatives may be a positive of it. The other
captions of the image in the rows state what is true of it. Rejected rows are not changed; positives of the other rows are
replaced.

Memory: the rows, as in `filters.candidates`, and with a model the tokens of their captions.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.datasets.progress import track
from pairwright.datasets.readers.pairs import ErrorPolicy, ReadOptions
from pairwright.datasets.records import Edit, Pair, edit_to_dict, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.filters.candidates.files import check_extension, read_candidates, write_candidates
from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
from pairwright.filters.candidates.rows import candidate_frame, complete_rows, edit_type_name
from pairwright.flows.commands.annotation_files import require_candidate_rows
from pairwright.flows.commands.checked_pool import count_checked_pool
from pairwright.flows.commands.pair_inputs import BATCH, read_auxiliary_pairs
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edit_types import POSITIVE_TYPES
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.positives import RewriteRule, rewrite_rules
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
_OUTPUT_FIELDS = ("positive_form", "positive_target", "positive_edit", "why_no_positive")


@dataclass(frozen=True)
class TripleRequest:
    """Options for making triples.

    Attributes:
        input: file of candidate rows.
        out: file to write.
        pool: reference captions for word statistics; empty for those of the rows.
        any_type: as in `generators.triples.Triples`.
        as_given: as in `generators.triples.Triples`.
        seed: of random choices.
        on_error: policy for invalid rows of ``input``.
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
        """The rows with a usable negative."""
        return [(row, negative) for row, negative in zip(self.rows, self.negatives, strict=True) if not negative.reason]

    @property
    def negative_texts(self) -> list[str]:
        """The texts of all negatives."""
        return [negative.text for negative in self.negatives]


@dataclass
class TripleResults:
    """Results by the position of the row: the negative as read, and its positive or the reason for none."""

    negatives: dict[int, TripleNegative] = field(default_factory=dict)
    positives: dict[int, TriplePositive | str] = field(default_factory=dict)

    def add(self, group: CaptionGroup, found: Mapping[int, TriplePositive | str]) -> None:
        """Add the results of a group."""
        self.negatives.update(zip(group.rows, group.negatives, strict=True))
        self.positives.update(found)


class TripleRows:
    """The rows of a request, with the resources to read them.

    Raises:
        InputError: when the input is missing, broken or empty.
        UsageError: for an unknown extension, or an output that is the input.
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
        pool = count_checked_pool(self._pool_captions(), self.tagger, note)
        self.materials = Materials(wordnet, pool, request.seed)
        self.caching_tagger = CachingTagger(self.tagger)
        self.triples = Triples(
            EditChecks(wordnet, pool, self.caching_tagger),
            self.caching_tagger,
            any_type=request.any_type,
            as_given=request.as_given,
        )

    def _pool_captions(self) -> Iterator[str]:
        if not self.request.pool:
            yield from dict.fromkeys(self.frame["caption"])
            return
        for pair in read_auxiliary_pairs(ReadOptions(input=self.request.pool), self.note):
            yield from (pair.caption, *pair.captions)

    def batches(self) -> Iterator[list[CaptionGroup]]:
        """Yield the groups of rows by caption, in the order of their first rows."""
        members: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        captions: defaultdict[str, dict[str, None]] = defaultdict(dict)
        entering = self.frame.with_row_index("row").filter(pl.col("status") == "kept")
        for row, key, image, caption in entering.select("row", "key", "image", "caption").iter_rows():
            locator = image or key
            members[locator, caption].append(row)
            if locator:
                captions[locator][caption] = None
        texts = self.frame["negative"].to_list()
        types = [edit_type_name(*each) if any(each) else "" for each in self.frame.select("form", "target").iter_rows()]
        remaining = iter(track(members.items(), "reading rows", unit="captions"))
        while batch := list(islice(remaining, BATCH)):
            self.caching_tagger.learn(
                [caption for (_, caption), _ in batch] + [texts[row] for _, rows in batch for row in rows]
            )
            yield [
                self._group(locator, text, [other for other in captions[locator] if other != text], rows, types)
                for (locator, text), rows in batch
            ]

    def _group(
        self, locator: str, text: str, others: Sequence[str], rows: list[int], types: Sequence[str]
    ) -> CaptionGroup:
        pair = Pair(pair_key("", locator, text), text, image=locator, captions=tuple(others))
        caption = Caption(pair, self.caching_tagger.tag([text])[0])
        texts = self.frame["negative"]
        return CaptionGroup(caption, rows, self._read(caption, [(texts[row], types[row]) for row in rows]))

    def _read(self, caption: Caption, negatives: Sequence[tuple[str, str]]) -> list[TripleNegative]:
        found: list[TripleNegative] = []
        for text, type_ in negatives:
            taken = [negative.text for negative in found if not negative.reason]
            found.append(self.triples.read(caption, text, type_, taken))
        return found

    def choose_positives(
        self, group: CaptionGroup, offered: Mapping[str, Sequence[TriplePositive]]
    ) -> dict[int, TriplePositive | str]:
        """Return the positive of each row with a usable negative, or the reason for none.

        Args:
            group: the rows.
            offered: positives of the caption by type, for the types that were tried.
        """
        found: dict[int, TriplePositive | str] = {}
        for row, negative in group.usable:
            found[row] = "no_such_type"
            for types in self.triples.rounds(negative.type):
                offers = [offer for kind in types for offer in offered.get(kind, ())]
                found[row] = self.triples.choose(group.caption, negative, offers, group.negative_texts)
                if isinstance(found[row], TriplePositive):
                    break
        return found

    def finish(self, results: TripleResults) -> dict[str, Any]:
        """Write the rows and return a summary.

        Returns:
            ``rows``, ``kept``, ``rejected`` (by reason; rows = kept + rejected), ``types`` (the same by type of negative),
            ``positives`` (by type), ``same_place`` (positives that edit the words that the negative edits),
            ``reformatted`` (negatives reformatted like their caption), ``no_positive`` (by reason), ``broken`` and
            ``broken_captions`` (as `SkipCounts.as_json`), ``seconds``, ``out``.
        """
        rows = [self._row(at, given, results) for at, given in enumerate(complete_rows(self.frame))]
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
            "reformatted": sum(negative.reformatted for negative in results.negatives.values()),
            "no_positive": _numbers(row["why_no_positive"] for row in rows if "why_no_positive" in row),
            **self._screening.skipped.as_json(),
            "seconds": round(time.perf_counter() - self.started, 2),
            "out": str(self.request.out),
        }

    def _row(self, at: int, given: dict[str, Any], results: TripleResults) -> dict[str, Any]:
        """Return the output row of an input row."""
        if at not in results.negatives:
            return given | {"reason": given["reason"] or "rejected_before"}
        negative, positive = results.negatives[at], results.positives.get(at)
        row = {name: value for name, value in given.items() if name not in _OUTPUT_FIELDS} | {"positive": ""}
        if negative.reason:
            return row | {"status": "rejected", "reason": negative.reason}
        form, _, target = negative.type.partition("-")
        row |= {"negative": negative.text, "form": form, "target": target}
        row["edit"] = _edits(negative.edits) or (given["edit"] if negative.text == given["negative"] else [])
        if negative.reformatted:
            row.setdefault("negative_as_given", given["negative"])
        if not isinstance(positive, TriplePositive):
            return row | {"status": "rejected", "reason": NO_POSITIVE, "why_no_positive": positive}
        return row | _positive_fields(negative, positive, row["scores"])


def _positive_fields(negative: TripleNegative, positive: TriplePositive, scores: Mapping[str, float]) -> dict[str, Any]:
    form, _, target = positive.type.partition("-")
    fields = {"positive": positive.text, "positive_form": form, "positive_target": target}
    same_place = float(overlap(positive.edits, negative.places))
    return {**fields, "positive_edit": _edits(positive.edits), "scores": {**scores, "same_place": same_place}}


def run_by_rules(request: TripleRequest, note: Callable[[str], None]) -> dict[str, Any]:
    """Make triples with positives by rules, and write them.

    Returns:
        The summary of `TripleRows.finish`.

    Raises:
        InputError: when the input is missing, broken or empty.
        UsageError: for an unknown extension, or an output that is the input.
    """
    work, results = TripleRows(request, note), TripleResults()
    materials = work.materials
    rules = rewrite_rules(materials.pool)
    for batch in work.batches():
        offered = [_offered(work, rules, group) for group in batch]
        pairs = zip(batch, offered, strict=True)
        work.caching_tagger.learn(text for group, offers in pairs for text in _compatible(group, offers))
        for group, offers in zip(batch, offered, strict=True):
            results.add(group, work.choose_positives(group, offers))
    return work.finish(results)


def _offered(
    work: TripleRows, rules: Mapping[str, RewriteRule], group: CaptionGroup
) -> dict[str, list[TriplePositive]]:
    seed = make_rng(work.request.seed, 0, NAME, VERSION, group.caption.pair.key).getrandbits(60)
    offered: defaultdict[str, list[TriplePositive]] = defaultdict(list)
    for offer in rule_candidates(rules, group.caption, _wanted(work.triples, group), seed):
        offered[offer.type].append(offer)
    return offered


def _compatible(group: CaptionGroup, offered: Mapping[str, Sequence[TriplePositive]]) -> Iterator[str]:
    """Yield the positives to compare with a negative; tagging them together takes a tenth of the time."""
    for offers in offered.values():
        for offer in offers:
            if any(negative.is_compatible(offer) for _, negative in group.usable):
                yield offer.text


def _wanted(triples: Triples, group: CaptionGroup) -> list[str]:
    """Return the types of positives that rows of a group may have."""
    kinds = {kind for _, each in group.usable for types in triples.rounds(each.type) for kind in types}
    return [kind for kind in POSITIVE_TYPES if kind in kinds]


def _edits(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    return [edit_to_dict(edit) for edit in edits]


def _counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    reasons = _numbers(row["reason"] for row in rows if row["status"] == "rejected")
    return {"rows": len(rows), "kept": len(rows) - sum(reasons.values()), "rejected": reasons}


def _numbers(words: Any) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))
