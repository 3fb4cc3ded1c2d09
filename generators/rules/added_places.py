"""Where something may be added to a caption: behind a noun, before one, or as a claim at either end.

True things are added at the end of a caption only, where they belong to the scene ("on a street with a bus"). Where that
cannot be, words claim no more than that a thing is in the picture ("..., with a bus in view", "A bus and a ..."). What is
false alone may be claimed as captions say it ("... with a bus in the background").
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pairwright.generators.captions.caption import ANAPHORS, Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import VERBS
from pairwright.generators.edits.realisation import Change
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.language.inflection import article
from pairwright.generators.words.claims import (
    BEHIND,
    DISTANT,
    IN_VIEW,
    NAMED_FIRST,
    NEAR,
    NEARBY,
    SAID_BY_CLAIMS,
    only_names,
)
from pairwright.generators.words.nouns import FIGURES, GATHERINGS, MASS, SURROUNDINGS
from pairwright.generators.words.wordlists import word_set

_COMMA = re.compile(r"(?<=[^\W\d])\s*,\s*(?=[^\W\d])")  # between words, with the spaces around it
_INDEFINITE = word_set("a an some several two three four five six another many")
_HAVING = word_set("with has have having and holding carrying featuring containing wearing plus")
_FRONT = 2  # times as often before a caption as behind it, where it may stand at both ends: most are behind anyway
_CLOSED = frozenset({"", ".", "!", ";"})
_GOES_ON = frozenset({"IN"})  # "a man with a dog | near a lake"
_WHERE = word_set(
    "on in at near by beside behind under over along across through down outside inside against above below"
)
_TOLD = frozenset({"be", "show", "display", "picture", "depict"})  # "is a street | with a bus"
_SIDES = word_set("front top side back middle left right next close inside outside")
LONGER = 2  # letters by which a false addition may be longer or shorter than a true one
SCENES = SURROUNDINGS | FIGURES
_PARTS_OF_NOUNS = frozenset({"JJ", "VB", "HY", "NN", "RB", "RP", "AF"})  # "pick up truck", "sub way"
_FINITE = frozenset({"is", "are", "was", "were", "has", "have"})


class Claim(NamedTuple):
    """Words that may stand for code points ``start`` to ``end``, with braces for what they say is in the picture.

    Attributes:
        start: code point of the first of the words that give way.
        end: one past the last.
        wording: what is written there.
        first: whether the caption begins with it; what is named first has to be of the sort of what comes next.
        distant: whether what it names is to be one of `claims.DISTANT`, or none; None where that does not matter.
    """

    start: int
    end: int
    wording: str
    first: bool = False
    distant: bool | None = None

    def of(self, words: str) -> tuple[Change]:
        """Return the claim of ``words``."""
        return (Change(self.start, self.end, self.wording.format(words)),)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something may be added: code point ``at``, after the text ``joint`` and before the text ``rest``."""

    phrase: NounPhrase
    at: int
    joint: str
    rest: str = ""

    def change(self, words: str) -> tuple[Change]:
        """Return the addition of ``words``."""
        return (Change(self.at, self.at, self.joint + words + self.rest),)


def claims(caption: Caption, *, true: bool) -> list[Claim]:
    """Return the claims that may be put to a caption, at either end.

    One that has a word of the caption's own is none of them ("a view of a street, with a dog in view").

    Args:
        caption: of which more is to be said.
        true: whether they have to hold of whatever is in the picture, wherever it is.
    """
    end = 0 if is_drawn(caption) else _end(caption.pair.caption)
    wordings: list[tuple[str, bool | None]] = [(BEHIND, True), (NEARBY, False)]
    if true or "with" in caption.lower:
        comma = list_comma(caption.pair.caption)
        wordings = [(text.replace(", ", comma), None) for text in (IN_VIEW if true else (NEAR,))]
    own = SAID_BY_CLAIMS.intersection(caption.words.own)
    last = [Claim(end, end, text, distant=far) for text, far in wordings if end and own.isdisjoint(text.split())]
    return last + _named_first(caption)


def claim_for(found: Sequence[Claim], *, noun: str, alike: bool, rng: RandomStream) -> Claim | None:
    """Return a claim for a thing, one at the front twice as often as one at the end; None where none suits it.

    Args:
        found: claims of one caption.
        noun: the thing.
        alike: whether it is of the sort of what the caption begins with: a thing, a beast, a person.
        rng: chance.
    """
    last = [claim for claim in found if not claim.first and claim.distant in {None, noun in DISTANT}]
    first = [claim for claim in found if claim.first and alike]
    suiting = last + first * max(1, _FRONT * len(last))
    return rng.choice(suiting) if suiting else None


def _named_first(caption: Caption) -> list[Claim]:
    phrase = caption.starting_at(0)
    if phrase is None or not FIGURES.isdisjoint(caption.contents) or caption.pair.caption.rstrip().endswith("?"):
        return []
    if caption.head(phrase) in SURROUNDINGS or not caption.is_whole(phrase):
        return []
    if not ANAPHORS.isdisjoint(caption.lower):
        return []  # "a bucket and | a stove with food on it"
    if not (caption.is_thing(phrase) or caption.head(phrase) in GATHERINGS):
        return []
    opening = caption.tokens[0]
    wording = NAMED_FIRST + caption.lower[0]
    alone = only_names(caption.lower, caption.tags, phrase.end)
    return [Claim(opening.start, opening.end, wording, first=True)] if alone else []


def _end(text: str) -> int:
    """Return where a caption's last word ends, before a full stop; 0 where it ends in another way."""
    bare = text.rstrip().removesuffix(".").rstrip()
    return len(bare) if bare[-1:].isalnum() and "?" not in bare else 0


def list_comma(text: str, at: int = 0) -> str:
    """Return a comma with the spaces that a caption writes around its own: at a place, or else around its first one."""
    found = (_COMMA.match(text, at) or _COMMA.search(text)) if "," in text else None
    return found[0] if found is not None else ", "


def indefinite(noun: str) -> str:
    """Return a noun with its article."""
    return f"{article(noun)} {noun}"


def thing_places(caption: Caption) -> list[Place]:
    """Return where a thing may join a phrase."""
    found = [_thing_place(caption, phrase) for phrase in caption.things]
    return [place for place in found if place is not None]


def _thing_place(caption: Caption, phrase: NounPhrase) -> Place | None:
    """Return how a thing joins a phrase: in a list with a comma, after "with" by "and", else by "with"."""
    after, at = caption.word(phrase.end), caption.tokens[phrase.end - 1].end
    if not (_is_indefinite(caption, phrase) or (after in _CLOSED and _may_end(caption, phrase))):
        return None
    if caption.head(phrase) in FIGURES and _is_ambiguous(caption, phrase):
        return None
    if after in {",", "and"} and "between" not in caption.lower[: phrase.start]:
        following = caption.starting_at(phrase.end + 1 + (caption.word(phrase.end + 1) == "and"))
        comma = list_comma(caption.pair.caption, at)
        return Place(phrase, at, comma) if following is not None and _is_indefinite(caption, following) else None
    joint = _joint(caption, phrase)
    return Place(phrase, at, joint) if joint else None


def _joint(caption: Caption, phrase: NounPhrase) -> str:
    """Return " with " or " and ", or an empty string where neither reads well."""
    before, after = caption.word(phrase.start - 1), caption.word(phrase.end)
    if "between" in caption.lower[: phrase.start] or _is_done_to(caption, phrase):
        return ""
    goes_on = after not in _CLOSED
    if goes_on and not (caption.tag(phrase.end) in _GOES_ON and after in _WHERE and _leads_on(caption, phrase)):
        return ""
    if before in {"and", ",", "or"} or (goes_on and before in _HAVING):
        return ""
    if before in _HAVING:
        return " and "
    return "" if "with" in caption.lower[: phrase.start] else " with "


def _is_done_to(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether something is done to a phrase, by means of what would follow it: "blocking a road | with a truck"."""
    return caption.tag(phrase.start - 1) in VERBS and caption.lemmas[phrase.start - 1] not in _TOLD


def _leads_on(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether where a phrase is comes after it; "a girl | in a shirt" would put the shirt on what is added."""
    following = caption.starting_at(phrase.end + 1)
    return following is not None and caption.head(following) in SCENES


def _is_indefinite(caption: Caption, phrase: NounPhrase) -> bool:
    inside = caption.lower[phrase.start : phrase.end]
    return inside[0] in _INDEFINITE and ANAPHORS.isdisjoint(inside)


def _may_end(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether "with a dog" may follow a definite or bare phrase, and then speak of all that was said before it."""
    bound = caption.lower[phrase.start : phrase.end]
    return phrase.start > 0 and caption.head(phrase) not in FIGURES and ANAPHORS.isdisjoint(bound)


def _is_ambiguous(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether "is under a circle with a star" leaves open which of the two has the star."""
    finite = not _FINITE.isdisjoint(caption.lower[: phrase.start])
    return finite and caption.word(phrase.start - 1) not in {"is", "are", "with"} and "there" not in caption.lower[:2]


def attribute_places(caption: Caption) -> list[Place]:
    """Return where an adjective may stand: before nouns that are not described yet."""
    heads = [caption.head(phrase) for phrase in caption.phrases]
    return [
        Place(phrase, caption.tokens[phrase.nouns[0]].start, "", " ")
        for phrase in caption.things
        if not phrase.adjectives
        and not phrase.joined
        and not caption.counts_a_part(phrase)
        and (phrase.determiner >= 0 or phrase.count >= 0 or caption.plural(phrase) or caption.head(phrase) in MASS)
        and phrase.nouns[0] > 0
        and phrase.nouns[0] == (max(phrase.determiner, phrase.count) + 1 or phrase.start)
        and heads.count(caption.head(phrase)) == 1
        # "the street is empty" describes it already
        and not (caption.word(phrase.end) in _FINITE and caption.tag(phrase.end + 1) in {"JJ", "RB"})
        and phrase.nouns[0] - 1 not in caption.parts
        and caption.tag(phrase.nouns[0] - 1)[:2] not in _PARTS_OF_NOUNS
    ]


def is_drawn(caption: Caption) -> bool:
    """Whether a caption tells of nothing but figures, of which any may be beside any."""
    return bool(caption.things) and all(caption.head(phrase) in FIGURES for phrase in caption.things)


def is_scene(caption: Caption, place: Place) -> bool:
    """Whether what is added at a place belongs to the whole scene: at the end, after where it is or what it holds."""
    phrase = place.phrase
    if caption.word(phrase.end) not in _CLOSED:
        return False
    before, side = caption.word(phrase.start - 1), caption.word(phrase.start - 2)
    owner = caption.ending_at(phrase.start - 1)
    holds = owner is not None and caption.head(owner) in SURROUNDINGS and place.joint == " and "
    opens = before in _WHERE or phrase.start == 0 or (before in {"of", "to"} and side in _SIDES)
    return holds or (place.joint == " with " and opens)
