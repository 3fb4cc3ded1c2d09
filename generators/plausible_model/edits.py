"""Edits of a caption by rules, in the form in which a model is asked for them: old words, new words, new caption."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pairwright.datasets.records import Annotation, Pair, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.edits.general_english import GeneralEnglish
from pairwright.generators.edits.realisation import Change, rewrite
from pairwright.generators.language.inflection import article
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.negatives import FOR_BENCHMARKS, NegativeOptions, RuleNegatives
from pairwright.generators.positives import RulePositives

_JOINED = re.compile(r"\A.*?\b(?:an?|the|some|two|his|her|their|its|and|with|of)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelEdit:
    """An edit.

    Attributes:
        old: the words that go, or the first of two that change places; empty for an addition.
        new: the words that come, or the second of the two.
        caption: the caption after it.
        described: the thing that an added attribute describes; else empty.
    """

    old: str
    new: str
    caption: str
    described: str = ""

    @property
    def concept(self) -> str:
        """What comes, without what joins it to the caption: "rabbit" of "and a rabbit"."""
        return self.new if self.old or self.described else _JOINED.sub("", self.new)


THINGS = ("kite", "suitcase", "clock", "teddy bear", "potted plant", "skateboard", "umbrella", "cake")
ATTRIBUTES = ("dusty", "striped", "purple", "wet", "rusty")


def add_objects(caption: str, tokens: Sequence[Token]) -> Iterator[ModelEdit]:
    """Yield the caption with a thing beside the first one that it names, one after another."""
    behind = ["", *(token.lemma for token in tokens[1:]), ""]
    ends = [tokens[phrase.head].end for phrase in noun_phrases(tokens) if behind[phrase.head + 1] != "of"]
    for thing in make_rng(0, "plausible", caption).sample(THINGS, len(THINGS)) if ends else ():
        if not _names(caption, thing):
            words = f" next to {article(thing)} {thing}"
            text, _ = rewrite(caption, [Change(ends[0], ends[0], words)])
            yield ModelEdit("", words.strip(), text)


def add_attributes(caption: str, concept: str) -> Iterator[ModelEdit]:
    """Yield the caption with a word before a thing, one after another."""
    place = re.search(rf"(?<!\w){re.escape(concept)}(?!\w)", caption, re.IGNORECASE)
    for word in ATTRIBUTES if place else ():
        if place and not _names(caption, word):
            text, _ = rewrite(caption, [Change(place.start(), place.start(), f"{word} ")])
            yield ModelEdit("", word, text, described=concept)


def _names(caption: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(words)}", caption, re.IGNORECASE) is not None


PER_TYPE = 6  # negatives to choose from
SEED = "plausible"
_ARTICLE = re.compile(r"\A(?:an?|the)\s+(?=\w)", re.IGNORECASE)


class RuleEdits:
    """Edits captions by the rules of `negatives` and `positives`.

    The same caption always gives the same edits, so that the steps of a workflow fit each other.

    Args:
        wordnet: the WordNet table.
        tagger: tags captions.
    """

    def __init__(self, wordnet: WordNet, tagger: Tagger) -> None:
        english = GeneralEnglish(wordnet)
        self._tagger = tagger
        self._negatives = RuleNegatives(
            wordnet, english, NegativeOptions(types=FOR_BENCHMARKS, per_type=PER_TYPE, last_resorts=False)
        )
        self._positives = RulePositives(wordnet, english)
        self.negatives = lru_cache(maxsize=10_000)(self._false)
        self.positives = lru_cache(maxsize=10_000)(self._true)

    def _false(self, caption: str, known: tuple[str, ...] = ()) -> dict[str, list[ModelEdit]]:
        """Return hard negatives by type, those of a type in order.

        Args:
            caption: what to edit.
            known: what else is true of the image; a negative contradicts this, too.
        """
        pair = Pair(pair_key(SEED, caption, caption), caption, captions=known)
        [tokens] = self._tagger.tag([caption])
        found = _by_type(self._negatives.annotate(pair, tokens, make_rng(0, SEED, caption)), tokens)
        said = " ".join(known).casefold()
        if "add-object" not in found:
            found["add-object"] = [edit for edit in add_objects(caption, tokens) if edit.concept not in said]
        return found

    def _true(self, caption: str) -> dict[str, list[ModelEdit]]:
        """Return hard positives by type."""
        pair = Pair(pair_key(SEED, caption, caption), caption)
        [tokens] = self._tagger.tag([caption])
        return _by_type(self._positives.annotate(pair, tokens, make_rng(0, SEED, caption)), tokens)


def _by_type(rows: Sequence[Annotation], tokens: Sequence[Token]) -> dict[str, list[ModelEdit]]:
    found: dict[str, list[ModelEdit]] = {}
    for row in rows:
        if row.status == "kept":
            found.setdefault(f"{row.form}-{row.target}", []).append(_to_model_edit(row, tokens))
    return found


def _to_model_edit(row: Annotation, tokens: Sequence[Token]) -> ModelEdit:
    """Return an edit; of a swap both words, else the words of its longest change: a mended article is a change, too."""
    if row.form == "swap" and len(row.edits) > 1:
        return ModelEdit(row.edits[0].before, row.edits[0].after, row.text)
    change = max(row.edits, key=lambda edit: len(edit.after) + len(edit.before))
    described = ""
    if (row.form, row.target) == ("add", "attribute"):
        behind = (token.text for token in tokens if token.pos == "NOUN" and token.end > change.before_span[1])
        described = next(behind, "")
    return ModelEdit(_strip_article(change.before), _strip_article(change.after), row.text, described)


def _strip_article(words: str) -> str:
    return _ARTICLE.sub("", words.strip(" ,"))
