"""Texts that reviewers wrote go through the checks on every written row (`generators.edit_checks`), as a model's do.

A clean edit is put into the format of its caption, gets its spans, and the type that it is. A text that says what
captions of the image say, or repeats another, is turned away with the reason of the check. What else the checks find
(two places edited, a word that no dictionary has, one that means about the same) is the reviewer's good right, who saw
the image: the text is taken without spans, with no more than its first capital and final mark put right.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pairwright.datasets.records import Edit, Pair, pair_key
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edit_checks.checks import EditChecks
from pairwright.generators.edits.general_english import pool_or_general_english
from pairwright.generators.language.pool_statistics import count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.triples import TYPES, CachingTagger, Triples

_REFUSED = frozenset({"no_edit", "identical", "duplicate", "true_of_image"})
_MARKS = " .!?"
_MAX_POOL = 100_000  # captions that tell which words are used


@dataclass(frozen=True, slots=True)
class ReviewerText:
    """A text that a reviewer wrote, and what it is checked against.

    Attributes:
        caption: which it is to contradict.
        others: other captions of the image.
        type: of the row: "replace-object"; empty when it is not known.
        text: as it was written.
        taken: the other negatives of the caption.
    """

    caption: str
    others: tuple[str, ...]
    type: str
    text: str
    taken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedFix:
    """What a written text came to.

    Attributes:
        text: to be taken.
        type: of the edit; that of the row where the edit is not a clean one.
        edits: what differs from the caption; empty where the edit is not a clean one.
        reason: why it is not taken, a word of `edit_checks.reasons.REASONS`; else empty.
    """

    text: str
    type: str
    edits: tuple[Edit, ...] = ()
    reason: str = ""


CheckFixes = Callable[[Sequence[ReviewerText]], list[CheckedFix]]
"""Checks written texts, in order."""


def check_fixes(written: Sequence[ReviewerText], captions: Iterable[str]) -> list[CheckedFix]:
    """Return what written texts came to, in order.

    Args:
        written: by reviewers. Nothing is loaded when there are none.
        captions: of the pool, which tell what words are used.
    """
    if not written:
        return []
    wordnet, tagger = load_wordnet(), CachingTagger(load_tagger())
    used = list(dict.fromkeys(captions))[:_MAX_POOL]
    pool = pool_or_general_english(count_captions(tagger.tag(used)).frozen(), wordnet)
    triples = Triples(EditChecks(wordnet, pool, tagger), tagger)
    return [_check_fix(each, triples, tagger) for each in written]


def _check_fix(each: ReviewerText, triples: Triples, tagger: CachingTagger) -> CheckedFix:
    pair = Pair(pair_key("", "", each.caption), each.caption, captions=each.others)
    told = each.type if each.type in TYPES else ""
    read = triples.read(Caption(pair, tagger.tag([each.caption])[0]), each.text, told, each.taken)
    if not read.reason:
        return CheckedFix(read.text, read.type, read.edits)
    if read.reason in _REFUSED:
        return CheckedFix(each.text, each.type, reason=read.reason)
    return CheckedFix(match_caption_format(each.text, each.caption), each.type)


def match_caption_format(text: str, caption: str) -> str:
    """Return a text with the first capital and the final mark of its caption, which would give it away."""
    bare, ending = text.rstrip(_MARKS), caption[len(caption.rstrip(_MARKS)) :]
    return (bare[:1].upper() if caption[:1].isupper() else bare[:1]) + bare[1:] + ending
