"""Word lists for captions (nouns, verbs, function words) and functions that match them in a clause.

Used by `caption_facts` instead of a tagger: a caption is split into clauses (`CLAUSE`), nouns are found by list, and a
pattern must match word by word. All words are in lower case.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from pairwright.generators.captions.image_words import plural_of
from pairwright.generators.captions.phrases import NUMBER_WORDS
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.lemmas import is_common_noun, is_verb, lemmatize
from pairwright.generators.language.word_set import word_set
from pairwright.generators.lexicon.attributes import concepts_of
from pairwright.generators.lexicon.nouns import flagged
from pairwright.generators.lexicon.relations import load_relations

CLAUSE = re.compile(r"[.,;:!?()\"]|\s-\s")
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
UNCERTAIN_WORDS = word_set(
    "no not without like toy toys statue statues painting paintings sculpture fake model models stuffed poster cartoon "
    "shaped reflection reflections mirror sign signs logo nothing none isn't aren't if or maybe appears seems looks"
)
ARTICLES = word_set("a an one the")
FUNCTION_WORDS = word_set(
    "a an one the on in at of with and or to by near under behind beside next from into onto over above below inside "
    "for while as that which is are was has have two three four five six seven eight nine ten some several many his her "
    "its their up down off through across along around between against top front who"
)
CLAUSE_STOPS = word_set(
    "is are was were while as that which who but so because whilst stands sits looks walks holds rides poses plays waits eats runs talks "
    "watches smiles glances glance gets has does goes takes makes lies leans jumps flies rests moves"
)
_BEGIN_PLACES = frozenset(phrase.split()[0] for phrase in load_relations().prepositions)
PLACE_PREPOSITIONS = (
    "on top of",
    "in front of",
    "next to",
    "on",
    "in",
    "under",
    "behind",
    "beside",
    "near",
    "inside",
    "beneath",
)
DETERMINED = word_set("a an the his her its their some two three")
POSTURE_VERBS = word_set("sitting lying laying standing parked hanging placed resting sits stands lies mounted")
NOT_ACTIONS = word_set(
    "being having looking evening morning during building ceiling clothing wedding king railing string wing ring "
    "something anything nothing everything dining living trying going getting using beginning including remaining"
)
ACTION_VERBS = word_set(
    "stand sit ride hold walk play eat run jump lie wear carry watch fly surf ski swim graze wait pose drink sleep lean "
    "look pull push throw smile"
)
PRONOUNS = word_set("it them him her other others one this that these those same")
NOT_PLACES = word_set("shape outfit style form phone cellphone telephone cell mood way pose line position")
TRANSITIVE_PARTICIPLES = word_set(
    "wearing holding riding eating carrying pulling pushing throwing catching reading watching flying cutting drinking "
    "pouring brushing feeding walking chasing hitting kicking crossing"
)
SETTINGS = word_set(
    "kitchen bathroom bedroom office restaurant park beach zoo airport field forest museum market harbor garage "
    "classroom library hallway garden desert stadium bakery cafe store farm gym barn"
)
SETTINGS |= {"living room", "dining room", "parking lot", "train station", "tennis court", "baseball field"}
SETTING_PREPOSITIONS = word_set("in at inside on")
COLOURS = {word: concept for concept, words in concepts_of("colour").items() for word in words if concept != "blond"}
CONCEPTS = tuple(concept for concept in concepts_of("colour") if concept != "blond")
MATERIALS = {
    word: concept
    for concept in ("wood", "metal", "brick", "stone", "glass", "leather", "plastic", "concrete")
    for word in concepts_of("material")[concept]
}
NUMBERS = {word: number for number, word in enumerate(NUMBER_WORDS[1:9], 2)}
ANIMALS = word_set(
    "dog cat horse cow sheep elephant giraffe zebra bear bird goat pig puppy kitten monkey duck deer rabbit camel lion "
    "tiger panda seagull pony calf lamb"
)
AGENT_NOUNS = (flagged("individual") - word_set("male female people adult fan friend")) | ANIMALS
CONCRETE_NOUNS = flagged("askable")
OBJECT_NOUNS = CONCRETE_NOUNS - flagged("individual") - ANIMALS - SETTINGS - frozenset(COLOURS)
KNOWN_NOUNS = CONCRETE_NOUNS | AGENT_NOUNS | SETTINGS
PLURALS = {plural_of(noun): noun for noun in sorted(CONCRETE_NOUNS) if plural_of(noun) not in CONCRETE_NOUNS}
PLURALS |= {"people": "person"}


def iter_nouns(lower: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yield (noun in the singular, start, end) of known nouns; two-word nouns take precedence."""
    at = 0
    while at < len(lower):
        if at + 1 < len(lower):
            two_words = f"{lower[at]} {lower[at + 1]}"
            noun = two_words if two_words in KNOWN_NOUNS else PLURALS.get(two_words, "")
            if noun:
                yield noun, at, at + 2
                at += 2
                continue
        noun = lower[at] if lower[at] in KNOWN_NOUNS else PLURALS.get(lower[at], "")
        if noun and not _is_modifier(lower, at):
            yield noun, at, at + 1
        at += 1


def _is_modifier(lower: Sequence[str], at: int) -> bool:
    """Return whether another noun follows, so that this one modifies it ("a dog house", "an orange star")."""
    return at + 1 < len(lower) and (lower[at + 1] in CONCRETE_NOUNS or lower[at + 1] in PLURALS)


def article_before(lower: Sequence[str], start: int) -> bool:
    """Return whether a noun has an article, with at most two words between, none of them a function word."""
    for back in range(1, 4):
        if start - back < 0:
            return False
        word = lower[start - back]
        if word in ARTICLES:
            return True
        if word in FUNCTION_WORDS:
            return False
    return False


@lru_cache(maxsize=4096)
def action_of(word: str, *, several: bool, alone: bool) -> str:
    """Return the present participle of a verb form: "riding" for "riding", "rides" and, in the plural, "ride"; else ""."""
    if word.endswith("ing"):
        return word if word not in NOT_ACTIONS and len(word) > 4 else ""
    if several:
        return inflect(word, "VBG") if word in ACTION_VERBS else ""
    verb = next((verb for verb in ACTION_VERBS if alone and word == inflect(verb, "VBZ")), "")
    return inflect(verb, "VBG") if verb else ""


def starts_clause(lower: Sequence[str], start: int) -> bool:
    """Return whether a noun with its article begins the clause, so that what follows refers to it."""
    opening = 2 if lower[:1] == ("there",) else 0
    return opening < start <= opening + 3 and lower[opening] in ARTICLES and article_before(lower, start)


@lru_cache(maxsize=20_000)
def _continues_phrase(word: str) -> bool:
    return word in FUNCTION_WORDS or word.endswith("ing")


def ends_noun_phrase(lower: Sequence[str], end: int) -> bool:
    """Return whether a noun phrase ends at ``end``: with the clause, or before a function word or a participle."""
    return end == len(lower) or _continues_phrase(lower[end])


def verb_complement(words: Sequence[str], doers: frozenset[str], *, ands: bool = True) -> list[str] | None:
    """Return the words that complete a verb; None if they are incomplete or a word is doubled."""
    rest: list[str] = []
    for at, word in enumerate(words):
        lower = word.lower()
        if lower in CLAUSE_STOPS:
            break
        if rest and lower == rest[-1].lower():  # "sitting at a a table"
            return None
        if lower == "and":
            after = [each.lower() for each in words[at + 1 :]]
            if not ands or any(each in doers or each in PLURALS or each.endswith("ing") for each in after):
                break
        rest.append(word)
    return None if rest and rest[-1].lower() in (FUNCTION_WORDS - {"up", "down", "off"}) | PRONOUNS else rest


def cut_at_participle(rest: Sequence[str]) -> list[str]:
    """Return the words up to a participle after a noun, whose subject is ambiguous.

    In "a woman holding an umbrella walking by" the woman walks; in "the woman is holding an umbrella walking by" the
    umbrella does. A phrase with "with" before the participle ("with people watching") is cut, too.
    """
    lower = [word.lower() for word in rest]
    cut = next(
        (at for at in range(1, len(rest)) if lower[at - 1] not in FUNCTION_WORDS and _is_participle(lower, at)),
        len(rest),
    )
    if cut == len(rest):
        return list(rest)
    preposition = next((at for at in reversed(range(cut)) if lower[at] in FUNCTION_WORDS - ARTICLES - DETERMINED), cut)
    return list(rest[: preposition if preposition < cut and lower[preposition] == "with" else cut])


def _is_participle(lower: Sequence[str], at: int) -> bool:
    """Return whether a word is a participle used as a verb, not a noun ("a railroad | crossing") or a modifier."""
    word, following = lower[at], lower[at + 1] if at + 1 < len(lower) else ""
    if not word.endswith("ing") or not is_verb(word):
        return False
    acts = word in POSTURE_VERBS or not is_common_noun(word) or lemmatize(word, "VBG") in ACTION_VERBS
    has_object = word in TRANSITIVE_PARTICIPLES and following.endswith("s")  # "holding umbrellas"
    return (
        has_object
        or following in ARTICLES | DETERMINED
        or (acts and following in FUNCTION_WORDS | _BEGIN_PLACES | {""})
    )


def is_place(rest: Sequence[str]) -> bool:
    """Return whether a phrase names a place, rather than clothes, a shape or a telephone."""
    phrase = takewhile(lambda word: not _continues_phrase(word.lower()), rest[1:])
    nouns = {word.lower() for word in (*rest[1:4], *phrase)}
    return nouns.isdisjoint(flagged("worn")) and nouns.isdisjoint(NOT_PLACES) and rest[-1].lower() not in COLOURS
