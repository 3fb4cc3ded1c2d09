"""Which verbs with their prepositions exclude each other: what may be written for "riding", or for "attached to".

Tables of `words/verbs.py` made into pairs of a lemma and a preposition, which may be empty; no caption is looked at.
"""

from functools import lru_cache

from pairwright.generators.language.inflection import inflect
from pairwright.generators.words.verbs import (
    ALWAYS_IN_WORDS,
    IN_WORDS,
    INSTEAD,
    INSTEAD_OF_PHRASES,
    OUT_OF_WORDS,
    STANDING,
    WITH_OBJECT,
    forms_of,
    same_act,
)
from pairwright.generators.words.wordlists import word_set

_PREPOSITIONS = ("on", "in", "at", "near", "by", "with", "next to", "behind", "under", "through", "along", "down")
_BESIDE = word_set("stand sit lie lay sleep walk pose")  # "racing next to" is rarely said
_PLAYED = word_set("game wii nintendo guitar instrument piano frisbee xbox")
_GAMES = word_set("game match tournament competition")
_SOUGHT = frozenset(
    {"looking for", "looks for", "look for", "looked for", "searching", "search", "searches", "seeking"}
)
_SHOWN_ONE = (("look", "at"), ("point", "at"))
_LOOKING_ON = (("watch", ""), ("wait", "for"))
_ON_WAVES = word_set("ride surf catch")
_BEFORE_A_WAVE = (("wait", "for"), ("look", "at"), ("point", "at"))
GOING = word_set("drive travel move fly sail ride")
_UNDER_WAY = GOING | word_set("go come pass head")
_AT_REST = word_set("park stop sit wait")
_POSING = ("pose", "for")
OF_PICTURES = frozenset({_POSING, ("take", "")})
PICTURES = frozenset({"picture", "photo", "photograph", "selfie"})


@lru_cache(maxsize=4096)
def phrases_for(verb: str, preposition: str) -> tuple[tuple[str, str], ...]:
    """Return the verbs, each with a preposition or none, that exclude a verb with one or none."""
    if not preposition:
        return tuple(_halves(phrase) for phrase in IN_WORDS.get(verb, ()))
    others = (other for other in INSTEAD.get(verb, ()) if other not in WITH_OBJECT and not same_act(other, verb))
    phrases = ((other, new) for other in others for new in _PREPOSITIONS if new != preposition and _is_said(other, new))
    return (*phrases, *((other, "") for other in OUT_OF_WORDS.get(f"{verb} {preposition}", ())))


def always(verb: str, preposition: str, noun: str) -> tuple[tuple[str, str], ...]:
    """Return what excludes a verb with its preposition, or none, before whatever noun."""
    if noun == "wave" and verb in _ON_WAVES and not preposition:
        return _BEFORE_A_WAVE
    if verb == "play" and preposition == "in" and noun in _GAMES:
        return _LOOKING_ON
    if verb == "take" and noun in PICTURES:
        return _SHOWN_ONE
    if preposition:
        may = (verb, preposition) != _POSING or noun in PICTURES  # and not "at a camera", where those who pose look
        return INSTEAD_OF_PHRASES.get((verb, preposition), ()) if may else ()
    return ALWAYS_IN_WORDS.get(verb, ()) if verb != "play" or noun in _PLAYED else ()


def _halves(phrase: str) -> tuple[str, str]:
    verb, _, preposition = phrase.partition(" ")
    return verb, preposition


def _is_said(verb: str, preposition: str) -> bool:
    in_place = preposition != "down" or verb not in STANDING  # "lying down" the road
    return in_place and (" " not in preposition or verb in _BESIDE)


@lru_cache(maxsize=20_000)
def phrase_form(verb: str, preposition: str, tag: str) -> str:
    """Return a verb in the form of a tag, with its preposition."""
    tag = "VBN" if tag == "VBG" and verb in {"park", "stop"} else tag  # "parked by", as captions say it
    return f"{inflect(verb, tag)} {preposition}".rstrip()


@lru_cache(maxsize=4096)
def told_by(verb: str, form: str, *, living: bool) -> frozenset[str]:
    """Return the words of which any in another caption says that it is so."""
    if form.endswith(" for") and verb == "look":
        return _SOUGHT
    alike = () if living else next((group for group in (_UNDER_WAY, _AT_REST) if verb in group), ())
    return forms_of(verb).union(*map(forms_of, alike))
