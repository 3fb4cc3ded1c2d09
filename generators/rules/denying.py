"""REPLACE a relation by its denial: a thing is taken away ("without", "has no"), or put "far from" where it is.

False of whatever place or thing, and for that reason the last resort: whoever reads texts alone sees through it. What is
taken away takes along what is joined to it: "a room without chairs or a table".
"""

from collections.abc import Iterator

from pairwright.generators.captions.box_truth import place_in_doubt
from pairwright.generators.captions.caption import ANAPHORS, Caption, Outcome
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.captions.relation_slots import (
    VERBS,
    before_it,
    has_none_beside,
    is_bound,
    is_named,
    is_place,
    is_worn,
    others_there,
)
from pairwright.generators.edits.realisation import Change
from pairwright.generators.edits.rng import RandomStream
from pairwright.generators.knowledge.candidates import Candidates
from pairwright.generators.language.inflection import article
from pairwright.generators.rules.acting import lives
from pairwright.generators.rules.having import HAVING_LONGER, UNCERTAIN
from pairwright.generators.rules.placing import IN, MEDIA, OUTSIDE
from pairwright.generators.rules.pronouns import EACH_OTHER
from pairwright.generators.words.attributes import is_colour
from pairwright.generators.words.nouns import FIGURES, GATHERINGS, MASS
from pairwright.generators.words.relations import AWAY, ENCLOSED, EVENTS, FAR, NO_PLACE, NOT_FAR, ON_RAILS, RAILS, Found
from pairwright.generators.words.wordlists import word_set

_NEVER_FAR = (
    MEDIA
    | FIGURES
    | NO_PLACE
    | EVENTS
    | word_set("floor language manner look watch setting rest verge stance position ground snow dirt sand ice mud")
)
_HAS = word_set("has have contains contain includes include")
_HAVING = _HAS | {"with"}
_ARTICLES = frozenset({"a", "an"})
_SOME = word_set("some several many various multiple numerous")  # "without any", and not "without some"
_AMOUNTS = word_set(
    "lot lots bunch plenty variety assortment array arrangement selection number amount couple pair pile"
)
_SORTED = word_set("different various assorted mixed")  # "a variety of different dishes"
_KINDS = word_set("kind type sort piece")  # "many pieces of furniture", but "a piece of cake"
# What is no thing to be moved, and can be had all the same.
_HAD = word_set("item object thing number word letter picture writing dirt pile row piece reflection shade pattern")
_PASSING = word_set("moment blast time fun chance day")  # "a dog and a cow have a | moment"
_BEFORE_HAS = frozenset({"WDT", "WP", "CC", "RB", "PRP", "DT"})
_HAVING_LONGER_BEGINS = frozenset(words[0] for words in HAVING_LONGER)
_GONE = word_set("missing without lacks lack lacking removed")
_ONE = frozenset({"one", "1"})
_GOES_ON = frozenset({"VBG", "VBN", "WDT", "WP"})
_UP = word_set("up down out on off away inside")  # "their cameras | up taking pictures"
_IN_COMPANY = word_set(
    "talk speak interact mix chat fight compete work do deal help be have fill cover line load wrestle go come end meet"
)
_SHOWN = word_set("show see depict picture display serve")
_NEARLY = frozenset({"half", "almost", "nearly"})
_HURDLES = word_set("hurdle obstacle jump bar rail pole fence hill")
_GOING = word_set(
    "walk run go ride drive fly sail move travel head pull turn swim jog march roll race glide drift hop crawl climb jump "
    "ski skate skateboard snowboard surf come roam trot gallop hike step stroll navigate cruise push drag lead carry"
)
_AIMING = word_set("swing throw hit kick aim shoot toss pitch")
_THERE = word_set("on upon atop in inside within at") | {"on top of", "inside of"}
# One can be outside these, as captions say of few ("outside a pasture").
_AREAS = ENCLOSED | word_set(
    "area neighborhood suburb pasture district section space garden jungle woods meadow canal bay desert clearing region "
    "courtyard backyard outfield greenhouse lobby corral paddock stall cemetery canyon village hall foyer"
)
_MEASURES = word_set("very so right just directly straight really too almost out over up down half high low deep")


def denials(caption: Caption, candidates: Candidates, rng: RandomStream) -> Iterator[Outcome]:
    """Deny what a caption says of things and places."""
    yield from _without(caption, candidates)
    for found in rng.shuffled(caption.relations):
        each_other = caption.lower[found.end : found.end + 2] in EACH_OTHER
        yield _far_apart(caption, found) if each_other else _far(caption, candidates, found)


def _without(caption: Caption, candidates: Candidates) -> Iterator[Outcome]:
    for at, word in enumerate(caption.lower):
        if word in _HAS:
            yield _has_no(caption, candidates, at)
        elif word == "with":
            yield _lacking(caption, candidates, at)
        elif word == "in":
            yield _undressed(caption, candidates, at)
    for at, word in enumerate(caption.lower):
        for size in (1, 2) if word in _HAVING_LONGER_BEGINS else ():
            if caption.lower[at : at + size] in HAVING_LONGER and (word != "full" or caption.tag(at) == "JJ"):
                yield _lacking(caption, candidates, at, size)


def _undressed(caption: Caption, candidates: Candidates, at: int) -> Outcome:
    """Take away what somebody is dressed in ("a man in a hat")."""
    who, worn = caption.ending_at(at), caption.starting_at(at + 1)
    if who is None or worn is None or not is_worn(caption, worn) or not lives(caption, candidates, who):
        return "no_edit"
    return _lacking(caption, candidates, at)


def _has_no(caption: Caption, candidates: Candidates, at: int) -> Outcome:
    """Let a thing have none of what it is said to have ("has no tail")."""
    after = caption.starting_at(at + 1)
    before = caption.tag(at - 1)
    if after is None or not (before.startswith("NN") or before in _BEFORE_HAS):
        return "no_edit"
    if not candidates.usage.is_written("no"):
        return "no_candidate"
    thing, first = _of_an_amount(caption, after), caption.word(after.start)
    if thing is not None:
        return _none_at_all(caption, candidates, (at, thing), f"{caption.word(at)} no")
    few = first == "a" and caption.word(after.start + 1) == "few"
    gone = 2 if few else int(after.count == after.start or first in _ARTICLES | _SOME)
    owned = after.determiner >= 0 and not gone  # "has the ball", "has its mouth open"
    if owned or _stays(caption, after, at, 1, gone=gone):
        return "not_grammatical"
    change = caption.change(at, _past_sorts(caption, after.start + gone), f"{caption.word(at)} no")
    return _all_of(caption, after, (change, *_with_or(caption, candidates, after, at)))


def _lacking(caption: Caption, candidates: Candidates, at: int, size: int = 1) -> Outcome:
    """Take away what something is said to have; the last resort, since it reads as a denial."""
    if size == 1 and caption.lower[at - 1 : at + 1] in HAVING_LONGER:
        return "no_edit"  # "stuffed without sauce"
    described = caption.tag(at + size) == "VBN"  # "with | arched doorways"
    after = caption.starting_at(at + size + described)
    if after is None or not _is_had(caption, at, size) or not candidates.usage.is_written("without"):
        return "no_edit"
    thing = _of_an_amount(caption, after)
    if thing is not None:
        fits = caption.tag(at - 1).startswith("NN") or size > 1
        return _none_at_all(caption, candidates, (at, thing), "without any") if fits else "not_grammatical"
    amount = _amount(caption, after)
    if _stays(caption, after, at, size, gone=bool(amount)):
        return "not_grammatical"
    change = caption.change(at, _past_sorts(caption, at + size + bool(amount)), f"without {amount}".rstrip())
    return _all_of(caption, after, (change, *_with_or(caption, candidates, after, at)), any_of_it=amount == "any")


def _past_sorts(caption: Caption, start: int) -> int:
    """Return where a thing begins that is denied whatever its sort: not only "without any | different | boats"."""
    return start + (caption.word(start) in _SORTED)


def _is_had(caption: Caption, at: int, size: int) -> bool:
    """Whether the words at a token say that something has what comes next, or does what it does with it."""
    word, before = caption.word(at), caption.tag(at - 1)
    had = before.startswith("NN") or (before in {"WDT", "WP"} and word != "with")
    acts = word == "with" and before in {"VBG", "VBZ", "VBP"} and caption.lemmas[at - 1] not in _IN_COMPANY
    shown = word == "with" and before == "VBN" and caption.lemmas[at - 1] in _SHOWN
    return had or acts or shown or (size > 1 and caption.word(at - 1) in {"is", "are"})


def _all_of(caption: Caption, thing: NounPhrase, changes: tuple[Change, ...], *, any_of_it: bool = False) -> Outcome:
    """Return the changes, or why they are not to be made: "any" goes with no "and a", and what is gone may be gone."""
    if any_of_it and (_counts_on(caption, thing) or (len(changes) == 1 and _goes_on_with_one(caption, thing))):
        return "not_grammatical"
    return "true_of_image" if caption.words.has_any(_GONE) else changes


def _of_an_amount(caption: Caption, owned: NounPhrase) -> NounPhrase | None:
    """Return what there is a lot of, or are many kinds of, where a phrase says so ("lots of | toys")."""
    amount = caption.head(owned) in _AMOUNTS or (caption.head(owned) in _KINDS and caption.plural(owned))
    return caption.starting_at(owned.end + 1) if amount and caption.word(owned.end) == "of" else None


def _amount(caption: Caption, thing: NounPhrase) -> str:
    """Return what denies all of what a phrase counts, not only that there are so many; empty where it counts nothing."""
    word, beyond = caption.word(thing.start), caption.word(thing.start + 1)
    if word in _SOME or (thing.count == thing.start and word not in _ONE):
        return "any"
    return article(beyond) if thing.count == thing.start and beyond != "way" else ""  # "without a one way sign"


def _stays(caption: Caption, thing: NounPhrase, at: int, size: int, *, gone: int) -> bool:
    """Whether what is had cannot be taken away in words that read well."""
    inside, after, beyond = (
        caption.lower[thing.start + gone : thing.end],
        caption.word(thing.end),
        caption.tag(thing.end + 1),
    )
    return (
        caption.head(thing) in _PASSING
        or not (is_named(caption, thing) or (caption.word(at) in _HAS and caption.head(thing) in _HAD))
        or not caption.is_whole(thing)
        or not (_SOME | UNCERTAIN).isdisjoint(inside)
        or (thing.count == thing.start and not gone and caption.word(thing.start + 1) != "way")
        or caption.tag(thing.end)[:2] in {"JJ", "RB", "RP"}
        or (after in _UP and beyond.startswith("VB"))
        or (size > 1 and caption.word(at - 1) in _NEARLY)  # "half full of"
        or has_none_beside(caption, thing)
        or (after == "and" and beyond == "VBG")  # "with a hat and wearing a tie"
        or (after == "with" and beyond == "PRP$")  # "with his left hand"
        or (caption.tag(thing.start) == "PRP$" and caption.head(thing) in NO_PLACE)  # "with his head in his hands"
    )


def _none_at_all(caption: Caption, candidates: Candidates, place: tuple[int, NounPhrase], new: str) -> Outcome:
    """Take away what there is a lot of ("with lots of | toys")."""
    at, thing = place
    alone = thing.determiner < 0 and thing.count < 0 and caption.is_whole(thing) and is_named(caption, thing)
    many = caption.plural(thing) or caption.head(thing) in MASS
    if not (alone and many):
        return "not_grammatical"
    if not all(map(candidates.usage.is_written, new.split())):
        return "no_candidate"
    start = thing.start + (caption.word(thing.start) in _SORTED)
    changes = (caption.change(at, start, new), *_with_or(caption, candidates, thing, at))
    return _all_of(caption, thing, changes, any_of_it=new.endswith("any"))


def _with_or(caption: Caption, candidates: Candidates, thing: NounPhrase, at: int) -> tuple[Change, ...]:
    """Return the change of the "and" that joins a thing to what is missing as well: "without a bed | or a lamp".

    What is joined to the owner is not missing ("a man without a hat and a woman"), nor is what goes on to do something.
    """
    joined, ends = thing, thing.end
    while (following := caption.starting_at(ends + (caption.word(ends) == ","))) is not None:
        joined = following
        ends = joined.end
    ends += caption.word(ends) == ","
    misread = caption.tag(ends + 1) in {"VB", "VBN"}  # "and | stainless steel appliances"
    last = caption.starting_at(ends + 1 + misread) if caption.word(ends) == "and" else None
    if last is None or caption.tag(last.head) not in {"NN", "NNS"}:
        return ()
    owner, somebody = before_it(caption, at), candidates.things.is_alive(caption.head(last))
    lives_on = (somebody or caption.head(last) in GATHERINGS) and (owner is None or lives(caption, candidates, owner))
    has = caption.word(at) in _HAS
    if lives_on or caption.tag(last.end) in _GOES_ON or (caption.word(last.end) in _HAVING and not has):
        return ()
    # "has no bed or | lamp", "without a bed or | lamps", where there were some, or two
    counted = last.count == last.start and caption.plural(last)
    bare = counted or caption.word(last.start) in (_ARTICLES | _SOME if has else _SOME)
    return (caption.change(ends, ends + 1 + bare, "or"),)


def _goes_on_with_one(caption: Caption, thing: NounPhrase) -> bool:
    """Whether "any" would not go with what follows: "without any chairs | and a lamp"."""
    return caption.word(thing.end) == "and" and caption.word(thing.end + 1) in {"a", "an", "one", "and"}


def _counts_on(caption: Caption, thing: NounPhrase) -> bool:
    """Whether a list goes on with what is counted: "without any cars | , 5 dogs or trucks"."""
    following = caption.starting_at(thing.end + 1) if caption.word(thing.end) == "," else None
    return following is not None and following.start in {following.count, following.determiner}


def _stands_alone(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase needs no other to be whole: not the "bed" of "in bed"."""
    own = phrase.determiner >= 0 or phrase.count >= 0 or bool(phrase.adjectives)
    return own or caption.plural(phrase) or caption.head(phrase) in MASS


def _is_telegram(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a caption leaves its articles out: "Cat on bed"."""
    return phrase.start == 0 and phrase.determiner < 0 and phrase.count < 0 and not caption.plural(phrase)


def _is_never_far(caption: Caption, at: int, before: NounPhrase, after: NounPhrase) -> bool:
    """Whether nothing is far from a place, or not what is told of: "in | blue", a train, what a bat is swung at."""
    noun = caption.head(after)
    on_rails = noun in RAILS and caption.head(before) in ON_RAILS
    aimed = caption.word(at) == "at" and not _AIMING.isdisjoint(caption.lemmas[:at])
    return noun in _NEVER_FAR or is_worn(caption, after) or is_colour(noun) or on_rails or aimed


def _far_apart(caption: Caption, found: Found) -> Outcome:
    """Part what is near each other."""
    if " ".join(caption.lower[found.start : found.end]) not in NOT_FAR - {"against"}:
        return "no_edit"
    return "true_of_image" if caption.words.has("far") else (caption.change(found.start, found.end, FAR),)


def _far(caption: Caption, candidates: Candidates, found: Found) -> Outcome:
    """Put a thing far from the place at which it is."""
    wording, after = " ".join(caption.lower[found.start : found.end]), caption.starting_at(found.end)
    if wording not in NOT_FAR or after is None or caption.word(found.start - 1) in _MEASURES:
        return "no_edit"
    crossed = wording == "over" and caption.head(after) in _HURDLES  # "going over | a hurdle"
    if crossed or not is_place(caption, found.start, after) or is_bound(caption, found.start, found.end):
        return "no_edit"
    noun, before = caption.head(after), before_it(caption, found.start)
    inside = {noun, *caption.lower[after.start : after.end]}
    if before is None or not is_named(caption, before) or _is_never_far(caption, found.start, before, after):
        return "no_edit"
    if not ANAPHORS.isdisjoint(inside) or not (_stands_alone(caption, after) or _is_telegram(caption, before)):
        return "not_grammatical"
    leaving = caption.tag(found.start - 1) in VERBS and caption.lemmas[found.start - 1] in _GOING
    # Who rides on a street may ride away from it; who walks by a tree may do so as well, and still be near it.
    new = AWAY if leaving and wording in _THERE else FAR
    if wording in IN and noun in _AREAS and not leaving:
        new = OUTSIDE
    if not all(map(candidates.usage.is_written, new.split())):
        return "no_candidate"
    doubted = (
        others_there(caption, before, after)
        or caption.words.said_of(new.split()[0], noun)
        or place_in_doubt(caption.words, caption.head(before), new, noun)
    )
    return "true_of_image" if doubted else (caption.change(found.start, found.end, new),)
