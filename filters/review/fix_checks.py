"""Checks of texts that reviewers wrote, by the edit checks (`generators.edits.written`) of model-written texts.

A clean edit gets the format of its caption, its spans and its type. A text that equals a caption of the image, or
repeats another negative, is rejected with the reason of the check. All other objections (two edits, an unknown word, a
synonym) are overruled by the reviewer, who saw the image: the text is accepted without spans, and only its first
capital and final mark are changed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pairwright.datasets.records import Edit, Pair, pair_key
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.edits.edit_model import pool_or_bundled
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.pool_statistics import count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.triples import CachingTagger, Triples

_REFUSED = frozenset({"no_edit", "identical", "duplicate", "true_of_image"})
_MARKS = " .!?"
_MAX_POOL = 100_000  # reference captions for word statistics


@dataclass(frozen=True, slots=True)
class ReviewerText:
    """A text that a reviewer wrote, and what it is checked against.

    Attributes:
        caption: the caption that it should contradict.
        others: other captions of the image.
        type: edit type of the row: "replace-object"; empty if unknown.
        text: the text.
        taken: the other negatives of the caption.
    """

    caption: str
    others: tuple[str, ...]
    type: str
    text: str
    taken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedFix:
    """Result of a check.

    Attributes:
        text: the accepted text.
        type: of the edit; that of the row where the edit is not a clean one.
        edits: differences from the caption; empty where the edit is not a clean one.
        reason: of a rejection, a key of `edits.written.reasons.REASONS`; else empty.
    """

    text: str
    type: str
    edits: tuple[Edit, ...] = ()
    reason: str = ""


CheckFixes = Callable[[Sequence[ReviewerText]], list[CheckedFix]]
"""Checks written texts, in order."""


def check_fixes(written: Sequence[ReviewerText], captions: Iterable[str]) -> list[CheckedFix]:
    """Return the results of the checks, in order.

    Args:
        written: texts of reviewers; nothing is loaded if there are none.
        captions: reference captions for word statistics.
    """
    if not written:
        return []
    wordnet, tagger = load_wordnet(), CachingTagger(load_tagger())
    used = list(dict.fromkeys(captions))[:_MAX_POOL]
    pool = pool_or_bundled(count_captions(tagger.tag(used)).frozen())
    triples = Triples(EditChecks(wordnet, pool, tagger), tagger)
    return [_check_fix(each, triples, tagger) for each in written]


def _check_fix(each: ReviewerText, triples: Triples, tagger: CachingTagger) -> CheckedFix:
    pair = Pair(pair_key("", "", each.caption), each.caption, captions=each.others)
    kind = each.type if each.type in BENCHMARK_TYPES else ""
    read = triples.read(Caption(pair, tagger.tag([each.caption])[0]), each.text, kind, each.taken)
    if not read.reason:
        return CheckedFix(read.text, read.type, read.edits)
    if read.reason in _REFUSED:
        return CheckedFix(each.text, each.type, reason=read.reason)
    return CheckedFix(match_caption_format(each.text, each.caption), each.type)


def match_caption_format(text: str, caption: str) -> str:
    """Return a text with the first capital and the final mark of its caption, so that neither detects it."""
    bare, ending = text.rstrip(_MARKS), caption[len(caption.rstrip(_MARKS)) :]
    return (bare[:1].upper() if caption[:1].isupper() else bare[:1]) + bare[1:] + ending
