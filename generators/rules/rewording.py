"""REPLACE by words that mean the same: our own tables first, then careful WordNet synonyms.

Of several rewordings the pool's own are preferred: where captions of the pool use one of them, those that they do not
use are left out. A WordNet synonym is used when the noun or adjective and its synonym mean each other in their main
senses, are no picture word or person, and the synonym is frequent in the pool.

No rewording may become much more usual in positives than it is in captions. Nearly every caption has a "man" or a
"person", and few captions have a "gentleman" or an "individual": if each gave one, half of all stiff positives would have
these words. So a noun or an adjective is written with a probability, by the chance of the pair: at most `_OFTENER` times
as often as the pool has the new word. Where nothing else can be reworded, the reason is `overused_word`.
"""

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache

from pairwright.generators.captions.caption import Caption, Outcome
from pairwright.generators.captions.phrases import NUMBER_WORDS, NounPhrase, span
from pairwright.generators.edits.realisation import Change
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.language.inflection import inflect
from pairwright.generators.words.nouns import MASS, OF_PEOPLE, PLURAL_ONLY
from pairwright.generators.words.synonyms import (
    ATTRIBUTES,
    OBJECTS,
    OTHER_SENSES,
    RELATIONS,
    RELATIONS_BESIDE,
    RELATIONS_OF,
)
from pairwright.generators.words.wordlists import word_set

_LONGEST = max(len(wording.split()) for wording in RELATIONS)
# Dictionary synonyms that captions do not use for each other.
_NEVER = word_set(
    "cat dog bus train plate court bat ball glass bear counter board stand fan square star cross hand mitt floor "
    "flooring leaf foliage appliance gadget sort kind commode terminal depot disk saucer toilet potty bottom underside "
    "closet cupboard bare nude naked aged canvas canvass sail woof pick shake shingle corsage bouquet chute parachute "
    "palace castle gap opening film movie toad frog sunshade awning setup apparatus bedclothes bedding menagerie zoo sled "
    "sleigh individual single carpet rug"
)
_CONCRETE = ("artifact", "animal", "food", "plant", "fruit", "vegetable")  # of other nouns WordNet's senses mislead
# "assorted pastries", but not "pastries are various".
_BEFORE_NOUNS_ONLY = word_set("assorted various numerous several many multiple")
_NOT_AFTER = word_set(
    "and or , very so too how as not a- - light dark half year years month months week weeks day days middle"
)
_NOT_BEFORE = word_set("and or - , up to")  # "big and red", "happy to pose"
_OF_TWO_WORDS = frozenset({("smart", "phone"), ("flip", "phone")})
_TAKING = word_set("take pose snap draw paint hang get have make")  # pictures, and not images
_AMOUNTS = word_set("lots plenty many several various")  # "filled with | lots of"
_SAYING = word_set("say read spell call name label title entitle")
_NO_TEXT = word_set("a an the his her their its some something on from in")  # behind "read": a book
_LONGEST_TEXT = 4  # words after such a verb
_SIZES = frozenset({"large", "big", "small", "little"})  # in every tenth caption
_NUMBERS = frozenset({*NUMBER_WORDS, *"23456789"})
# "2" rewords "two" in the eyes of a reader, but few models learn from it, and hardly any captioner writes it: a number is
# only written in figures where the pool does so at least this often for each time that it has the word.
_FIGURES_SHARE = 0.05
_OFTENER = 30  # times as often as in captions, a word may be written


class Reworder:
    """Makes the three REPLACE types; holds tables only."""

    def __init__(self, thesaurus: Thesaurus, pool: Pool, *, minimum: int) -> None:
        self._thesaurus, self._pool, self._minimum = thesaurus, pool, minimum
        self._synonyms = lru_cache(maxsize=20_000)(self._find_synonyms)

    def objects(self, caption: Caption, rng: random.Random) -> Iterator[Outcome]:
        """Reword a noun; words for people and for the picture itself come last, being in every other caption."""

        def usual(phrase: NounPhrase) -> int:
            return 2 if not caption.is_thing(phrase) else int(caption.head(phrase) in OF_PEOPLE)

        for phrase in sorted(rng.sample(caption.phrases, len(caption.phrases)), key=usual):
            if (
                caption.tag(phrase.head) in {"NN", "NNS"}
                and caption.is_whole(phrase)
                and not _is_quoted(caption, phrase.start)
            ):
                yield from self._noun(caption, phrase, rng)

    def _noun(self, caption: Caption, phrase: NounPhrase, rng: random.Random) -> Iterator[Outcome]:
        for start in (phrase.head - 1, phrase.head):
            if start < phrase.start or (start == phrase.head and len(phrase.nouns) > 1):
                continue
            noun = " ".join([*caption.lower[start : phrase.head], caption.head(phrase)])
            if caption.words.has_any(OTHER_SENSES.get(noun, ())):
                yield "may_be_false"
                return
            if _is_set(caption, phrase, start):
                break
            own = OBJECTS.get(noun, ())
            found = self._used(own) or ([] if " " in noun else list(self._synonyms(noun, "NOUN")))
            found = [word for word in found if word != caption.word(start - 1)]
            if found:
                usual = [word for word in found if _is_drawn(self._nouns(noun), self._nouns(word), rng)]
                news = [inflect(word, caption.tag(phrase.head)) for word in usual]
                yield from _changes(caption, start, phrase.end, news, rng, otherwise="overused_word")
                return
        yield "no_candidate"

    def _nouns(self, noun: str) -> int:
        """Return how many captions of the pool have a noun; of a compound, its last two words."""
        first, _, last = noun.lower().rpartition(" ")
        return self._pool.run(first.rpartition(" ")[2], last) if first else self._pool.frequency(last, "NOUN")

    def attributes(self, caption: Caption, rng: random.Random) -> Iterator[Outcome]:
        """Reword an adjective, a size only where there is no other, or else a number."""

        def usual(at: int) -> int:
            return 2 if caption.word(at) in _NUMBERS else int(caption.word(at) in _SIZES)

        describing = {"JJ", "CD", "VBN", "VBG"}
        places = [
            at
            for at, tag in enumerate(caption.tags)
            if tag in describing and not caption.in_name(at) and not _is_quoted(caption, at)
        ]
        for at in sorted(rng.sample(places, len(places)), key=usual):
            beside = {caption.word(at - 1), caption.word(at + 1)}  # "a small little table"
            news = [word for word in self._describing(caption, at) if word not in beside]
            drawn = [word for word in news if self._is_usual(caption.word(at), word, rng)]
            yield from _changes(caption, at, at + 1, drawn, rng, otherwise="overused_word" if news else "no_candidate")

    def _is_usual(self, word: str, new: str, rng: random.Random) -> bool:
        """Draw whether an adjective may be written; the pool counts no joined ones, and figures have a rule of their own."""
        count = self._pool.form_frequency
        return not new.isalpha() or word in _NUMBERS or _is_drawn(count(word), count(new), rng)

    def _describing(self, caption: Caption, at: int) -> list[str]:
        word, noun = caption.word(at), self._described(caption, at)
        if caption.word(at - 1) in _NOT_AFTER or caption.word(at + 1) in _NOT_BEFORE or not noun:
            return []
        if word in _BEFORE_NOUNS_ONLY and caption.word(at - 1) in {"is", "are", "was", "were"}:
            return []
        if word in ATTRIBUTES:
            return self._reworded(caption, at, noun)
        others = self._synonyms(word, "ADJ") if caption.tag(at) == "JJ" else ()
        return [other for other in others if self._pool.adjacency(other, noun) > 1]

    def _reworded(self, caption: Caption, at: int, noun: str) -> list[str]:
        """Return what our own table has for a token that describes a noun."""
        word, rewording = caption.word(at), ATTRIBUTES[caption.word(at)]
        if word in NUMBER_WORDS:
            return [other for other in rewording.others if self._writes(other, word)]
        held = rewording.holds_beside(noun) and rewording.holds_between(self._between(caption, at))
        return self._used(rewording.others) if held else []

    def _writes(self, figure: str, word: str) -> bool:
        """Whether captions of the pool write a number in figures."""
        least = max(self._minimum - 1, _FIGURES_SHARE * self._pool.form_frequency(word))
        return self._pool.form_frequency(figure) > least

    def _between(self, caption: Caption, at: int) -> Sequence[str]:
        """Return the word behind a token and the nouns up to the one that it describes: "league" of "little league players"."""
        phrases = (phrase for phrase in caption.phrases if phrase.start <= at < phrase.end)
        return [caption.word(at + 1), *(caption.word(noun) for phrase in phrases for noun in phrase.nouns[:-1])]

    def _described(self, caption: Caption, at: int) -> str:
        """Return the lemma of the noun that a token describes, or an empty string."""
        for phrase in caption.phrases:
            inside = phrase.start <= at < phrase.end
            said = phrase.end + 1 == at and caption.word(phrase.end) in {"is", "are"}
            counted = at != phrase.count or caption.plural(phrase)
            if (inside and counted and not phrase.joined) or said:
                return caption.head(phrase)
        return ""

    def relations(self, caption: Caption, rng: random.Random) -> Iterator[Outcome]:
        """Reword a relation between two things."""
        places = list(_wordings(caption))
        for start, end in rng.sample(places, len(places)):
            after = caption.starting_at(end)
            stuffed = caption.word(start) == "full" and caption.word(start - 1).endswith("ed")  # "stuffed | full of"
            aside = stuffed or _is_quoted(caption, start)
            if after is None or aside or _is_made_by(caption, start) or caption.tag(start - 1) == "DT":
                yield "no_edit"  # "a close up", "the shelf above", "the outside of a park": nothing is related
                continue
            if " ".join(caption.lower[start:end]) == "filled with" and caption.word(end) in _AMOUNTS:
                yield "no_candidate"
                continue
            found = self._used(_others(" ".join(caption.lower[start:end]), caption.head(after)))
            yield from _changes(caption, start, end, found, rng)

    def _used(self, others: Sequence[str]) -> list[str]:
        """Return those that the pool has words for; all of them when it has none."""
        used = [other for other in others if all(map(self._pool.form_frequency, other.split()))]
        return used or list(others)

    def _find_synonyms(self, word: str, pos: str) -> tuple[str, ...]:
        if word in _NEVER | OF_PEOPLE:
            return ()
        found = self._thesaurus.synonyms(word, pos)
        return tuple(other for other in found if self._is_safe(word, other, pos))

    def _is_safe(self, word: str, other: str, pos: str) -> bool:
        return (
            other.isalpha()
            and other[:4] != word[:4]  # "walk" and "walking", "load" and "loading": of one stem, not of one use
            and (pos != "NOUN" or any(self._thesaurus.is_a(word, kind, pos) for kind in _CONCRETE))
            and other not in _NEVER | OF_PEOPLE
            and (other in MASS, other in PLURAL_ONLY) == (word in MASS, word in PLURAL_ONLY)
            and self._pool.frequency(other, pos) >= self._minimum
            and self._thesaurus.synonyms(other, pos)[:1] == [word]
        )


def _is_drawn(old: int, new: int, rng: random.Random) -> bool:
    """Draw whether a word that ``new`` captions of the pool have may be written for one that ``old`` captions have."""
    return rng.random() * (old + 1) < _OFTENER * (new + 1)


def _changes(  # noqa: PLR0913 - a place, what is written there, and chance
    caption: Caption,
    start: int,
    end: int,
    words: Sequence[str],
    rng: random.Random,
    *,
    otherwise: Outcome = "no_candidate",
) -> Iterator[Outcome]:
    """Yield the tokens from ``start`` to ``end`` said in each of these words, in an order of chance; or ``otherwise``."""
    if not words:
        yield otherwise
    for new in rng.sample(words, len(words)):
        yield (Change(*span(caption.tokens, start, end), new),)


def _others(wording: str, noun: str) -> tuple[str, ...]:
    """Return other wordings that hold before a noun."""
    if noun not in RELATIONS_BESIDE.get(wording, (noun,)):
        return ()
    of_some = RELATIONS_OF.get(wording)
    return RELATIONS.get(wording, ()) + (of_some.others if of_some and of_some.holds_beside(noun) else ())


def _is_set(caption: Caption, phrase: NounPhrase, start: int) -> bool:
    """Whether a noun is a part of a saying, in which no other says the same: "a smart | phone", "posing for a | picture"."""
    if (caption.word(start - 1), caption.head(phrase)) in _OF_TWO_WORDS:
        return True
    if caption.head(phrase) != "picture":
        return False
    before = caption.lemmas[max(0, phrase.start - 2) : phrase.start]
    return caption.word(phrase.start - 1) == "for" or not _TAKING.isdisjoint(before)


def _is_quoted(caption: Caption, at: int) -> bool:
    """Whether a token is among words that are written in the picture: "a sign that says no | bikes", 'reads "tie"'."""
    before = caption.pair.caption[: caption.tokens[at].start]
    if before.count('"') % 2 or before.count("“") > before.count("”"):
        return True
    return any(
        caption.lemmas[said] in _SAYING and caption.tag(said)[:2] == "VB" and caption.word(said + 1) not in _NO_TEXT
        for said in range(max(0, at - _LONGEST_TEXT), at)
    )


def _is_made_by(caption: Caption, at: int) -> bool:
    """Whether "by" tells who did it: "covered by a blanket"."""
    return caption.word(at) == "by" and caption.tag(at - 1) in {"VBN", "VBD"} and caption.word(at - 1) != "parked"


def _wordings(caption: Caption) -> Iterator[tuple[int, int]]:
    """Yield the stretches of tokens that the table of relations knows, longest first at each place."""
    at = 0
    while at < len(caption.tokens):
        for length in range(_LONGEST, 0, -1):
            wording = " ".join(caption.lower[at : at + length])
            if (wording in RELATIONS or wording in RELATIONS_OF) and at + length <= len(caption.tokens):
                yield at, at + length
                at += length - 1
                break
        at += 1
