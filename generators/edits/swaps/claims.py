"""Claims of a caption: what a thing does, where it is and what it has.

"A man in a hat sits next to a dog" claims (man, in, hat) and (man, sit next to, dog). A claim is read from the words
before a noun phrase: a preposition of one or several words, a verb, or both, and the noun phrase right before them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.lexicon.protocols import Pool
from pairwright.generators.lexicon.relations import load_relations

_VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VBN"})
_LONGEST = 4  # words of a preposition
_BETWEEN = frozenset({"RB", "RP"})
_RELATIVE = frozenset({"that", "which", "who", "is", "are", "was", "were", "being"})


ANYBODY = ("man", "woman", "person", "boy", "girl", "guy", "lady", "child", "kid", "people")


Link = tuple[str, str, str]


class Claim(NamedTuple):
    """What is said of a thing.

    Attributes:
        subject: the noun phrase right before; None if there is none.
        verb: lemma; empty if there is none.
        preposition: as written in lower case; empty for the object of a verb.
        thing: the noun phrase behind, None if a verb has no object.
        start: first token of the verb or preposition.
    """

    subject: NounPhrase | None
    verb: str
    preposition: str
    thing: NounPhrase | None
    start: int

    @property
    def relation(self) -> str:
        """Key of verb and preposition, as relation phrases have it."""
        return f"{self.verb} {self.preposition}".strip()


def claims_of(caption: Caption) -> list[Claim]:
    """Return the claims of a caption, from left to right."""
    found = [claim for phrase in caption.phrases for claim in _claim_before(caption, phrase)]
    with_object = {claim.start for claim in found}
    alone = [
        Claim(subject, caption.lemmas[at], "", None, at)
        for at, tag in enumerate(caption.tags)
        if tag in _VERBS and at not in with_object and (subject := _subject(caption, at)) is not None
    ]
    return sorted([*found, *alone], key=lambda claim: claim.start)


def _claim_before(caption: Caption, phrase: NounPhrase) -> Iterator[Claim]:
    start = _preposition_before(caption, phrase.start)
    preposition = " ".join(caption.lower[start : phrase.start]) if start >= 0 else ""
    begin = start if start >= 0 else phrase.start
    at = begin - 1
    while caption.tag(at) in _BETWEEN:
        at -= 1
    verb = at if caption.tag(at) in _VERBS and caption.word(at) not in _RELATIVE else -1
    if preposition or verb >= 0:
        begin = verb if verb >= 0 else begin
        lemma = caption.lemmas[verb] if verb >= 0 else ""
        yield Claim(_subject(caption, begin), lemma, preposition, phrase, begin)


def _preposition_before(caption: Caption, end: int) -> int:
    """Return the first token of the longest preposition that ends before a token; -1 if there is none."""
    length_at = load_relations().match_preposition
    found = (at for at in range(max(0, end - _LONGEST), end) if at + length_at(caption.lower, at) == end)
    return next(found, -1)


def _subject(caption: Caption, at: int) -> NounPhrase | None:
    """Return the noun phrase right before a token, auxiliaries and adverbs between."""
    while caption.word(at - 1) in _RELATIVE or caption.tag(at - 1) in _BETWEEN:
        at -= 1
    return caption.ending_at(at)


def links_of(claim: Claim, caption: Caption) -> list[Link]:
    """Return the pairs and triples of words in a claim that pool statistics count: (left, preposition, right).

    These are a subject or verb with its preposition and the noun behind it, a verb with its object, and a subject with
    its verb; the preposition of the last two is empty.
    """
    subject, thing = (caption.head(each) if each is not None else "" for each in (claim.subject, claim.thing))
    links = [(left, claim.preposition, thing) for left in (subject, claim.verb) if claim.preposition and left]
    if claim.verb and thing and not claim.preposition:
        links.append((claim.verb, "", thing))
    if claim.verb and subject:
        links.append((subject, "", claim.verb))
    return links


def link_count(pool: Pool, left: str, preposition: str, right: str) -> int:
    """Return how many captions of the pool have a link; what one person does, another may do."""
    lefts = ANYBODY if left in ANYBODY else (left,)
    if preposition:
        return sum(pool.linked(each, preposition, right) for each in lefts)
    rights = ANYBODY if right in ANYBODY else (right,)
    return sum(pool.adjacency(one, other) for one in lefts for other in rights)
