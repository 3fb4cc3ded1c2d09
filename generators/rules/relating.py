"""REPLACE a relation: another place, another direction, another deed.

Verbs and prepositions give way to what leaves no room for the original ("on a bench" against "beside a bench", "riding a
horse" against "leading a horse"): `placing.py` and `acting.py` tell by what. Among all that a caption offers, one is
drawn by the odds of captions, so that words come in as often as they go out where there is a choice, and the text runs on
as captions do (`knowledge/odds.py`).

Last come rewordings that are false of whatever place or thing, and therefore not to be used more than needed
(`denying.py`).
"""

from collections.abc import Iterator, Sequence

from pairwright.generators.captions.caption import GENDERED, Caption, Outcome
from pairwright.generators.captions.relation_slots import (
    VERBS,
    RelationSlot,
    before_it,
)
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.knowledge.scenes import Scene
from pairwright.generators.rules.acting import deeds, other_deed, verbs_of
from pairwright.generators.rules.denying import denials
from pairwright.generators.rules.having import belongings, beside_it
from pairwright.generators.rules.phrasing import other_phrase, phrasings
from pairwright.generators.rules.placing import other_place, places
from pairwright.generators.rules.pronouns import grounds, landed, other_side, pointed_at, times
from pairwright.generators.words.relations import ROADS
from pairwright.generators.words.wordlists import word_set

_WITH_A_WAY = word_set("look stare gaze glance climb crawl")
_LOOKING = frozenset({"look", "stare", "gaze", "peer"})
_FACES = word_set("ear ears mouth face eye eyes head chest lip lips cheek")


def replace_relation(
    caption: Caption, candidates: Candidates, rng: RandomStream, *, last_resorts: bool = True
) -> Iterator[Outcome]:
    """Exchange a preposition or a verb for one that excludes it, or put one in the place of the other.

    Where nothing can be exchanged, ``last_resorts`` deny the relation, which shows: "without", "has no", "away from".
    """
    offers = [
        *((slot, other_place) for slot in places(caption, candidates)),
        *((slot, other_deed) for slot in deeds(caption, candidates)),
        *((slot, other_phrase) for slot in phrasings(caption, candidates)),
        *((slot, beside_it) for slot in belongings(caption, candidates)),
        *((slot, other_side) for slot in pointed_at(caption, candidates)),
    ]
    offers = [(_weighed(caption, candidates, slot), maker) for slot, maker in offers]
    unseen = []
    for slot, maker in rng.weighted_shuffle(offers, [sum(slot.weights) for slot, _ in offers]):
        seen, rest = _scenes(caption, candidates, slot)
        unseen.append((rest, maker))
        if seen.news:
            yield maker(caption, candidates, seen, rng)
    yield from (_other_way(caption, at) for at in verbs_of(caption))
    yield from _away(caption)
    yield from _apart(caption)
    yield from times(caption, rng)
    yield from landed(caption, candidates)
    yield from grounds(caption)
    yield from (maker(caption, candidates, rest, rng) for rest, maker in unseen if rest.news)
    if last_resorts:
        yield from denials(caption, candidates, rng)


def _weighed(caption: Caption, candidates: Candidates, slot: RelationSlot) -> RelationSlot:
    """Return a slot whose weights also tell how usual the words around go on with what may be written."""
    old, before = " ".join(caption.lower[slot.start : slot.end]), caption.word(slot.start - 1)
    runs = candidates.odds.of_runs(before, old, slot.news, caption.word(slot.end))
    # Squared, since what reads oddly is to be avoided more than evened out.
    return slot._replace(weights=tuple(weight * run * run for weight, run in zip(slot.weights, runs, strict=True)))


def _scenes(caption: Caption, candidates: Candidates, slot: RelationSlot) -> tuple[RelationSlot, RelationSlot]:
    """Return what of a slot captions have of such things, or deeds, at such a place, and what they do not have."""
    doer, after = slot.doer or before_it(caption, slot.start), caption.starting_at(slot.end)
    following = next((found for found in caption.relations if found.start == slot.end), None)
    beyond = caption.starting_at(following.end) if following is not None else None
    told = candidates.scenes.are_told(
        slot.news,
        slot.lemmas,
        Scene(
            who=caption.head(doer) if doer is not None else "",
            act=caption.lemmas[slot.start - 1] if caption.tag(slot.start - 1) in VERBS else "",
            noun=caption.head(after) if after is not None else "",
            following=" ".join(caption.lower[following.start : following.end]) if following is not None else "",
            beyond=caption.head(beyond) if beyond is not None else "",
        ),
    )
    if all(told):
        return slot, slot._replace(news=())
    seen, unseen = ([at for at, each in enumerate(told) if each is wanted] for wanted in (True, False))
    return _of_them(slot, seen), _of_them(slot, unseen)


def _of_them(slot: RelationSlot, kept: Sequence[int]) -> RelationSlot:
    """Return a slot of which only some may be written."""
    return slot._replace(
        news=tuple([slot.news[at] for at in kept]),
        weights=tuple([slot.weights[at] for at in kept]),
        lemmas=tuple([slot.lemmas[at] for at in kept]) if slot.lemmas else (),
    )


def _other_way(caption: Caption, at: int) -> Outcome:
    """Turn the direction of a verb round: "looking down", "climbing up"."""
    new = {"up": "down", "down": "up"}.get(caption.word(at + 1), "")
    follows = caption.tag(at + 2) in {"IN", "TO", "DT", "", ".", "CC"} and caption.word(at + 2) != "of"
    after = caption.starting_at(at + 2)
    same = (
        caption.tokens[at].lemma in _LOOKING and after is not None and caption.head(after) in ROADS
    )  # both are along it
    if not new or not follows or same or caption.tokens[at].lemma not in _WITH_A_WAY:
        return "no_edit"
    return "true_of_image" if caption.words.has(new) else (caption.change(at + 1, at + 2, new),)


def _away(caption: Caption) -> Iterator[Outcome]:
    """Turn somebody away from what he looks out of, or holds to his ear."""
    for at, word in enumerate(caption.lower):
        after = caption.starting_at(at + 1)
        if after is None:
            continue
        head = caption.head(after)
        if word == "out" and caption.lemmas[at - 1] in _LOOKING and head in {"window", "door"}:
            start = at
        elif word == "to" and head in _FACES and not GENDERED.isdisjoint(caption.lower[after.start : after.end]):
            start = at - (caption.word(at - 1) == "up")
        else:
            continue
        if word == "to" and not caption.tag(start - 1).startswith("NN"):
            continue
        said = caption.words.has("away") or not caption.is_whole(after)
        yield "true_of_image" if said else (caption.change(start, at + 1, "away from"),)


def _apart(caption: Caption) -> Iterator[Outcome]:
    """Part what is side by side."""
    for at in range(len(caption.lower) - 2):
        if caption.lower[at : at + 3] == ("side", "by", "side") and caption.word(at + 3) not in {"with", "to", "of"}:
            said = caption.words.has_any(("far", "apart"))
            yield "true_of_image" if said else (caption.change(at, at + 3, "far apart"),)
