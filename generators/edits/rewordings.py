"""Rewordings: a noun, adjective, number or relation phrase is replaced by a synonym or a word that it entails.

Candidates come from the lexicon (``rewordings.tsv``). The cloze model, or without one the word counts of the pool, gives
the *ratio* of the new word's probability to that of the old one in the context.
It rejects stilted words ("gentleman") and wrong senses ("a smart telephone"): below the floor nothing is written, and
of several candidates one is drawn by its ratio.

Rare words are written rarely: with a probability of at most `ACCEPTANCE_FACTOR` times the ratio. Otherwise half of all
positives would have a "guy", since half of all captions have a "man".
"""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import Caption, EditOutcome
from pairwright.generators.captions.phrases import NOUNS, NounPhrase
from pairwright.generators.edits.floors import REWORDING_FLOOR
from pairwright.generators.edits.slots import (
    ADJECTIVE,
    NOUN,
    PARTICIPLES,
    RELATION,
    context_of,
    find_relations,
    relation_key,
)
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.lexicon.attributes import share_class
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged
from pairwright.generators.lexicon.synonyms import other_senses, rewording_rows, rewordings

ACCEPTANCE_FACTOR: Final = 10.0  # times the ratio: probability with which a word may be written
_TABLES: Final = ("rewordings", "entailed_rewordings")
_DESCRIBING: Final = frozenset({"JJ", "CD", "VBN", "VBG"})


class RewordingSlot(NamedTuple):
    """Tokens ``start`` up to ``end`` of a caption, and rewordings of them.

    Attributes:
        key: target of the cloze model for the words of the slot.
        news: keys of the rewordings.
        forms: inflected rewordings.
        span: tokens of the cloze slot.
        nouns: lemmas of subject and object of a relation, or of the noun that an adjective modifies, as in `Slot`.
        ratios: probability of each rewording relative to the original, after `Rewordings.score`.
    """

    kind: str
    start: int
    end: int
    key: str
    news: tuple[str, ...]
    forms: tuple[str, ...]
    span: tuple[int, int]
    nouns: tuple[str, str] = ("", "")
    ratios: Sequence[float] = ()


class Rewordings:
    """Rewords captions."""

    def __init__(self, pool: PoolStatistics, model: ClozeModel | None = None) -> None:
        self._pool, self._model = pool, model

    def score(self, captions: Sequence[Caption], target: str) -> list[list[RewordingSlot | str]]:
        """Return the rewordable slots of captions for a target ("object", "attribute", "relation"), with reasons of rejections.

        Captions are scored in one batch; ratios do not depend on the other captions.
        """
        find, kind = {
            "object": (self._nouns, NOUN),
            "attribute": (self._adjectives, ADJECTIVE),
            "relation": (self._relations, RELATION),
        }[target]
        found = [(caption, [*find(caption)]) for caption in captions]
        slots = [(caption, each) for caption, own in found for each in own if not isinstance(each, str)]
        ratios = self._ratios(kind, slots)
        return [
            [each if isinstance(each, str) else each._replace(ratios=next(ratios)) for each in own] for _, own in found
        ]

    def reword(self, target: str, caption: Caption, rng: random.Random) -> Iterator[EditOutcome]:
        """Yield the outcomes of `draw_rewordings` for one caption and target."""
        return draw_rewordings(caption, self.score([caption], target)[0], rng)

    def _ratios(self, kind: str, slots: Sequence[tuple[Caption, RewordingSlot]]) -> Iterator[list[float]]:
        """Yield the ratios of slots of one kind, by the model (if it knows both words) or by the pool."""
        index = self._model.index(kind) if self._model is not None else {}
        contexts = [context_of(caption, *slot.span, *slot.nouns) for caption, slot in slots if slot.key in index]
        rows = iter(self._model.log_probs(kind, contexts) if self._model is not None else ())
        for _, slot in slots:
            row = next(rows) if slot.key in index else None
            yield [
                math.exp(row[index[new]] - row[index[slot.key]])
                if row is not None and new in index
                else self._frequency_ratio(slot, new)
                for new in slot.news
            ]

    def _frequency_ratio(self, slot: RewordingSlot, new: str) -> float:
        counts = [self._count(slot.kind, key) for key in (new, slot.key)]
        return (counts[0] + 1) / (counts[1] + 1) if counts[0] or not counts[1] else 0.0

    def _count(self, kind: str, key: str) -> int:
        words = key.lower().split()
        if len(words) > 1:
            return min(self._pool.bigram(*pair) for pair in pairwise(words))
        return self._pool.frequency(key.lower(), "NOUN") if kind == NOUN else self._pool.form_frequency(key)

    def _nouns(self, caption: Caption) -> Iterator[RewordingSlot | str]:
        for phrase in caption.phrases:
            if caption.tag(phrase.head) in NOUNS and caption.is_whole(phrase) and phrase.start not in caption.quoted:
                yield from self._noun(caption, phrase)

    def _noun(self, caption: Caption, phrase: NounPhrase) -> Iterator[RewordingSlot | str]:
        for start in (phrase.head - 1, phrase.head) if len(phrase.nouns) > 1 else (phrase.head,):
            noun = " ".join([*caption.lower[start : phrase.head], caption.head(phrase)])
            if caption.words.has_any(other_senses().get(noun, ())):
                yield "may_be_false"
                return
            news = _candidates(noun, NOUN)
            news = tuple(new for new in news if new.rpartition(" ")[2] not in caption.lemmas or new.endswith(noun))
            if _is_counted(caption, phrase):
                news = tuple(new for new in news if new.rpartition(" ")[2] not in flagged("mass"))
            if news and (start < phrase.head or len(phrase.nouns) == 1):
                forms = tuple(inflect(new, caption.tag(phrase.head)) for new in news)
                keys = tuple(new.lower() for new in news)
                yield RewordingSlot(NOUN, start, phrase.end, noun, keys, forms, (start, phrase.end))
                return
        yield "no_candidate"

    def _adjectives(self, caption: Caption) -> Iterator[RewordingSlot | str]:
        for at, tag in enumerate(caption.tags):
            if tag not in _DESCRIBING or caption.in_name(at) or at in caption.quoted:
                continue
            noun, word = self._described(caption, at), caption.word(at)
            news = _candidates(word, ADJECTIVE, noun) if noun else ()
            if caption.tag(at + 1).startswith("NN") and caption.lemmas[at + 1] != noun:  # "little | league players"
                news = tuple(new for new in news if self._pool.bigram(new.rpartition(" ")[2], caption.word(at + 1)))
            if news:
                yield RewordingSlot(ADJECTIVE, at, at + 1, word, news, news, (at, at + 1), ("", noun))
            else:
                yield "no_candidate"

    @staticmethod
    def _described(caption: Caption, at: int) -> str:
        """Return the lemma of the noun that a token modifies on its own, or an empty string."""
        word, beside = caption.word(at), {caption.word(at - 1), caption.word(at + 1)}
        if _forms_unit(caption, at) or any(share_class(word, other) for other in beside):
            return ""  # "a 20 year | old man", "golden | brown fries"
        for phrase in caption.phrases:
            counted = at != phrase.count or caption.plural(phrase)
            if phrase.start <= at < phrase.end and not phrase.joined and counted:
                return caption.head(phrase)
        return ""

    def _relations(self, caption: Caption) -> Iterator[RewordingSlot | str]:
        slots = [*find_relations(caption)]
        for start, end in _wordings(caption):
            after, wording = caption.starting_at(end), " ".join(caption.lower[start:end])
            done_by = caption.word(start) == "by" and caption.tag(start - 1) in PARTICIPLES  # "covered | by a blanket"
            stuffed = caption.tag(start) == "JJ" and caption.word(start - 1).endswith("ed")  # "stuffed | full of"
            other = done_by or stuffed or caption.tag(start - 1) == "DT"  # "the | outside of"
            if after is None or other or start in caption.quoted:
                yield "no_edit"
                continue
            news = _candidates(wording, RELATION, caption.noun(after))
            if not news:
                yield "no_candidate"
                continue
            slot = next((slot for slot in slots if slot.start <= start and slot.end == end), None)
            span = (slot.start, slot.end) if slot is not None else (start, end)
            verb = caption.lower[span[0] : start]
            keys = [relation_key((*verb, *words.split()), caption.tag(span[0])) for words in (wording, *news)]
            nouns = (slot.before, slot.after) if slot is not None else ("", caption.head(after))
            yield RewordingSlot(RELATION, start, end, keys[0], tuple(keys[1:]), news, span, nouns)


def draw_rewordings(
    caption: Caption, found: Iterable[RewordingSlot | str], rng: random.Random
) -> Iterator[EditOutcome]:
    """Yield the reasons of rejections, then the drawn rewordings of a caption in random order by ratio."""
    drawn: list[tuple[float, EditOutcome]] = []
    for each in found:
        if isinstance(each, str):
            yield each
            continue
        for form, ratio in zip(each.forms, each.ratios, strict=True):
            if ratio < REWORDING_FLOOR or rng.random() >= ACCEPTANCE_FACTOR * ratio:
                yield "overused_word"
            else:
                change = caption.change(each.start, each.end, form)
                drawn.append((rng.random() ** (1 / min(ratio, 1.0)), (change,)))
    yield from (outcome for _, outcome in sorted(drawn, key=lambda each: each[0], reverse=True))


def _is_counted(caption: Caption, phrase: NounPhrase) -> bool:
    """Return whether a phrase has no place for a mass noun: "boats in a | river", "two rivers"."""
    return caption.plural(phrase) or phrase.count >= 0 or caption.word(phrase.determiner) in words_with("one")


def _forms_unit(caption: Caption, at: int) -> bool:
    """Return whether a word forms a unit with a neighbour: by a hyphen, or after a noun."""
    before = caption.tag(at - 1)
    return "HYPH" in {before, caption.tag(at + 1)} or before.startswith("NN")


@lru_cache(maxsize=20_000)
def _candidates(word: str, kind: str, noun: str = "") -> tuple[str, ...]:
    """Return the rewordings of a word in the tables, synonyms before entailed words."""
    return tuple(dict.fromkeys(other for table in _TABLES for other in rewordings(word, kind, noun, table)))


def _wordings(caption: Caption) -> Iterator[tuple[int, int]]:
    """Yield the spans of tokens that are relations of the lexicon, the longest at each position."""
    at, known = 0, _reworded_relations()
    longest = max(wording.count(" ") for wording in known) + 1
    while at < len(caption.lower):
        ends = range(min(at + longest, len(caption.lower)), at, -1)
        end = next((end for end in ends if " ".join(caption.lower[at:end]) in known), 0)
        if end:
            yield at, end
        at = max(end, at + 1)


@lru_cache(maxsize=1)
def _reworded_relations() -> frozenset[str]:
    return frozenset(word for table in _TABLES for kind, word in rewording_rows(table) if kind == RELATION)
