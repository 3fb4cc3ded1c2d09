"""REPLACE a relation: another place, another direction, another deed.

Opposites come first, then verbs and prepositions that leave no room for the original ("on a bench" against "beside a
bench", "riding a horse" against "leading a horse"). What is written must suit what stands around it: the pool has such
a preposition before such a noun, such a verb before such an object or preposition, and has seen the doer do it.
Nothing is written that a caption says of the image in any wording, or that its boxes do not refute (`box_truth.py`).

Last come two rewordings that are false of whatever place or thing, and therefore not to be used more than needed:
taking a thing away ("without") and putting it "far from" where it is.
"""

from collections.abc import Iterator, Sequence

from pairwright.generators.box_truth import place_in_doubt
from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import ANAPHORS, Caption, Outcome
from pairwright.generators.draws import Draws
from pairwright.generators.edits import Change
from pairwright.generators.language.inflection import inflect
from pairwright.generators.nouns import FIGURES, FRAMES, GATHERINGS, MASS, OPEN_PLACES, SURROUNDINGS, WORN
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.relations import (
    ELSEWHERE,
    ELSEWHERE_OF_BODIES,
    ELSEWHERE_OF_ROADS,
    FAR,
    HOLDERS,
    INSTEAD_OF,
    NO_PLACE,
    NOT_FAR,
    NOT_HELD,
    ROADS,
    SEATS,
    SLOPES,
    SURFACES,
    UP_AND_DOWN,
    Found,
)
from pairwright.generators.verbs import (
    ALWAYS,
    ALWAYS_WITH,
    INSTEAD,
    INSTEAD_OF_THINGS,
    PARTICIPLES,
    SPORTS,
    TOGETHER,
    WITH_OBJECT,
    forms_of,
    same_act,
)
from pairwright.generators.wordlists import word_set

_VERBS = frozenset({"VBG", "VBZ", "VBP", "VBD", "VBN", "VB"})
_ENDS = frozenset({"", ".", ",", "!", "and", "while", "as", "together"})
_ADVERBS = frozenset({"next", "close", "far"})
_POSTURES = frozenset({"sit", "stand", "lie", "lay", "kneel"})
_GAZING = frozenset({"look", "stare", "gaze", "glance"})
_WITH_A_WAY = word_set("look stare gaze glance climb crawl")
_HAVING = {"with": ("without",), "has": ("lacks", "is without"), "have": ("lack", "are without")}
# Whoever is said to wear or hold a thing, or what to be full of it, has it.
_HAVING_LONGER = frozenset(
    {("wearing",), ("holding",), ("carrying",), ("containing",), ("filled", "with"), ("full", "of"), ("topped", "with")}
    | {("covered", "with"), ("covered", "in"), ("loaded", "with"), ("surrounded", "by"), ("lined", "with")}
)
_HAVING_LONGER_BEGINS = frozenset(words[0] for words in _HAVING_LONGER)
_SOME = word_set("some several many various multiple numerous")  # "without any", and not "without some"
# Of a holder, and nowhere but on it.
_PARTS = word_set(
    "leg lid handle top side edge wheel drawer rim cover cloth tablecloth design pattern door color topping"
)
_UNCERTAIN = word_set("no all any both each every few other another more most only just")
_GONE = word_set("missing without lacks lack lacking")
# What can be near or missing, though its name tells too little to be exchanged (`nouns.FRAMES`).
_NAMED_LOOSELY = word_set(
    "room area ground person people adult child kid animal vehicle food meal dish player rider crowd team topping store"
)
_WHILE = frozenset({"while", "", "people"})
_LIGHT = frozenset({"make", "take", "have", "do"})
_UNMEANT = frozenset({"miss", "lose", "spill", "refuse", "crash", "fall"})  # nobody gets ready to
_AUXILIARIES = frozenset({"be", "have", "do", "get", "can", "will"})
_FURTHEST = 3  # tokens between a thing and its relation: "a man who is standing on"
# Verbs that choose their preposition: "looking at" is no place.
_BINDING = word_set(
    "look stare gaze point wave smile bark throw aim glance yell laugh shout shoot arrive kick swing hit lunge "
    "nibble chew snack graze munch talk speak chat call text play dress cover fill make fall compete participate "
    "engage run rely depend focus hang wrap surround cut feature specialize drip attach stop turn plug pull prepare get "
    "take top decorate line load pile pack stuff clothe base split divide arrange put pour spread"
)
# ... and those of them that tell nothing but an activity, which may well be in a kitchen.
_ACTIVITIES = word_set(
    "smile bark yell laugh shout kick swing hit nibble chew snack graze munch talk speak chat text play compete "
    "participate run take prepare get fall pose stop turn pull"
)
_PLAINLY_PLACES = frozenset({"next to", "near", "beside", "close to", "alongside", "in front of", "behind"})
_MEDIA = word_set(
    "phone cellphone telephone leash computer laptop tv television line radio diet break trip tour vacation"
)
_NO_BODIES = OPEN_PLACES | SURROUNDINGS | SURFACES
_MEASURES = word_set("very so right just directly straight really too almost out over up down half high low deep")
_SIDES_OF_A_TABLE = frozenset({"in front of", "behind"})
# Whoever sits in front of one of these sits behind it for those who look on.
_SAT_AT = word_set(
    "table desk counter bar laptop computer monitor keyboard piano podium microphone grill stove cake pizza plate meal food"
)
_SIDES = word_set("front top side back middle center edge end bottom corner base rear")  # "in front of a car"


def replace_relation(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    """Exchange a preposition for its opposite, or a verb or preposition for one that excludes it."""
    verbs = [at for at, token in enumerate(caption.tokens) if token.tag in _VERBS and token.lemma not in _AUXILIARIES]
    places: list[Found | int] = [*caption.relations, *verbs]
    places = rng.shuffled(places)
    for where in places:
        yield (
            _opposite(caption, candidates, where)
            if isinstance(where, Found)
            else _deed(caption, candidates, where, rng)
        )
    for where in places:
        yield _elsewhere(caption, candidates, where, rng) if isinstance(where, Found) else _other_way(caption, where)
    yield from _not_held(caption, candidates, rng)
    yield from _without(caption, candidates)
    for where in places:
        if isinstance(where, Found):
            yield _far(caption, candidates, where)


def _not_held(caption: Caption, candidates: Candidates, rng: Draws) -> Iterator[Outcome]:
    """Put beside a plate, a box or a table what it holds ("a plate of | food")."""
    for at, word in enumerate(caption.lower):
        size = 2 if caption.lower[at : at + 2] in _HAVING_LONGER else 1
        holds = size > 1 or word in {"of", "with"} or (word,) in _HAVING_LONGER
        holder, held = caption.ending_at(at), caption.starting_at(at + size)
        if not holds or holder is None or held is None or caption.head(holder) not in HOLDERS:
            continue
        noun = caption.head(held)
        if not ANAPHORS.isdisjoint(caption.lower[at:]):
            yield "not_grammatical"  # "a table next to a vase on it"
        elif not _is_named(caption, held) or not caption.is_whole(held) or noun in SURROUNDINGS or noun in _PARTS:
            yield "not_grammatical"
        elif _may_be_others(caption, holder) or not _UNCERTAIN.isdisjoint(caption.lower[held.start : held.end]):
            yield "true_of_image"
        else:
            free = [new for new in NOT_HELD if not caption.words.has(new) and candidates.stands_before(new, noun)]
            yield (_change(caption, at, at + size, rng.choice(free)),) if free else "no_candidate"


def _without(caption: Caption, candidates: Candidates) -> Iterator[Outcome]:
    for at, word in enumerate(caption.lower):
        if word in _HAVING:
            yield _lacking(caption, candidates, at, _HAVING[word])
    for at, word in enumerate(caption.lower):
        for size in (1, 2) if word in _HAVING_LONGER_BEGINS else ():
            if caption.lower[at : at + size] in _HAVING_LONGER and (word != "full" or caption.tag(at) == "JJ"):
                yield _lacking(caption, candidates, at, ("without",), size)


def _lacking(caption: Caption, candidates: Candidates, at: int, news: Sequence[str], size: int = 1) -> Outcome:
    """Take away what something is said to have; the last resort, since it reads as a denial."""
    after = caption.starting_at(at + size)
    said = caption.tag(at - 1).startswith("NN") or (size > 1 and caption.word(at - 1) in {"is", "are"})
    new = next((new for new in news if all(map(candidates.is_written, new.split()))), "")
    if after is None or not said or not new:
        return "no_edit"
    some = caption.word(after.start) in _SOME
    inside = caption.lower[after.start + some : after.end]
    if (
        not _is_named(caption, after)
        or not caption.is_whole(after)
        or not (_SOME | _UNCERTAIN).isdisjoint(inside)
        or caption.tag(after.end)[:2] in {"JJ", "RB", "RP"}
    ):
        return "not_grammatical"
    if caption.words.has_any(_GONE):
        return "true_of_image"
    return (_change(caption, at, at + size + some, f"{new} any" if some else new),)


def _is_named(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase names what can be at a place or missing, be it by a word that tells little of it."""
    loosely = caption.head(phrase) in _NAMED_LOOSELY or len(phrase.nouns) > 1  # "a stove top"
    return caption.is_thing(phrase) or (loosely and caption.tag(phrase.head) in {"NN", "NNS"})


def _opposite(caption: Caption, candidates: Candidates, found: Found) -> Outcome:
    wording = " ".join(caption.lower[found.start : found.end])
    before, after = _before(caption, found.start), caption.starting_at(found.end)
    if wording == "at" and after is not None and caption.tokens[found.start - 1].lemma in _GAZING:
        said = caption.words.has("away from")
        return "true_of_image" if said else (_change(caption, found.start, found.end, "away from"),)
    if before is None or after is None or (not _is_named(caption, after) and wording != "at"):
        return "no_edit"
    noun = caption.head(after)
    wanted = UP_AND_DOWN.get(wording, ()) if noun in SLOPES else INSTEAD_OF.get(wording, ())
    if not wanted or _is_bound(caption, found):
        return "no_edit"
    either = wording in _SIDES_OF_A_TABLE and noun in _SAT_AT
    if either or _may_be_others(caption, before) or _may_be_others(caption, after):
        return "true_of_image"
    new = next((other for other in wanted if candidates.stands_before(other, noun)), "")
    if not new:
        return "no_candidate"
    doubted = caption.words.has(new) or place_in_doubt(caption.words, caption.head(before), new, noun)
    return "true_of_image" if doubted else (_change(caption, found.start, found.end, new),)


def _elsewhere(caption: Caption, candidates: Candidates, found: Found, rng: Draws) -> Outcome:
    """Put a thing beside what it is on, or inside what it is near."""
    wording = " ".join(caption.lower[found.start : found.end])
    after = _place(caption, found)
    if after is None:
        return "no_edit"
    noun, before = caption.head(after), _before(caption, found.start)
    wanted = _other_places(caption, wording, after)
    if not wanted or noun in _MEDIA or noun in FIGURES or (wording in {"in", "with"} and _is_worn(caption, after)):
        return "no_edit"
    if _others_there(caption, before, after):
        return "true_of_image"
    reason = "no_candidate"
    for new in rng.shuffled(wanted):
        if not candidates.stands_before(new, noun):
            continue
        doubted = before is not None and place_in_doubt(caption.words, caption.head(before), new, noun)
        if not doubted and not caption.words.said_of(new, noun):
            return (_change(caption, found.start, found.end, new),)
        reason = "true_of_image"
    return reason


def _stands_alone(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a phrase needs no other to be whole: not the "bed" of "in bed"."""
    own = phrase.determiner >= 0 or phrase.count >= 0 or bool(phrase.adjectives)
    return own or caption.plural(phrase) or caption.head(phrase) in MASS


def _is_telegram(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether a caption leaves its articles out: "Cat on bed"."""
    return phrase.start == 0 and phrase.determiner < 0 and phrase.count < 0 and not caption.plural(phrase)


def _is_worn(caption: Caption, phrase: NounPhrase) -> bool:
    return not WORN.isdisjoint((caption.head(phrase), caption.word(phrase.head)))


def _other_way(caption: Caption, at: int) -> Outcome:
    """Turn the direction of a verb round: "looking down", "climbing up"."""
    new = {"up": "down", "down": "up"}.get(caption.word(at + 1), "")
    follows = caption.tag(at + 2) in {"IN", "TO", "DT", "", ".", "CC"} and caption.word(at + 2) != "of"
    if not new or not follows or caption.tokens[at].lemma not in _WITH_A_WAY:
        return "no_edit"
    return "true_of_image" if caption.words.has(new) else (_change(caption, at + 1, at + 2, new),)


def _place(caption: Caption, found: Found) -> NounPhrase | None:
    """Return the thing after a relation that tells where something is; None when it tells anything else."""
    after = caption.starting_at(found.end)
    if found.start == 0 or after is None or not _is_named(caption, after) or _is_bound(caption, found):
        return None
    return after if caption.is_whole(after) else None


def _other_places(caption: Caption, wording: str, after: NounPhrase) -> tuple[str, ...]:
    """Return what excludes a wording before such a thing."""
    noun, inside = caption.head(after), caption.lower[after.start : after.end]
    wanted = ELSEWHERE.get(wording, ()) + (ELSEWHERE_OF_ROADS.get(wording, ()) if noun in ROADS else ())
    of_itself = not ANAPHORS.isdisjoint(inside) or noun in NO_PLACE  # "a cap on its head" is nowhere else
    if of_itself or not _NO_BODIES.isdisjoint({noun, *inside}):
        return wanted
    wanted += ELSEWHERE_OF_BODIES.get(wording, ())
    return tuple(new for new in wanted if new != "on top of") if noun in SEATS and wording == "in" else wanted


def _others_there(caption: Caption, before: NounPhrase | None, after: NounPhrase) -> bool:
    """Whether another thing, or a thing at another place, of the same name may be what is told."""
    noun = caption.head(after)
    if not caption.plural(after) and noun not in OPEN_PLACES and caption.words.several(noun):
        return True
    return before is not None and not caption.plural(before) and caption.words.several(caption.head(before))


def _far(caption: Caption, candidates: Candidates, found: Found) -> Outcome:
    """Put a thing far from the place at which it is."""
    wording, after = " ".join(caption.lower[found.start : found.end]), _place(caption, found)
    if wording not in NOT_FAR or after is None or caption.word(found.start - 1) in _MEASURES:
        return "no_edit"
    noun, before = caption.head(after), _before(caption, found.start)
    inside = {noun, *caption.lower[after.start : after.end]}
    if (
        before is None
        or not _is_named(caption, before)
        or noun in _MEDIA | FIGURES | NO_PLACE
        or _is_worn(caption, after)
    ):
        return "no_edit"
    if not ANAPHORS.isdisjoint(inside) or not (_stands_alone(caption, after) or _is_telegram(caption, before)):
        return "not_grammatical"
    if not all(map(candidates.is_written, FAR.split())):
        return "no_candidate"
    doubted = (
        _others_there(caption, before, after)
        or caption.words.said_of("far", noun)
        or place_in_doubt(caption.words, caption.head(before), FAR, noun)
    )
    return "true_of_image" if doubted else (_change(caption, found.start, found.end, FAR),)


def _is_bound(caption: Caption, found: Found) -> bool:
    """Whether a preposition belongs to its verb ("looking at", "made by") and tells no place."""
    if caption.tag(found.end - 1) == "RP":
        return True
    at = found.start - 1
    while at > 0 and caption.tag(at) == "RB":
        at -= 1  # "looking directly at"
    token = caption.tokens[at] if at >= 0 else None
    if token is None or token.tag not in _VERBS:
        return False
    if caption.word(found.start) == "by" and token.tag in {"VBN", "VBD"}:
        return True
    return token.lemma in _BINDING and not _tells_where(caption, found, token.lemma)


def _tells_where(caption: Caption, found: Found, verb: str) -> bool:
    """Whether the place is told of a verb that may choose a preposition: "smiling next to", "eating in a kitchen"."""
    if " ".join(caption.lower[found.start : found.end]) in _PLAINLY_PLACES:
        return verb not in _GAZING
    after = caption.starting_at(found.end)
    return verb in _ACTIVITIES and after is not None and caption.head(after) in SURROUNDINGS


def _before(caption: Caption, start: int) -> NounPhrase | None:
    """Return the thing that a relation is said of: the noun phrase before it, verbs and adverbs between."""
    at = start
    while (
        at > 0
        and start - at < _FURTHEST
        and (caption.tag(at - 1)[:2] in {"VB", "RB"} or caption.word(at - 1) in {"that", "who", "which"})
    ):
        at -= 1
    return caption.ending_at(at)


def _may_be_others(caption: Caption, phrase: NounPhrase) -> bool:
    """Whether another thing of that name could make the opposite true."""
    return caption.plural(phrase) or phrase.count >= 0 or caption.words.several(caption.head(phrase))


def _deed(caption: Caption, candidates: Candidates, at: int, rng: Draws) -> Outcome:
    """Exchange a verb for one that the same one does not do meanwhile."""
    doer, tag = _doer(caption, candidates, at), caption.tag(at)
    participle = tag in {"VBN", "VBG"} and doer is not None
    as_written = PARTICIPLES.get(caption.word(at), ()) if participle else ()
    wanted = [] if tag == "VBN" else [(verb, inflect(verb, tag)) for verb in _verbs(caption, candidates, doer, at)]
    wanted += [(candidates.lemma_of(form), form) for form in as_written if caption.word(at + 1) not in {"a", "the"}]
    if not wanted:
        return "no_edit"
    if caption.tokens[at].lemma in _POSTURES and _others_may(caption, doer):
        return "true_of_image"
    reason = "no_candidate"
    for verb, form in rng.shuffled(wanted):
        if not _suits(caption, candidates, doer, at, (verb, form)):
            continue
        if not caption.words.has_any(forms_of(verb) | {form}):
            return (_change(caption, at, at + 1, form),)
        reason = "true_of_image"
    return reason


def _verbs(caption: Caption, candidates: Candidates, doer: NounPhrase | None, at: int) -> Sequence[str]:
    """Return what the doer may do instead; things do not walk, and of an unknown doer we suppose that it lives."""
    lemma = caption.tokens[at].lemma
    unclear = doer is None and (_before(caption, at) is not None or not _opens_act(caption, at))
    if unclear or caption.tag(at + 1) == "RP":
        return ()
    lives = _lives(caption, candidates, doer)
    if lemma in SPORTS and (doer is None or not lives) and caption.tag(at) != "VBG":
        return ()  # "young boys on skis": a thing that was taken for a verb
    table = INSTEAD if lives else INSTEAD_OF_THINGS
    if caption.tag(at) == "VB" and (not lives or lemma in _LIGHT):
        return ()
    unmeant = _UNMEANT if caption.tag(at) == "VB" else frozenset()
    return [verb for verb in table.get(lemma, ()) if not same_act(verb, lemma) and verb not in unmeant]


def _doer(caption: Caption, candidates: Candidates, at: int) -> NounPhrase | None:
    """Return who does it: in "a man in a sweater | holding" not the sweater, in "a bunch of scissors" not the bunch.

    None when the phrase before the verb only tells where, and what is there is not clear.
    """
    doer = _before(caption, at)
    while doer is not None and not _lives(caption, candidates, doer) and caption.tag(doer.start - 1) in {"IN", "TO"}:
        governed_by = caption.word(doer.start - 1)
        if governed_by == "of" and caption.word(doer.start - 2) not in _SIDES:
            return doer
        whose = caption.ending_at(doer.start - 1)
        if whose is None or caption.head(whose) in FRAMES - GATHERINGS:
            return None
        doer = whose
    return doer


def _opens_act(caption: Caption, at: int) -> bool:
    """Whether a verb without a doer before it tells what somebody does: not "on | serving tray"."""
    if caption.tag(at) == "VB":  # "ready to | eat"
        return caption.word(at - 1) == "to" and caption.tag(at - 2)[:2] in {"VB", "JJ", "RB", "IN"}
    if caption.tag(at) == "VBG" and caption.tag(at - 1).startswith("NN"):
        return True
    return caption.tag(at - 1)[:2] in {"VB", "RB", "CC", "MD", "WP", "WD", "PR"} or caption.word(at - 1) in _WHILE


def _lives(caption: Caption, candidates: Candidates, doer: NounPhrase | None) -> bool:
    return doer is None or candidates.is_alive(caption.head(doer)) or caption.head(doer) in GATHERINGS


def _others_may(caption: Caption, doer: NounPhrase | None) -> bool:
    """Whether others of that name may be there, who stand where these sit."""
    if doer is None or caption.plural(doer) or caption.head(doer) in GATHERINGS:
        return False
    return caption.words.several(caption.head(doer))


def _suits(caption: Caption, candidates: Candidates, doer: NounPhrase | None, at: int, new: tuple[str, str]) -> bool:
    """Whether the pool knows a verb, in a form, of such a doer, before what comes next, and beside the rest."""
    verb, form = new
    return (
        candidates.is_written(form)
        and _fits_after(caption, candidates, at, verb, form)
        and (doer is None or candidates.acts(caption.head(doer), verb, alone=_lives(caption, candidates, doer)))
        and candidates.makes_sense(verb, caption.tokens[at].lemma, caption.contents)
    )


def _fits_after(caption: Caption, candidates: Candidates, at: int, verb: str, form: str) -> bool:
    """Whether what follows the old verb may follow the new one."""
    after, word = caption.starting_at(at + 1), caption.word(at + 1)
    if after is not None:
        names = (caption.head(after), caption.noun(after))
        return all((verb, name) not in TOGETHER for name in names) and (
            verb in ALWAYS.get(caption.tokens[at].lemma, ())
            or (verb, caption.head(after)) in ALWAYS_WITH
            or candidates.has_object(verb, caption.head(after))
        )
    if verb in WITH_OBJECT and not form.endswith("ed"):
        return False
    if word in _ADVERBS or word in _ENDS:
        return True
    if caption.tag(at + 1) in {"IN", "RP", "TO"}:
        return candidates.goes_with(verb, word)
    return caption.tag(at + 1).startswith("RB")


def _change(caption: Caption, start: int, end: int, after: str) -> Change:
    return Change(caption.tokens[start].start, caption.tokens[end - 1].end, after)
