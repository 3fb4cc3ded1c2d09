"""ADD: a thing that is not there, or an attribute that is not true.

A false thing is one that would be noticed (`ADDABLE`), that captions of the pool have beside the noun that it is added
to and in such company, and that nothing said about the image names or implies (`presence.Implied`). A false attribute
is contradicted by a caption of the same image ("a red bus" forbids "blue"; sizes come last, being a matter of opinion);
only where captions say nothing of a thing, it is one so rare of such things in the pool (a purple bus) that five
captions would hardly pass over it: a lively colour or a pattern, since a gray cat or a metal table goes unremarked.

What cannot be proven: that a thing is absent because nobody mentions it (small things in the background are often
passed over), and that a rare attribute is not this one's. A contradicted attribute is as sure as the caption that
contradicts it.

Adding only what is false would make every negative the longer text. So each place also has its true additions, taken
from the image's other captions and boxes (`presence.py` tells what those prove): `both_sides` gives the two together,
put in the same place, by the same joint, and with the number of words the same. Nor may the words say which is which: a
thing is only added truly where it would be called absent if nobody had named it (a table in a kitchen never is), and of
attributes, pairs are taken as often as their reverse. True things are added at the end of a
caption only, where they belong to the scene ("on a street with a bus"). Where that cannot be, both sides claim no more
than that a thing is in the picture ("..., with a bus in view", "A bus and a ...", "A bus can be seen while a ..."): then another caption or a box proves the true one, and
the false one is of its kind, in no caption and no box, and not of what goes unsaid in such a scene (a sink in a kitchen).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from pairwright.generators.adjective_candidates import adjective_is_said
from pairwright.generators.attributes import UNTOUCHED, exclude_each_other, opposed
from pairwright.generators.attributes import place as class_of
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import ANAPHORS, Caption, Outcome
from pairwright.generators.claims import CLAIMS, SAID_BY_CLAIMS, front_claims
from pairwright.generators.context import plural_of
from pairwright.generators.draws import Draws
from pairwright.generators.edited import BothOutcome
from pairwright.generators.edits import Change
from pairwright.generators.language.inflection import article
from pairwright.generators.nouns import ADDABLE, FIGURES, GATHERINGS, KINDS, MASS, OF_PEOPLE, SURROUNDINGS
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.presence import (
    Implied,
    attributes_there,
    forms_in_view,
    thing_of,
    things_in_view,
    things_there,
)
from pairwright.generators.wordlists import word_set

_INDEFINITE = word_set("a an some several two three four five six another many")
_HAVING = word_set("with has have having and holding carrying featuring containing wearing plus")
_LONGER = 2  # letters
_FRONT = 2  # times as often before a caption as behind it, where it may stand at both ends: most are behind anyway
_LOOKED_AT = 2  # phrases of a caption, beside which a thing may be in view
_NEAREST = 8  # things of about the same length, of which the best is taken
_CLOSED = frozenset({"", ".", "!", ";"})
_GOES_ON = frozenset({"IN"})  # "a man with a dog | near a lake"
_WHERE = word_set(
    "on in at near by beside behind under over along across through down outside inside against above below"
)
_SIDES = word_set("front top side back middle left right next close inside outside")
# Beside, in or on these another thing may be said to be by "with"; of other things it would be a part.
_HOLDING = word_set(
    "table desk shelf counter bed couch sofa bench plate bowl tray basket box bag building house church tower tree fence wall "
    "window bus car truck van train boat carriage wagon cart trailer motorcycle sandwich salad coffee cup bathtub fireplace"
)
_NOTICED = frozenset(ADDABLE)
_SCENES = SURROUNDINGS | FIGURES
_PARTS_OF_NOUNS = frozenset({"JJ", "VB", "HY", "NN", "RB", "RP", "AF"})  # "pick up truck", "sub way"
_FINITE = frozenset({"is", "are", "was", "were", "has", "have"})
_NATURAL = word_set("water ocean sea snow sand river lake pond wave air cloud grass field dirt rock beach")
_UNREMARKED = frozenset({"brown", "gray", "black", "white"})  # colours that captions pass over


class Claim(NamedTuple):
    """Words that may stand for code points ``start`` to ``end``, with braces for what they say is in the picture."""

    start: int
    end: int
    wording: str

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


def add_object(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    """Add a thing that is not there, but could be beside what it is added to and in such company."""
    places = _thing_places(caption)
    for place in rng.shuffled(places):
        nouns = candidates.addable.beside(caption.head(place.phrase), rng)
        joining = (noun for noun in nouns if _joins(caption, candidates, place, noun))
        for noun, reason in _absent(caption, candidates, joining):
            yield place.change(_indefinite(noun)) if noun else reason
        yield "no_candidate"
    yield from _absent_from_view(caption, candidates, rng)


def _absent_from_view(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    """Claim at either end of a caption that the picture has a thing that it has not."""
    claims = _claims(caption)
    beside = rng.shuffled(caption.things)[:_LOOKED_AT] if claims else []
    for phrase in beside:
        nouns = candidates.addable.beside(caption.head(phrase), rng)
        for noun, reason in _absent(caption, candidates, nouns):
            yield rng.choice(claims).of(_indefinite(noun)) if noun else reason


def _joins(caption: Caption, candidates: Candidates, place: Place, noun: str) -> bool:
    """Whether a thing reads well where it joins a phrase: in a list among its like, else with what it goes along with."""
    head = caption.head(place.phrase)
    if place.joint == ", ":
        return candidates.things.is_like(noun, head)
    if candidates.things.is_alive(head) or head in _HOLDING:
        return candidates.company.goes_well(noun, head)
    return head in _SCENES


def add_attribute(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    """Add an attribute that is not true: what captions contradict first, then what would be rare of such a thing."""
    places = _attribute_places(caption)
    unsaid: list[Place] = []
    for place in rng.shuffled(places):
        said = _said_of(caption, candidates, place.phrase)
        if said:
            yield from _each(place, _contradicted(caption, candidates, place.phrase, said, rng))
        else:
            unsaid.append(place)
    for place in unsaid:
        yield from _each(place, _rare(caption, candidates, place.phrase, rng))


def both_objects(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[BothOutcome]:
    """Add a thing that is not there and, in the same place, one that is."""
    places = [place for place in _thing_places(caption) if _is_scene(caption, place)]
    present = things_there(caption, candidates) if places else []
    for true in rng.shuffled(present):
        for place in (place for place in places if _fits_at(caption, candidates, true, place)):
            false = _absent_like(caption, candidates, true, place, rng)
            yield (place.change(_indefinite(false)), place.change(_indefinite(true))) if false else "no_candidate"
        yield "no_positive"
    yield from _in_view(caption, candidates, rng)


def _in_view(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[BothOutcome]:
    """Claim at either end of a caption that a thing is in the picture, wherever: one that is not and one that is."""
    claims = _claims(caption)
    if not claims:
        yield "no_edit"
        return
    present = [form for form in things_in_view(caption, candidates) if _might_be_absent(caption, candidates, form)]
    for true in rng.shuffled(present):
        false = _not_in_view(caption, candidates, true, rng)
        claim = rng.choice(claims)
        yield (claim.of(_as_claimed(false)), claim.of(_as_claimed(true))) if false else "no_candidate"
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


def _claims(caption: Caption) -> list[Claim]:
    """Return the claims that may be put to a caption, at either end; one at the front twice as often as all at the end.

    A claim that has a word of the caption's own is none of them ("a view of a street, with a dog in view").
    """
    end = 0 if _is_drawn(caption) else _end(caption.pair.caption)
    own = {*caption.words.own}
    last = [Claim(end, end, text) for text in CLAIMS if end and SAID_BY_CLAIMS.isdisjoint({*text.split()} & own)]
    first = _claims_at_front(caption)
    return last + first * max(1, _FRONT * len(last))


def _claims_at_front(caption: Caption) -> list[Claim]:
    phrase = caption.starting_at(0)
    if phrase is None or not FIGURES.isdisjoint(caption.contents) or caption.pair.caption.rstrip().endswith("?"):
        return []
    if caption.head(phrase) in SURROUNDINGS or not caption.is_whole(phrase):
        return []
    if not (caption.is_thing(phrase) or caption.head(phrase) in GATHERINGS):
        return []
    opening = caption.tokens[0]
    return [
        Claim(opening.start, opening.end, text + caption.lower[0])
        for text in front_claims(caption.lower, caption.tags, phrase.end)
    ]


def _end(text: str) -> int:
    """Return where a caption's last word ends, before a full stop; 0 where it ends in another way."""
    bare = text.rstrip().removesuffix(".").rstrip()
    return len(bare) if bare[-1:].isalnum() and "?" not in bare else 0


def _as_claimed(form: str) -> str:
    return form if form not in forms_in_view(several=False) else _indefinite(form)


def _not_in_view(caption: Caption, candidates: Candidates, true: str, rng: Draws) -> str:
    """Return a thing that is not in the picture, written like one that is, usual ones sooner.

    First come the others of its kind, so that both sides speak of the same things: a street against a beach.
    """
    forms = forms_in_view(several=true not in forms_in_view(several=False))
    words, thing = len(true.split()), thing_of(true)
    like = [form for form in forms if len(form.split()) == words]
    kin = [form for form in like if forms[form] in KINDS.get(thing, ()) or thing in KINDS.get(forms[form], ())]
    near = [form for form in like if abs(len(form) - len(true)) <= _LONGER + 1]
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


def both_attributes(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[BothOutcome]:
    """Add an attribute that is not true and, in the same place, one that is."""
    places = _attribute_places(caption)
    for place in rng.shuffled(places):
        known = attributes_there(caption, candidates, place.phrase)
        if not known:
            yield "no_positive"
            continue
        true = rng.choice(known)
        said = _said_of(caption, candidates, place.phrase)
        untrue = [word for word, _ in _contradicted(caption, candidates, place.phrase, said, rng) if word]
        near = [word for word in untrue if _excludes(word, true) and abs(len(word) - len(true)) <= _LONGER]
        false = candidates.adjectives.told_instead(true, near, caption.head(place.phrase), rng)
        yield (place.change(false), place.change(true)) if false else "no_candidate"


BOTH_SIDES: dict[str, Callable[[Caption, Candidates, Draws], Iterator[BothOutcome]]] = {
    "add-object": both_objects,
    "add-attribute": both_attributes,
}


def _each(place: Place, words: Iterator[tuple[str, str]]) -> Iterator[Outcome]:
    for word, reason in words:
        yield place.change(word) if word else reason


def _indefinite(noun: str) -> str:
    return f"{article(noun)} {noun}"


def _thing_places(caption: Caption) -> list[Place]:
    found = [_thing_place(caption, phrase) for phrase in caption.things]
    return [place for place in found if place is not None]


def _thing_place(caption: Caption, phrase: NounPhrase) -> Place | None:
    """Return how a thing joins a phrase: in a list with a comma, after "with" by "and", else by "with"."""
    after, at = caption.word(phrase.end), caption.tokens[phrase.end - 1].end
    if not (_is_indefinite(caption, phrase) or (after in _CLOSED and _may_end(caption, phrase))):
        return None
    if caption.head(phrase) in FIGURES and _is_ambiguous(caption, phrase):
        return None
    if after in {",", "and"}:
        following = caption.starting_at(phrase.end + 1 + (caption.word(phrase.end + 1) == "and"))
        return Place(phrase, at, ", ") if following is not None and _is_indefinite(caption, following) else None
    joint = _joint(caption, phrase)
    return Place(phrase, at, joint) if joint else None


def _joint(caption: Caption, phrase: NounPhrase) -> str:
    """Return " with " or " and ", or an empty string where neither reads well."""
    before, after = caption.word(phrase.start - 1), caption.word(phrase.end)
    goes_on = after not in _CLOSED
    if goes_on and not (caption.tag(phrase.end) in _GOES_ON and after in _WHERE and _leads_on(caption, phrase)):
        return ""
    if before in {"and", ",", "or"} or (goes_on and before in _HAVING):
        return ""
    return " and " if before in _HAVING else " with "


def _leads_on(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether where a phrase is comes after it; "a girl | in a shirt" would put the shirt on what is added."""
    following = caption.starting_at(phrase.end + 1)
    return following is not None and caption.head(following) in _SCENES


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


def _attribute_places(caption: Caption) -> list[Place]:
    """Return where an adjective may stand: before nouns that are not described yet."""
    heads = [caption.head(phrase) for phrase in caption.phrases]
    return [
        Place(phrase, caption.tokens[phrase.nouns[0]].start, "", " ")
        for phrase in caption.things
        if not phrase.adjectives
        and not phrase.joined
        and (phrase.determiner >= 0 or phrase.count >= 0 or caption.plural(phrase) or caption.head(phrase) in MASS)
        and phrase.nouns[0] > 0
        and phrase.nouns[0] == (max(phrase.determiner, phrase.count) + 1 or phrase.start)
        and heads.count(caption.head(phrase)) == 1
        # "the street is empty" describes it already
        and not (caption.word(phrase.end) in _FINITE and caption.tag(phrase.end + 1) in {"JJ", "RB"})
        and phrase.nouns[0] - 1 not in caption.parts
        and caption.tag(phrase.nouns[0] - 1)[:2] not in _PARTS_OF_NOUNS
    ]


def _is_drawn(caption: Caption) -> bool:
    """Whether a caption tells of nothing but figures, of which any may be beside any."""
    return bool(caption.things) and all(caption.head(phrase) in FIGURES for phrase in caption.things)


def _absent(caption: Caption, candidates: Candidates, nouns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield those of the things that are not there and would fit; a reason where one would not."""
    figures, drawn = not FIGURES.isdisjoint(caption.contents), _is_drawn(caption)
    implied = Implied(caption, candidates)
    for noun in nouns:
        if noun in FIGURES and not figures:
            continue
        if not ((noun in FIGURES and drawn) or candidates.company.goes_along(noun, caption.company)):
            continue
        if implied.may_be_there(noun) or candidates.names.is_said(noun, "", caption.words):
            yield "", "true_of_image"
        else:
            yield noun, ""


def _absent_like(caption: Caption, candidates: Candidates, true: str, place: Place, rng: Draws) -> str:
    """Return a thing that is not there, of about the length of one that is: of those, one that fits well."""
    like = [noun for noun in candidates.addable.like(true, rng) if abs(len(noun) - len(true)) <= _LONGER]
    found = (noun for noun, _ in _absent(caption, candidates, like) if noun)
    near = list(islice((noun for noun in found if _fits_at(caption, candidates, noun, place)), _NEAREST))
    return max(near, key=lambda noun: candidates.company.fit(noun, caption.company), default="")


def _fits_at(caption: Caption, candidates: Candidates, noun: str, place: Place) -> bool:
    return candidates.company.stands_beside(noun, caption.head(place.phrase))


def _is_scene(caption: Caption, place: Place) -> bool:
    """Whether what is added at a place belongs to the whole scene: at the end, after where it is or what it holds."""
    phrase = place.phrase
    if caption.word(phrase.end) not in _CLOSED:
        return False
    before, side = caption.word(phrase.start - 1), caption.word(phrase.start - 2)
    owner = caption.ending_at(phrase.start - 1)
    holds = owner is not None and caption.head(owner) in SURROUNDINGS and place.joint == " and "
    opens = before in _WHERE or phrase.start == 0 or (before in {"of", "to"} and side in _SIDES)
    return holds or (place.joint == " with " and opens)


def _said_of(caption: Caption, candidates: Candidates, phrase: NounPhrase) -> list[str]:
    """Return the adjectives that other captions put right before the noun."""
    nouns = tuple(caption.lower[at] for at in phrase.nouns)
    head = caption.head(phrase)
    found = [
        line[at - 1]
        for line in caption.words.others
        if nouns[0] in line
        for at, word in enumerate(line)
        if word == nouns[0]
        and at
        and line[at : at + len(nouns)] == nouns
        and candidates.usage.is_adjective(line[at - 1], head)
    ]
    return [word for word in dict.fromkeys(found) if word not in UNTOUCHED]


def _contradicted(
    caption: Caption, candidates: Candidates, phrase: NounPhrase, said: Sequence[str], rng: Draws
) -> Iterator[tuple[str, str]]:
    """Yield attributes that exclude what captions say of a phrase, sizes last; a reason where one may be true."""
    known = candidates.adjectives.attributes_of(caption.head(phrase))
    words = [word.text for word in known if any(_excludes(word.text, other) for other in said)]
    drawn = sorted(rng.shuffled(words), key=_is_size)
    return _checked(caption, phrase, drawn)


def _rare(caption: Caption, candidates: Candidates, phrase: NounPhrase, rng: Draws) -> Iterator[tuple[str, str]]:
    """Yield attributes that captions would hardly pass over; a reason where one may be true."""
    head = caption.head(phrase)
    told = head not in OF_PEOPLE and not candidates.things.is_alive(head) and head not in _NATURAL
    rare = [word.text for word in candidates.adjectives.attributes_of(head) if word.rare and told]
    words = [word for word in rare if _is_remarked(word)]
    return _checked(caption, phrase, rng.shuffled(words))


def _checked(caption: Caption, phrase: NounPhrase, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    if caption.words.several(caption.head(phrase)) and not caption.plural(phrase):
        yield "", "true_of_image"
        return
    if not words:
        yield "", "no_candidate"
    for word in words:
        yield ("", "true_of_image") if adjective_is_said(word, caption.words) else (word, "")


def _is_remarked(word: str) -> bool:
    """Whether captions would hardly pass over a word of a colour, material or pattern that is rare."""
    found = class_of(word)
    return found is not None and found.group != "material" and found.concept not in _UNREMARKED


def _is_size(word: str) -> bool:
    found = class_of(word)
    return found is None or found.group == "size"


def _excludes(word: str, other: str) -> bool:
    return exclude_each_other(word, other) or opposed(word, other)
