"""Annotations from candidates of a model, after validation (`edits.written`).

The first valid candidates of each type are kept, up to the requested number. Every other candidate, and every missing
one, becomes a rejected annotation with its reason: candidates = kept + rejected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id
from pairwright.generators.edits.floors import MAX_LENGTH_DIFFERENCE
from pairwright.generators.edits.written.checks import Checked, EditChecks
from pairwright.generators.edits.written.reasons import nearness
from pairwright.generators.edits.written.targets import RequestedEdit
from pairwright.generators.llm_edits.requests import EditCandidate


@dataclass(frozen=True, slots=True)
class AnnotationBuilder:
    """Builds the annotations of a caption from its candidates.

    Attributes:
        kind: ``hard_negative`` or ``hard_positive``.
        types: such as "replace-object".
        per_type: annotations of each type.
        origin: generator and model; prompt and request come from each candidate.
        both_sides: pair each negative with a hard positive, referenced by ``positive_id``; a negative without one is
            rejected as ``no_positive``.
    """

    kind: str
    types: tuple[str, ...]
    per_type: int
    origin: Origin
    both_sides: bool = False

    def annotations(
        self, batch: Sequence[tuple[Pair, Sequence[EditCandidate]]], checks: EditChecks
    ) -> list[list[Annotation]]:
        """Return annotations for pairs with their candidates in order of preference.

        A pair has an annotation for each candidate, kept or rejected with a reason; at least ``per_type`` of each type.
        By type, kept ones come first, then the others in order of `nearness`. Hard positives of negatives come last.
        """
        # A negative is valid whatever its type; a positive of another type than intended is rarely true.
        types = self.types if self.kind == "hard_negative" else ()
        true = [_true_texts(found) for _, found in batch]
        written = [
            (pair, [(RequestedEdit.of_type(self.kind, each.type), each.text) for each in found if not each.reason])
            for pair, found in batch
        ]
        positives = [
            (pair, [(RequestedEdit.of_type("hard_positive", each.type), text) for text, each in texts.items()])
            for (pair, _), texts in zip(batch, true, strict=True)
        ]
        checked = checks.check_batch(written, other_types=types)
        outcomes = zip(batch, true, checked, checks.check_batch(positives), strict=True)
        return [
            self._of_pair(pair, found, own, dict(zip(texts, others, strict=True)))
            for (pair, found), texts, own, others in outcomes
        ]

    def _of_pair(
        self,
        pair: Pair,
        found: Sequence[EditCandidate],
        checked: Sequence[Checked],
        true: Mapping[str, Checked],
    ) -> list[Annotation]:
        """Return the annotations of a pair; ``true`` are the checked true texts of its negatives."""
        outcomes = iter(checked)
        pairs = [(each, Checked(each.text, reason=each.reason) if each.reason else next(outcomes)) for each in found]
        typed = [(replace(each, type=_type_of(each, outcome)), outcome) for each, outcome in pairs]
        positives = PositivesOfPair(pair, self.origin, found, true) if self.both_sides else None
        if positives is not None:
            typed = [(each, positives.reject_unpaired(each, outcome)) for each, outcome in typed]
        requested = [each.type for each in found]
        made: list[Annotation] = []
        for name in dict.fromkeys((*self.types, *requested)):
            # Those that were requested as this type come first.
            places = sorted(range(len(found)), key=lambda at: requested[at] != name)
            own = [typed[at] for at in places if typed[at][0].type == name]
            if name in self.types and len(own) < self.per_type:
                reason = (
                    "another_target" if any(requested[at] == name != typed[at][0].type for at in places) else "no_edit"
                )
                own += [(EditCandidate(name), Checked("", reason=reason))] * (self.per_type - len(own))
            made += [
                self._annotation(pair, ordinal, candidate, outcome, positives)
                for ordinal, (candidate, outcome) in enumerate(_rank_candidates(own, self.per_type))
            ]
        return made + (positives.rows if positives is not None else [])

    def _annotation(
        self,
        pair: Pair,
        ordinal: int,
        candidate: EditCandidate,
        checked: Checked,
        positives: "PositivesOfPair | None",
    ) -> Annotation:
        positive_id = positives.find_id(candidate) if positives is not None and not checked.reason else ""
        row = edit_annotation(pair, self.kind, candidate, checked, self.origin, str(ordinal))
        return replace(row, positive_id=positive_id) if positive_id else row


class PositivesOfPair:
    """The hard positives of the negatives of one caption; a positive is one row that several negatives may share.

    A replacement is paired with a true word in the same slot if there is one, else with another positive of the caption,
    as are swaps. An addition is only paired with a true addition in the same slot, since additions lengthen a text.

    Args:
        pair: the pair.
        origin: of the negatives.
        found: the candidates of the pair.
        true: their checked true texts.
    """

    def __init__(self, pair: Pair, origin: Origin, found: Sequence[EditCandidate], true: Mapping[str, Checked]) -> None:
        self._pair, self._origin, self._checked = pair, origin, true
        first = {each.true: each for each in reversed(found)}
        self._good = {text: first[text] for text, checked in true.items() if not checked.reason}
        self._made: dict[str, Annotation] = {}

    @property
    def rows(self) -> list[Annotation]:
        """The positives of the kept negatives."""
        return list(self._made.values())

    def reject_unpaired(self, candidate: EditCandidate, checked: Checked) -> Checked:
        """Return the outcome of a negative, rejected if it has no positive."""
        return checked if checked.reason or self._of(candidate) else Checked(checked.text, reason="no_positive")

    def find_id(self, candidate: EditCandidate) -> str:
        """Return the id of the positive for a kept negative, and add it to `rows`."""
        text = self._of(candidate)
        if text not in self._made:
            own, checked = self._good[text], self._checked[text]
            self._made[text] = edit_annotation(self._pair, "hard_positive", own, checked, self._origin, "true")
        return self._made[text].id

    def _of(self, candidate: EditCandidate) -> str:
        """Return the true text for a negative; empty if there is none."""
        form, _, target = candidate.type.partition("-")
        if candidate.true in self._good:
            added = abs(len(candidate.true) - len(candidate.text)) if form == "add" else 0
            return candidate.true if added <= MAX_LENGTH_DIFFERENCE else ""
        if form == "add":
            return ""
        others = [text for text, each in self._good.items() if not each.type.startswith("add")]
        return min(others, key=lambda text: not self._good[text].type.endswith(target), default="")


def edit_annotation(  # noqa: PLR0913, PLR0917 - the parts of a row
    pair: Pair, kind: str, candidate: EditCandidate, checked: Checked, origin: Origin, attempt: str
) -> Annotation:
    """Return the annotation of a checked candidate."""
    requested = RequestedEdit.of_type(kind, candidate.type)
    prompt = candidate.prompt or origin.prompt
    if (prompt, candidate.request) != (origin.prompt, origin.request):
        origin = _origin_of(origin, prompt, candidate.request)
    return Annotation(
        id=annotation_id(pair.key, kind, origin, f"{candidate.type}/{attempt}", checked.text),
        key=pair.key,
        kind=kind,
        origin=origin,
        form=requested.form,
        target=requested.target,
        text=checked.text,
        source_text=pair.caption,
        edits=checked.edits,
        scores={"agreement_changes": float(checked.agreement_changes)} if checked.agreement_changes else {},
        status="rejected" if checked.reason else "kept",
        reason=checked.reason,
        image_shows=candidate.image_shows,
    )


@lru_cache(maxsize=64)  # the texts of a caption come from one answer
def _origin_of(origin: Origin, prompt: str, request: str) -> Origin:
    return replace(origin, prompt=prompt, request=request)


def _true_texts(found: Sequence[EditCandidate]) -> dict[str, EditCandidate]:
    """Return the distinct true texts of candidates, each with the first candidate that has it."""
    return {each.true: each for each in reversed(found) if each.true and not each.reason}


def _type_of(candidate: EditCandidate, outcome: Checked) -> str:
    """Return the type of an accepted edit, which may be another one than was requested."""
    return candidate.type if outcome.reason else f"{outcome.form}-{outcome.target}"


def _rank_candidates(found: Sequence[tuple[EditCandidate, Checked]], count: int) -> list[tuple[EditCandidate, Checked]]:
    """Return the valid candidates in order (`spare` beyond ``count``), then the others in order of `nearness`."""
    good = [item for item in found if not item[1].reason]
    rest = sorted((item for item in found if item[1].reason), key=lambda item: -nearness(item[1].reason))
    spare = [(candidate, Checked(outcome.text, reason="spare")) for candidate, outcome in good[count:]]
    return [*good[:count], *spare, *rest]
