"""From outcomes to an annotation: take the first that makes a text, and say why when none does.

Shared by the makers of negatives and positives. `taken` holds the texts that may not be made again; what is made is
added to it. Every maker's changes pass here, so here those that would cut a word in two ("walk-in", "dog's") are
rejected, and captions that ask or are not in English. An asked type such as "replace-object" is the annotation's form
and target.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from pairwright.datasets.records import Annotation, Edit, Origin, Pair, annotation_id
from pairwright.generators.captions.caption import REASONS, Caption, EditOutcome
from pairwright.generators.captions.realisation import Change, rewrite, splits_any_span

EditPairOutcome = tuple[tuple[Change, ...], tuple[Change, ...]] | str
_DOUBLE_GENITIVE = re.compile(r"s['’]s\b")  # "men's" would become "guys's"
_DOUBLED = re.compile(r"\b([a-z]+),? \1\b", re.IGNORECASE)  # "a sofa, couch" would become "a sofa, sofa"
_RANK = {reason: rank for rank, reason in enumerate(REASONS)}


class Edited(NamedTuple):
    """A new text with its edits, or the reason why there is none."""

    text: str = ""
    edits: tuple[Edit, ...] = ()
    reason: str = ""


def first_good(caption: Caption, outcomes: Iterator[EditOutcome], taken: set[str]) -> Edited:
    """Return the first outcome that makes a new text; `outcomes` goes on where it stopped at the next call."""
    return _first(caption, (each if isinstance(each, str) else (each,) for each in outcomes), taken)[0]


def first_pair(caption: Caption, outcomes: Iterator[EditPairOutcome], taken: set[str]) -> tuple[Edited, Edited]:
    """Return the first two texts that come together, the false one first; a reason stands in the false one."""
    false, *true = _first(caption, outcomes, taken)
    return false, true[0] if true else false


def _first(caption: Caption, outcomes: Iterable[Sequence[Sequence[Change]] | str], taken: set[str]) -> Sequence[Edited]:
    """Return the first texts that come together and are all new, or a reason."""
    source = caption.pair.caption
    if caption.unfit:
        return (Edited(reason=caption.unfit),)
    reason = REASONS[0]
    for outcome in outcomes:
        if isinstance(outcome, str):
            fault = outcome
        elif any(splits_any_span(caption.joined, changes) for changes in outcome):
            fault = "not_grammatical"
        else:
            made = [Edited(*rewrite(source, changes)) for changes in outcome]
            texts = {each.text for each in made}
            fault = _fault(source, texts, taken)
            if len(texts) == len(made) and not fault:
                taken |= texts
                return made
            fault = fault or "duplicate"
        reason = max(reason, fault, key=_RANK.__getitem__)
    return (Edited(reason=reason),)


def _fault(source: str, texts: Collection[str], taken: Collection[str]) -> str:
    if source in texts:
        return "identical"
    if any(repeats_words(text, source) for text in texts):
        return "not_grammatical"
    return "" if all(text not in taken for text in texts) else "duplicate"


def repeats_words(text: str, source: str) -> bool:
    """Whether a text has a slip that its source has not: a word or a genitive twice in a row."""
    return any(slip.search(text) and not slip.search(source) for slip in (_DOUBLE_GENITIVE, _DOUBLED))


def edited_annotation(found: Edited, pair: Pair, kind: str, attempt: str, origin: Origin) -> Annotation:
    """Return the annotation of an attempt: kept, or rejected with its reason.

    Args:
        found: what the attempt gave.
        pair: whose caption was edited.
        kind: of the annotation, "hard_negative" or "hard_positive".
        attempt: the asked type and, where there are several of it, its number ("replace-object/1"); enters the id.
        origin: the maker.
    """
    form, _, target = attempt.partition("/")[0].partition("-")
    return Annotation(
        id=annotation_id(pair.key, kind, origin, attempt, found.text),
        key=pair.key,
        kind=kind,
        origin=origin,
        form=form,
        target=target,
        text=found.text,
        source_text=pair.caption,
        edits=found.edits,
        scores={"agreement_changes": float(len(found.edits) - 1)} if form != "swap" and len(found.edits) > 1 else {},
        status="rejected" if found.reason else "kept",
        reason=found.reason,
    )
