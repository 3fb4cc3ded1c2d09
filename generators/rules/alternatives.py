"""What a caption leaves open by "or": there no edit can be known to be false.

"A cat or a dog" is true where there is a dog, and so is "a horse or a dog". So neither side of an "or" is changed, and
nothing joins it; what both sides have in common is as good a place as any ("near | a cat or a dog", "a black or white |
dog"), and to deny all of it is false ("without a cat or a dog").

Known by tags: a side is the noun phrase, the adjective, or the verb or preposition up to the noun phrase behind it. That
is too much rather than too little, of captions of which one in six hundred says "or".
"""

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.rules.denial import NO_WORD, Denied

_OR = frozenset({"or", "and/or"})
_INEXACT = frozenset({"more", "less", "so", "fewer"})  # "two | or more"
_MARKS = frozenset({",", ".", ";", ":", "!", "?"})
_BEGIN_LONGER = ("VB", "IN", "TO")  # tags of what goes on to a noun


def alternatives_in(caption: Caption) -> tuple[Denied, ...]:
    """Return the stretches of a caption of which only one part need be true, from left to right; none as a rule."""
    if _OR.isdisjoint(caption.lower):
        return ()
    last = len(caption.tokens) - 1
    places = (at for at, word in enumerate(caption.lower) if word in _OR and 0 < at < last)
    return tuple(_open(caption, *_sides(caption, at)) for at in places)


def _open(caption: Caption, start: int, end: int) -> Denied:
    return Denied(NO_WORD, caption.tokens[start].start, caption.tokens[end - 1].end)


def _sides(caption: Caption, at: int) -> tuple[int, int]:
    """Return where the left side of an "or" starts and the right one ends, as tokens."""
    if caption.word(at + 1) in _INEXACT:
        return at - 1, at + 2
    around = next((phrase for phrase in caption.phrases if phrase.start < at < phrase.end), None)
    if around is not None:
        return _qualities(around, at)
    return _left(caption, at), _right(caption, at)


def _qualities(phrase: NounPhrase, at: int) -> tuple[int, int]:
    """Return the adjectives of a phrase that an "or" joins: "a | black or white | dog"."""
    return min((*phrase.adjectives, at - 1)), max((*phrase.adjectives, at + 1)) + 1


def _left(caption: Caption, at: int) -> int:
    before_or = at - (caption.word(at - 1) == ",")
    phrase = caption.ending_at(before_or)
    start = phrase.start if phrase is not None else max(before_or - 1, 0)
    while caption.word(start - 1) == "," and (before := caption.ending_at(start - 1)) is not None:
        start = before.start
    kind = caption.tag(at + 1)[:2]
    if kind not in _BEGIN_LONGER:
        return start
    for back in range(start, -1, -1):  # "| riding a horse or walking", "| on a bed or on a couch"
        if caption.word(back) in _MARKS:
            break
        if caption.tag(back)[:2] == kind:
            return back
    return start


def _right(caption: Caption, at: int) -> int:
    whole = caption.starting_at(at + 1)
    if whole is not None:
        return whole.end
    if caption.tag(at + 1)[:2] not in _BEGIN_LONGER:
        return at + 2
    following = next((phrase for phrase in caption.phrases if phrase.start > at), None)
    if following is None or not _MARKS.isdisjoint(caption.lower[at : following.start]):
        return at + 2
    return following.end
