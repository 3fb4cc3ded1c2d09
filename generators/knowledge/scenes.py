"""What captions put where: whether a thing, or a deed, is ever so at another thing.

"A bus on a church" is made of words that all go together: buses stand at churches, clocks are on them. What makes it
strange is that captions never put a bus *on* a church. The pool's links tell (`language/links.py`): of what is often at
such a noun they tell how, and of what is in or on one that something of its kind has been there before.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from pairwright.generators.knowledge.sources import Pool
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.words.nouns import KINDS, PEOPLE
from pairwright.generators.words.relations import CARRIERS, SEATS, WATERS

KNOWN = 20  # links to a noun, for what is not among them to tell anything
_PUT = 2  # captions that put a thing somewhere, from which it is known to be put there
STRANGE = 0.2  # of what chance would have, below which captions do not put things so
_ON = ("on", "on top of", "atop", "upon")
_IN = ("in", "inside", "inside of", "within")
_BENEATH = ("under", "underneath", "beneath")
_TOUCHING = {preposition: family for family in (_ON, _IN, _BENEATH) for preposition in family}
_SOMEBODY = "somebody"


class Scene(NamedTuple):
    """What a caption tells around words that are to be exchanged; lemmas, and empty where it tells nothing.

    Attributes:
        who: of whom, or what, they are said.
        act: the verb right before them.
        noun: that stands after them.
        following: the preposition right after them.
        beyond: the noun after that.
    """

    who: str
    act: str
    noun: str
    following: str
    beyond: str


class Scenes:
    """Asks the pool which things are where, and remembers.

    Args:
        pool: statistics of the captions that the texts are to look like.
        lives: tells whether a noun is a person or an animal.
    """

    def __init__(self, pool: Pool, lives: Callable[[str], bool]) -> None:
        self._pool, self._lives = pool, lives
        self.are_told = lru_cache(maxsize=100_000)(self._are_told)
        self.is_strange = lru_cache(maxsize=100_000)(self._is_strange)
        self._is_one_seen = lru_cache(maxsize=100_000)(self._find_is_one_seen)

    def _are_told(self, news: tuple[str, ...], verbs: tuple[str, ...], scene: Scene) -> tuple[bool | None, ...]:
        """Return of each that may be written whether captions tell such a thing; None where it cannot be.

        Args:
            news: verbs with or without a preposition, or prepositions.
            verbs: their lemmas; empty for prepositions.
            scene: what stands around.
        """
        return tuple([self._is_told(new, verbs[at] if verbs else "", scene) for at, new in enumerate(news)])

    def _is_told(self, new: str, verb: str, scene: Scene) -> bool | None:
        first, _, rest = new.removeprefix("is ").removeprefix("are ").partition(" ")
        verb = verb or (lemmatize(first, "VBG") if first.endswith("ing") else "")
        act, preposition = verb or scene.act, rest if verb else f"{first} {rest}".rstrip()
        if not preposition and scene.following:
            return not scene.beyond or not self.is_strange(act, scene.following, scene.beyond)
        if not preposition or not scene.noun:
            return True
        if scene.noun in WATERS and (
            act == "fly" or (preposition in {"on", "on top of"} and scene.who and self._lives(scene.who))
        ):
            return None
        return all(self.is_usual(each, preposition, scene.noun) for each in (act, scene.who) if each)

    def is_usual(self, thing: str, preposition: str, noun: str) -> bool:
        """Whether captions put such a thing, or a deed, so at a noun, and not much less often than chance would."""
        return self.is_seen(thing, preposition, noun) and not self.is_strange(thing, preposition, noun)

    def _is_strange(self, left: str, preposition: str, noun: str) -> bool:
        """Whether captions put a thing or deed so at a noun much less often than chance would.

        Chance is told by how else they put it at such a noun, and by what else they put it at so, whichever is more.
        """
        seen = self._pool.linked
        of_noun, of_preposition = seen("", "", noun), seen("", preposition, "")
        if not of_noun or not of_preposition:
            return False
        so = seen("", preposition, noun)
        chance = max(seen(left, "", noun) * so / of_noun, seen(left, preposition, "") * so / of_preposition)
        return seen(left, preposition, noun) + 1 < STRANGE * (chance + 1)

    def is_seen(self, thing: str, preposition: str, noun: str) -> bool:
        """Whether captions have such a thing, or one of its kind, in, on or under a noun.

        In and on some of them is the same ("a dog on a train"). Not asked of other prepositions, nor of nouns of which
        captions tell too little.
        """
        return preposition not in _TOUCHING or self._is_one_seen(
            _SOMEBODY if thing in PEOPLE else thing, _TOUCHING[preposition], noun
        )

    def is_put(self, thing: str, preposition: str, noun: str) -> bool:
        """Whether captions put such a thing in, on or under such a noun; False for other prepositions."""
        return any(self._pool.linked(thing, by, noun) >= _PUT for by in _TOUCHING.get(preposition, ()))

    def _find_is_one_seen(self, thing: str, touching: tuple[str, ...], noun: str) -> bool:
        if self._pool.linked("", "", noun) < KNOWN:
            return True
        if touching != _BENEATH and (noun in SEATS or noun in CARRIERS):
            touching = _ON + _IN
        kin = PEOPLE if thing == _SOMEBODY else (thing, *KINDS.get(thing, ()))
        linked = self._pool.linked
        return any(linked(one.rsplit(maxsplit=1)[-1], by, noun) for one in kin for by in touching)
