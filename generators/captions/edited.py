"""Selection of the first valid edit of a caption, and its annotation.

Shared by the generators of negatives and positives. `taken` holds the texts that must not be written again; new texts
are added to it. The changes of every generator pass here, so this is where changes that split a word ("walk-in",
"dog's") and captions that are questions or not in English are rejected.
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


class EditedText(NamedTuple):
    """A new text with its edits, or the reason code of a rejection."""

    text: str = ""
    edits: tuple[Edit, ...] = ()
    reason: str = ""


def first_valid_edit(caption: Caption, outcomes: Iterator[EditOutcome], taken: set[str]) -> EditedText:
    """Return the first outcome that gives a valid new text; the next call continues after it."""
    return first_valid_texts(caption, (each if isinstance(each, str) else (each,) for each in outcomes), taken)[0]


def first_valid_texts(
    caption: Caption, outcomes: Iterable[Sequence[Sequence[Change]] | str], taken: set[str]
) -> Sequence[EditedText]:
    """Return the texts of the first outcome that are all valid, or one with a reason."""
    source = caption.pair.caption
    if caption.skip_reason:
        return (EditedText(reason=caption.skip_reason),)
    reason = REASONS[0]
    for outcome in outcomes:
        if isinstance(outcome, str):
            rejection = outcome
        elif any(splits_any_span(caption.joined, changes) for changes in outcome):
            rejection = "not_grammatical"
        else:
            made = [EditedText(*rewrite(source, changes)) for changes in outcome]
            texts = {each.text for each in made}
            rejection = _find_rejection(source, texts, taken)
            if len(texts) == len(made) and not rejection:
                taken |= texts
                return made
            rejection = rejection or "duplicate"
        reason = max(reason, rejection, key=_RANK.__getitem__)
    return (EditedText(reason=reason),)


def _find_rejection(source: str, texts: Collection[str], taken: Collection[str]) -> str:
    if source in texts:
        return "identical"
    if any(repeats_words(text, source) for text in texts):
        return "not_grammatical"
    return "" if all(text not in taken for text in texts) else "duplicate"


def repeats_words(text: str, source: str) -> bool:
    """Return whether a text repeats a word or a genitive where its source does not."""
    return any(each.search(text) and not each.search(source) for each in (_DOUBLE_GENITIVE, _DOUBLED))


def edited_annotation(found: EditedText, pair: Pair, kind: str, attempt: str, origin: Origin) -> Annotation:
    """Return the annotation of an attempt: kept, or rejected with its reason.

    The attempt is the requested type, with a number if there are several ("replace-object/1"); it is part of the id.
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
