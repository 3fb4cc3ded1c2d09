"""REPLACE a relation: another place, another direction, another deed.

Opposites come first, then verbs and prepositions that leave no room for the original ("on a bench" against "beside a
bench", "riding a horse" against "leading a horse"). What is written must suit what stands around it: the pool has such
a preposition before such a noun, such a verb before such an object or preposition, and has seen the doer do it.
Nothing is written that a caption says of the image in any wording.
"""

import random
from collections.abc import Iterator, Sequence

from pairwright.generators.candidates import Candidates
from pairwright.generators.captions import Caption, Outcome
from pairwright.generators.edits import Change
from pairwright.generators.language.inflection import inflect
from pairwright.generators.nouns import FIGURES, GATHERINGS, OPEN_PLACES, WORN
from pairwright.generators.phrases import NounPhrase
from pairwright.generators.relations import ELSEWHERE, INSTEAD_OF, SLOPES, UP_AND_DOWN, Found
from pairwright.generators.verbs import (
    ALWAYS,
    INSTEAD,
    INSTEAD_OF_THINGS,
    PARTICIPLES,
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
_HAVING = {"with": "without", "has": "lacks", "have": "lack"}
_WHILE = frozenset({"while", "", "people"})
_AUXILIARIES = frozenset({"be", "have", "do", "get", "can", "will"})
_FURTHEST = 3  # tokens between a thing and its relation: "a man who is standing on"
# Verbs that choose their preposition: "looking at" is no place.
_BINDING = word_set(
    "look stare gaze point wave smile bark throw aim glance yell laugh shout shoot arrive kick swing hit lunge "
    "nibble chew snack graze munch talk speak chat call text play dress cover fill make fall compete participate "
    "engage run rely depend focus hang wrap surround cut feature specialize drip attach stop turn plug pull prepare get take"
)
_MEDIA = word_set(
    "phone cellphone telephone leash computer laptop tv television line radio diet break trip tour vacation"
)


def replace_relation(caption: Caption, candidates: Candidates, rng: random.Random) -> Iterator[Outcome]:
    """Exchange a preposition for its opposite, or a verb or preposition for one that excludes it."""
    verbs = [at for at, token in enumerate(caption.tokens) if token.tag in _VERBS and token.lemma not in _AUXILIARIES]
    places: list[Found | int] = [*caption.relations, *verbs]
    rng.shuffle(places)
    for where in places:
        yield (
            _opposite(caption, candidates, where)
            if isinstance(where, Found)
            else _deed(caption, candidates, where, rng)
        )
    for where in places:
        if isinstance(where, Found):
            yield _elsewhere(caption, candidates, where, rng)
    for at, word in enumerate(caption.lower):
        if word in _HAVING:
            yield _lacking(caption, candidates, at, _HAVING[word])


def _lacking(caption: Caption, candidates: Candidates, at: int, new: str) -> Outcome:
    """Take away what something is said to have; the last resort, since it reads as a denial."""
    after = caption.starting_at(at + 1)
    if after is None or not caption.tag(at - 1).startswith("NN") or not candidates.is_written(new):
        return "no_edit"
    if (
        not caption.is_thing(after)
        or not caption.is_whole(after)
        or caption.tag(after.end)[:2] in {"VB", "JJ", "RB", "RP"}
    ):
        return "not_grammatical"
    return "true_of_image" if caption.words.has(new) else (_change(caption, at, at + 1, new),)


def _opposite(caption: Caption, candidates: Candidates, found: Found) -> Outcome:
    wording = " ".join(caption.lower[found.start : found.end])
    before, after = _before(caption, found.start), caption.starting_at(found.end)
    if before is None or after is None or (not caption.is_thing(after) and wording != "at"):
        return "no_edit"
    noun = caption.head(after)
    wanted = UP_AND_DOWN.get(wording, ()) if noun in SLOPES else INSTEAD_OF.get(wording, ())
    if wording == "at" and caption.tokens[found.start - 1].lemma in _GAZING:
        return (
            "true_of_image"
            if caption.words.has("away from")
            else (_change(caption, found.start, found.end, "away from"),)
        )
    if not wanted or _is_bound(caption, found):
        return "no_edit"
    if _may_be_others(caption, before) or _may_be_others(caption, after):
        return "true_of_image"
    new = next((other for other in wanted if candidates.stands_before(other, noun)), "")
    if not new:
        return "no_candidate"
    return "true_of_image" if caption.words.has(new) else (_change(caption, found.start, found.end, new),)


def _elsewhere(caption: Caption, candidates: Candidates, found: Found, rng: random.Random) -> Outcome:
    """Put a thing beside what it is on, or inside what it is near."""
    wording = " ".join(caption.lower[found.start : found.end])
    wanted, after = ELSEWHERE.get(wording, ()), caption.starting_at(found.end)
    if not wanted or found.start == 0 or after is None or not caption.is_thing(after) or _is_bound(caption, found):
        return "no_edit"
    noun, before = caption.head(after), _before(caption, found.start)
    if noun in _MEDIA or noun in FIGURES or (noun in WORN and wording in {"in", "with"}):
        return "no_edit"
    if not caption.plural(after) and noun not in OPEN_PLACES and caption.words.several(noun):
        return "true_of_image"
    if before is not None and not caption.plural(before) and caption.words.several(caption.head(before)):
        return "true_of_image"
    reason = "no_candidate"
    for new in rng.sample(wanted, len(wanted)):
        if not candidates.stands_before(new, noun):
            continue
        if not caption.words.said_of(new, noun):
            return (_change(caption, found.start, found.end, new),)
        reason = "true_of_image"
    return reason


def _is_bound(caption: Caption, found: Found) -> bool:
    """Whether a preposition belongs to its verb ("looking at", "made by") and tells no place."""
    if caption.tag(found.end - 1) == "RP":
        return True
    token = caption.tokens[found.start - 1] if found.start else None
    if token is None or token.tag not in _VERBS:
        return False
    return token.lemma in _BINDING or (caption.word(found.start) == "by" and token.tag in {"VBN", "VBD"})


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


def _deed(caption: Caption, candidates: Candidates, at: int, rng: random.Random) -> Outcome:
    """Exchange a verb for one that the same one does not do meanwhile."""
    doer, tag = _doer(caption, candidates, at), caption.tag(at)
    participle = tag in {"VBN", "VBG"} and doer is not None
    as_written = PARTICIPLES.get(caption.word(at), ()) if participle else ()
    wanted = (
        [] if tag in {"VBN", "VB"} else [(verb, inflect(verb, tag)) for verb in _verbs(caption, candidates, doer, at)]
    )
    wanted += [(candidates.lemma_of(form), form) for form in as_written if caption.word(at + 1) not in {"a", "the"}]
    if not wanted:
        return "no_edit"
    if caption.tokens[at].lemma in _POSTURES and _others_may(caption, doer):
        return "true_of_image"
    reason = "no_candidate"
    for verb, form in rng.sample(wanted, len(wanted)):
        if not _suits(caption, candidates, doer, at, (verb, form)):
            continue
        if not caption.words.has_any(forms_of(verb) | {form}):
            return (_change(caption, at, at + 1, form),)
        reason = "true_of_image"
    return reason


def _verbs(caption: Caption, candidates: Candidates, doer: NounPhrase | None, at: int) -> Sequence[str]:
    """Return what the doer may do instead; things do not walk, and of an unknown doer we suppose that it lives."""
    lemma = caption.tokens[at].lemma
    if caption.tag(at + 1) == "RP" or (doer is None and not _opens_act(caption, at)):
        return ()
    table = INSTEAD if _lives(caption, candidates, doer) else INSTEAD_OF_THINGS
    return [verb for verb in table.get(lemma, ()) if not same_act(verb, lemma)]


def _doer(caption: Caption, candidates: Candidates, at: int) -> NounPhrase | None:
    """Return who does it; None when the phrase before the verb only tells where: "a man in a sweater | holding"."""
    doer = _before(caption, at)
    if doer is not None and caption.tag(doer.start - 1) in {"IN", "TO"} and not _lives(caption, candidates, doer):
        return None
    return doer


def _opens_act(caption: Caption, at: int) -> bool:
    """Whether a verb without a doer before it tells what somebody does: not "on | serving tray"."""
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
        return (verb, caption.head(after)) not in TOGETHER and (
            verb in ALWAYS.get(caption.tokens[at].lemma, ()) or candidates.has_object(verb, caption.head(after))
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
