"""Rule-based edits of a caption in the form of model answers: old words, new words, new caption.

The rules add objects and attributes only with statistics of a caption pool; without them, additions are drawn from two
short lists: "a dog" becomes "a dusty dog", or "a dog next to a kite".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from pairwright.datasets.records import Annotation, Pair, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.captions.realisation import Change, rewrite
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.language.inflection import article
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.positives import RulePositives

_JOINED = re.compile(r"\A.*?\b(?:an?|the|some|two|his|her|their|its|and|with|of)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelEdit:
    """An edit in the form of a model answer.

    Attributes:
        old: the removed words, or the first of two swapped ones; empty for an addition.
        new: the added words, or the second of the swapped ones.
        caption: the edited caption.
        described: the object that an added attribute describes; else empty.
    """

    old: str
    new: str
    caption: str
    described: str = ""

    @property
    def concept(self) -> str:
        """The added words without conjunction and article: "rabbit" for "and a rabbit"."""
        return self.new if self.old or self.described else _JOINED.sub("", self.new)


THINGS = ("kite", "suitcase", "clock", "teddy bear", "potted plant", "skateboard", "umbrella", "cake")
ATTRIBUTES = ("dusty", "striped", "purple", "wet", "rusty")


def add_objects(caption: str, tokens: Sequence[Token]) -> Iterator[ModelEdit]:
    """Yield edits that add each object in turn next to the first one in the caption."""
    behind = ["", *(token.lemma for token in tokens[1:]), ""]
    ends = [tokens[phrase.head].end for phrase in noun_phrases(tokens) if behind[phrase.head + 1] != "of"]
    for thing in make_rng(0, "plausible", caption).sample(THINGS, len(THINGS)) if ends else ():
        if not _names(caption, thing):
            words = f" next to {article(thing)} {thing}"
            text, _ = rewrite(caption, [Change(ends[0], ends[0], words)])
            yield ModelEdit("", words.strip(), text)


def add_attributes(caption: str, concept: str) -> Iterator[ModelEdit]:
    """Yield edits that add each attribute in turn to an object of the caption."""
    place = re.search(rf"(?<!\w){re.escape(concept)}(?!\w)", caption, re.IGNORECASE)
    for word in ATTRIBUTES if place else ():
        if place and not _names(caption, word):
            text, _ = rewrite(caption, [Change(place.start(), place.start(), f"{word} ")])
            yield ModelEdit("", word, text, described=concept)


def _names(caption: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(words)}", caption, re.IGNORECASE) is not None


PER_TYPE = 6  # negatives of each type
SEED = "plausible"
_ARTICLE = re.compile(r"\A(?:an?|the)\s+(?=\w)", re.IGNORECASE)


class RuleEdits:
    """Edits captions by the rules of `negatives` and `positives`.

    The same caption always gives the same edits, so that the steps of a workflow are consistent.

    Args:
        wordnet: the WordNet table.
        tagger: tags captions.
    """

    def __init__(self, wordnet: WordNet, tagger: Tagger) -> None:
        pool = load_bundled_statistics()
        self._tagger = tagger
        self._negatives = RuleNegatives(wordnet, pool, NegativeOptions(types=BENCHMARK_TYPES, per_type=PER_TYPE))
        self._positives = RulePositives(pool)
        self.negatives = lru_cache(maxsize=10_000)(self._find_negatives)
        self.positives = lru_cache(maxsize=10_000)(self._find_positives)

    def _find_negatives(self, caption: str, known: tuple[str, ...] = ()) -> dict[str, list[ModelEdit]]:
        """Return hard negatives by type.

        Args:
            caption: the caption.
            known: other true captions, which a negative contradicts, too.
        """
        pair = Pair(pair_key(SEED, caption, caption), caption, captions=known)
        [tokens] = self._tagger.tag([caption])
        found = _by_type(self._negatives.annotate(pair, tokens, make_rng(0, SEED, caption)), tokens)
        known_text = " ".join(known).casefold()
        if "add-object" not in found:
            found["add-object"] = [edit for edit in add_objects(caption, tokens) if edit.concept not in known_text]
        return found

    def true_words(self, edit: ModelEdit, caption: str, known: Sequence[str]) -> str:
        """Return the words of an addition with what other captions state in place of the false thing or attribute.

        Args:
            edit: the addition.
            caption: the caption.
            known: other true captions.

        Returns:
            Those nearest in length; empty if other captions state nothing of the kind.
        """
        stated = self._attributes_of(edit.described, known) if edit.described else self._things_in(known)
        words = [word for word in stated if not _names(caption, word)]
        if not words:
            return ""
        true = min(words, key=lambda word: abs(len(word) - len(edit.concept)))
        if edit.described:
            return true
        before = edit.new.removesuffix(edit.concept)
        return re.sub(r"\ban? \Z", f"{article(true)} ", before) + true if before != edit.new else ""

    def _things_in(self, known: Sequence[str]) -> list[str]:
        """Return the nouns that captions name behind an article, in the singular."""
        return [
            tokens[phrase.head].lemma
            for tokens in self._tagger.tag(list(known))
            for phrase in noun_phrases(tokens)
            if phrase.determiner >= 0 and tokens[phrase.head].tag == "NN" and len(phrase.nouns) == 1
        ]

    def _attributes_of(self, noun: str, known: Sequence[str]) -> list[str]:
        """Return the adjectives that captions have before a noun."""
        return [
            one.text.lower()
            for tokens in self._tagger.tag(list(known))
            for one, other in pairwise(tokens)
            if one.tag == "JJ" and noun.lower() in {other.text.lower(), other.lemma}
        ]

    def _find_positives(self, caption: str) -> dict[str, list[ModelEdit]]:
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
    """Return an edit with both words of a swap, or else the words of its longest change (others adapt articles)."""
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
