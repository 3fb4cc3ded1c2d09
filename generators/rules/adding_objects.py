"""ADD a thing that is not there.

It is one that would be noticed (`ADDABLE`), that captions of the pool have beside the noun that it is added to and in
such company, and that nothing said about the image names or implies (`presence.Implied`). What cannot be proven: that a
thing is absent because nobody mentions it; small things in the background are often passed over.

Adding only what is false would make every negative the longer text. So `both_objects` gives a true addition with the
false one, taken from the image's other captions and boxes (`presence.py` tells what those prove), in the same place, by
the same joint, and with the number of words the same. Nor may the words say which is which: a thing is only added truly
where it would be called absent if nobody had named it (a table in a kitchen never is). Where a thing can only be claimed
to be in the picture, another caption or a box proves the true one, and the false one is of its kind, in no caption and
no box, and not of what goes unsaid in such a scene (a sink in a kitchen).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.context import plural_of
from pairwright.generators.captions.edited import BothOutcome
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.rules.added_places import (
    LONGER,
    SCENES,
    Claim,
    Place,
    claim_for,
    claims,
    indefinite,
    is_drawn,
    is_scene,
    thing_places,
)
from pairwright.generators.rules.presence import (
    Implied,
    forms_in_view,
    thing_of,
    things_in_view,
    things_there,
)
from pairwright.generators.words.nouns import ADDABLE, FIGURES, KINDS, PEOPLE
from pairwright.generators.words.wordlists import word_set

_LOOKED_AT = 2  # phrases of a caption, beside which a thing may be in view
_COMPARED = 3  # things that would do, of which one is taken that goes well with the rest
_NEAREST = 8  # things of about the same length, of which the best is taken
# Beside, in or on these another thing may be said to be by "with"; of other things it would be a part.
_HOLDING = word_set(
    "table desk shelf counter bed couch sofa bench plate bowl tray basket box bag "
    "bus car truck van train boat carriage wagon cart trailer motorcycle sandwich salad coffee cup bathtub fireplace"
)
_NOTICED = frozenset(ADDABLE)
# A caption that says so would be contradicted by somebody who is there as well.
_NOBODY_ELSE = word_set("alone lone lonely solitary empty deserted vacant abandoned nobody")


def add_object(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Add a thing that is not there, but could be beside what it is added to and in such company."""
    places = thing_places(caption)
    for place in rng.shuffled(places):
        nouns = candidates.addable.beside(caption.head(place.phrase), rng)
        joining = (noun for noun in nouns if _joins(caption, candidates, place, noun))
        for noun, reason in _better_first(caption, candidates, _absent(caption, candidates, joining), rng):
            yield place.change(indefinite(noun)) if noun else reason
        yield "no_candidate"
    yield from _absent_from_view(caption, candidates, rng)


def _absent_from_view(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Claim at either end of a caption that the picture has a thing that it has not."""
    found = claims(caption, true=False)
    beside = rng.shuffled(caption.things)[:_LOOKED_AT] if found else []
    for phrase in beside:
        nouns = candidates.addable.beside(caption.head(phrase), rng)
        for noun, reason in _better_first(caption, candidates, _absent(caption, candidates, nouns), rng):
            claim = _claim(caption, candidates, found, [noun], rng) if noun else None
            yield claim.of(indefinite(noun)) if claim is not None else reason or "no_candidate"


def _claim(
    caption: Caption, candidates: Candidates, found: Sequence[Claim], nouns: Sequence[str], rng: RandomStream
) -> Claim | None:
    """Return a claim that suits things as unlike as these may be; None where none does."""
    phrase = caption.starting_at(0)
    begins = _sort(candidates, caption.head(phrase)) if phrase is not None else ""
    alike = all(_sort(candidates, noun) == begins for noun in nouns)
    return claim_for(found, noun=nouns[0], alike=alike, rng=rng)


def _sort(candidates: Candidates, noun: str) -> str:
    if noun in PEOPLE:
        return "person"
    return "beast" if candidates.things.is_alive(noun) else "thing"


def _joins(caption: Caption, candidates: Candidates, place: Place, noun: str) -> bool:
    """Whether a thing reads well where it joins a phrase: in a list among its like, else with what it goes along with."""
    head = caption.head(place.phrase)
    if place.joint == ", ":
        return candidates.things.is_like(noun, head)
    if candidates.things.is_alive(head) or head in _HOLDING:
        return candidates.company.goes_well(noun, head)
    return head in SCENES


def both_objects(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[BothOutcome]:
    """Add a thing that is not there and, in the same place, one that is."""
    places = [place for place in thing_places(caption) if is_scene(caption, place)]
    present = things_there(caption, candidates) if places else []
    for true in rng.shuffled(present):
        for place in (place for place in places if _fits_at(caption, candidates, true, place)):
            false = _absent_like(caption, candidates, true, place, rng)
            yield (place.change(indefinite(false)), place.change(indefinite(true))) if false else "no_candidate"
        yield "no_positive"
    yield from _in_view(caption, candidates, rng)


def _in_view(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[BothOutcome]:
    """Claim at either end of a caption that a thing is in the picture, wherever: one that is not and one that is."""
    found = claims(caption, true=True)
    if not found:
        yield "no_edit"
        return
    present = [form for form in things_in_view(caption, candidates) if _might_be_absent(caption, candidates, form)]
    for true in rng.shuffled(present):
        false = _not_in_view(caption, candidates, true, rng)
        claim = _claim(caption, candidates, found, [thing_of(false), thing_of(true)], rng) if false else None
        yield (claim.of(_as_claimed(false)), claim.of(_as_claimed(true))) if claim is not None else "no_candidate"
    if not present:
        yield "no_positive"


def _might_be_absent(caption: Caption, candidates: Candidates, form: str) -> bool:
    """Whether a thing that is there would be called absent, as others are, if nobody had spoken of it.

    Without this the two sides would hold different words: what is usual ("a table") is never sure to be absent.
    """
    noun, names = thing_of(form), {*form.split(), *thing_of(form).split(), plural_of(thing_of(form))}
    said = [word for line in caption.words.others if names.isdisjoint(line) for word in line]
    if noun not in _NOTICED and candidates.company.belongs_with_any(noun, (*caption.company, *said)):
        return False
    return not candidates.company.is_strange_beside_any(noun, caption.company)


def _as_claimed(form: str) -> str:
    return form if form not in forms_in_view(several=False) else indefinite(form)


def _not_in_view(caption: Caption, candidates: Candidates, true: str, rng: RandomStream) -> str:
    """Return a thing that is not in the picture, written like one that is, usual ones sooner.

    First come the others of its kind, so that both sides speak of the same things: a street against a beach.
    """
    forms = forms_in_view(several=true not in forms_in_view(several=False))
    words, thing = len(true.split()), thing_of(true)
    like = [form for form in forms if len(form.split()) == words]
    kin = [form for form in like if forms[form] in KINDS.get(thing, ()) or thing in KINDS.get(forms[form], ())]
    near = [form for form in like if abs(len(form) - len(true)) <= LONGER + 1]
    implied, company = Implied(caption, candidates), caption.company
    said = [word for line in caption.words.others for word in line]

    def is_absent(noun: str) -> bool:
        return not (
            implied.may_be_there(noun)
            or candidates.names.is_said(noun, "", caption.words)
            or (noun not in _NOTICED and candidates.company.belongs_with_any(noun, (*company, *said)))
        )

    # What is there has to go along with the rest as well, where what is not there does.
    drawn = candidates.usage.drawn_by_use(near, rng) if candidates.company.goes_along(thing, company) else ()
    found = [
        *(
            form
            for form in candidates.usage.drawn_by_use(kin, rng)
            if not candidates.company.is_strange_beside_any(forms[form], company)
        ),
        *(form for form in drawn if candidates.company.goes_along(forms[form], company)),
    ]
    return next((form for form in found if is_absent(forms[form])), "")


def _absent(caption: Caption, candidates: Candidates, nouns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield those of the things that are not there and would fit; a reason where one would not."""
    figures, drawn = not FIGURES.isdisjoint(caption.contents), is_drawn(caption)
    implied, nobody_else = Implied(caption, candidates), not _NOBODY_ELSE.isdisjoint(caption.lower)
    for noun in nouns:
        if nobody_else and candidates.things.is_alive(noun):
            continue
        if noun in FIGURES and not figures:
            continue
        if not ((noun in FIGURES and drawn) or candidates.company.goes_along(noun, caption.company)):
            continue
        if implied.may_be_there(noun) or candidates.names.is_said(noun, "", caption.words):
            yield "", "true_of_image"
        else:
            yield noun, ""


def _better_first(
    caption: Caption, candidates: Candidates, found: Iterator[tuple[str, str]], rng: RandomStream
) -> Iterator[tuple[str, str]]:
    """Yield what `_absent` does, some at a time, of those sooner what goes well with the rest of the caption."""
    while some := list(islice(found, _COMPARED)):
        nouns = [noun for noun, _ in some if noun]
        if len(nouns) == _COMPARED:  # of fewer, all are to have their turn
            nouns = candidates.company.better_first(nouns, caption.company, rng)
        yield from ((noun, "") for noun in nouns)
        yield from (each for each in some if not each[0])


def _absent_like(caption: Caption, candidates: Candidates, true: str, place: Place, rng: RandomStream) -> str:
    """Return a thing that is not there, of about the length of one that is: of those, one that fits well."""
    like = [noun for noun in candidates.addable.like(true, rng) if abs(len(noun) - len(true)) <= LONGER]
    found = (noun for noun, _ in _absent(caption, candidates, like) if noun)
    near = list(islice((noun for noun in found if _fits_at(caption, candidates, noun, place)), _NEAREST))
    return max(near, key=lambda noun: candidates.company.fit(noun, caption.company), default="")


def _fits_at(caption: Caption, candidates: Candidates, noun: str, place: Place) -> bool:
    return candidates.company.stands_beside(noun, caption.head(place.phrase))
