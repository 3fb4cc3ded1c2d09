"""Parsed captions: tokens, noun phrases, and the other captions and boxes of the image.

Built once per pair and shared by all generators of edits. An *edit outcome* is what a generator yields for each
attempt: the changes to make, or the reason code of a rejection (`REASONS`).
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from pairwright.datasets.records import Pair
from pairwright.generators.captions.image_words import ImageWords
from pairwright.generators.captions.phrases import (
    NOUNS,
    PLURAL,
    PROPER,
    TWO_WORD_PREPOSITIONS,
    NounPhrase,
    noun_phrases,
    span,
)
from pairwright.generators.captions.questions import is_question
from pairwright.generators.captions.realisation import Change, Style, caption_style, joined_word_spans, lowercase_span
from pairwright.generators.language.cloze.context import MAX_BAG, REACH
from pairwright.generators.language.identification import other_language
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.attributes import counts
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.nouns import flagged
from pairwright.generators.lexicon.tables import grouped

# If all attempts fail, the last of their reasons in this order is reported.
REASONS = (
    "no_edit", "question", "not_english", "no_candidate", "overused_word", "another_target", "not_grammatical", "same_meaning", "true_of_image",
    "may_be_false", "identical",
    "duplicate", "no_positive",
)  # fmt: skip

NON_OBJECTS = flagged("non_object") | flagged("vague")

EditOutcome = tuple[Change, ...] | str
Span = tuple[int, int]  # of tokens: the first one, and one past the last

_ENDS: Final = ("",) * REACH
_QUOTED: Final = 4  # words after "says" that may be quoted text
_CONTENT: Final = frozenset({"NOUN", "PROPN", "VERB", "ADJ"})
_CONTENTS, _NOUNS_AND_VERBS = frozenset({"NOUN", "VERB", "ADJ"}), frozenset({"NOUN", "VERB"})

# Anaphors: their antecedents cannot be moved, nor changed in number or gender.
ANAPHORS = words_with("anaphor")
GENDERED = words_with("gendered")
_JUST_ONE = frozenset(word for word, value in counts().items() if value == 1)
_INVARIANT = words_with("invariant")
_ONE, _SEVERAL = words_with("one"), words_with("many") | words_with("amount")


class ParsedText:
    """A text's tokens with derived tags, lemmas and noun phrases."""

    # Computed eagerly: every generator needs these, for thousands of captions a second.
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.tags = [token.tag for token in tokens]
        self.lemmas = [token.lemma for token in tokens]
        self.lower = tuple([token.text.lower() for token in tokens])
        self.phrases = noun_phrases(tokens)
        self._by_start = {phrase.start: phrase for phrase in self.phrases}
        self._by_end = {phrase.end: phrase for phrase in self.phrases}
        for phrase in self.phrases:
            if self.tags[phrase.head] == "NNS" and self.lower[phrase.head] in _INVARIANT and self._is_one(phrase):
                self.tags[phrase.head] = "NN"

    def _is_one(self, phrase: NounPhrase) -> bool:
        """Return whether the determiner of a phrase is singular: "a white sheep", but not "a few sheep"."""
        inside = self.lower[phrase.start : phrase.head]
        return self.word(phrase.determiner) in _ONE and _SEVERAL.isdisjoint(inside)

    @cached_property
    def context_words(self) -> tuple[str, ...]:
        """The context words of a cloze model: tokens in lower case, "an" as "a", since the article depends on the slot.

        Padded on each side with `REACH` empty strings.
        """
        return (*_ENDS, *["a" if word == "an" else word for word in self.lower], *_ENDS)

    @cached_property
    def content_lemmas(self) -> tuple[tuple[int, str], ...]:
        """Position and lemma of the first content words, as many as a cloze model reads, in order of lemma."""
        found = [(token.lemma, at) for at, token in enumerate(self.tokens) if token.pos in _CONTENT]
        return tuple([(at, lemma) for lemma, at in sorted(found[: MAX_BAG + 1])])

    @cached_property
    def things(self) -> tuple[NounPhrase, ...]:
        """The complete phrases of visible objects."""
        return tuple([phrase for phrase in self.phrases if self.is_thing(phrase) and self.is_whole(phrase)])

    @cached_property
    def by_head(self) -> dict[str, tuple[NounPhrase, ...]]:
        """The phrases by the lemma of their head noun."""
        return grouped((self.head(phrase), phrase) for phrase in self.phrases)

    @cached_property
    def distinct_words(self) -> frozenset[str]:
        """The words of `lower`: each edit of a text looks for some of them."""
        return frozenset(self.lower)

    def word(self, index: int) -> str:
        """Return the lower-case token at ``index``, or an empty string outside the caption."""
        return self.lower[index] if 0 <= index < len(self.lower) else ""

    def change(self, start: int, end: int, after: str) -> Change:
        """Return the change that writes words for the tokens ``start`` up to ``end``."""
        return Change(self.tokens[start].start, self.tokens[end - 1].end, after)

    def tag(self, index: int) -> str:
        """Return the tag of the token at ``index``, or an empty string outside the caption."""
        return self.tags[index] if 0 <= index < len(self.tags) else ""

    def noun(self, phrase: NounPhrase) -> str:
        """Return the dictionary form of the noun of a phrase, compounds with spaces ("fire hydrant")."""
        before = [self.lower[at] for at in phrase.nouns[:-1]]
        return " ".join([*before, self.lemmas[phrase.head]])

    def head(self, phrase: NounPhrase) -> str:
        """Return the lemma of the head noun."""
        return self.lemmas[phrase.head]

    def plural(self, phrase: NounPhrase) -> bool:
        """Return whether the phrase is plural."""
        return self.tags[phrase.head] in PLURAL

    def counts_a_part(self, phrase: NounPhrase) -> bool:
        """Return whether a number counts parts of the head noun, not the noun itself: "a | two story | house"."""
        return phrase.count >= 0 and self.lower[phrase.count] not in _JUST_ONE and not self.plural(phrase)

    def is_thing(self, phrase: NounPhrase) -> bool:
        """Return whether the phrase names a visible object, not a view, a part or an amount."""
        return self.lemmas[phrase.head] not in NON_OBJECTS and self.tags[phrase.head] in NOUNS

    def is_whole(self, phrase: NounPhrase) -> bool:
        """Return whether the phrase is complete, as far as tags tell: not "a lush | green field"."""
        after, end = self.tag(phrase.end), phrase.end
        continues = after in {"JJ", "HYPH", "CD", "NNP"}
        if continues or (after in {"VBN", "VBD"} and self.tag(end + 1).startswith("NN")):
            return self.lower[end : end + 2] in TWO_WORD_PREPOSITIONS  # "a street | next to"
        return True

    def starting_at(self, index: int) -> NounPhrase | None:
        """Return the noun phrase that starts at token ``index``."""
        return self._by_start.get(index)

    def ending_at(self, index: int) -> NounPhrase | None:
        """Return the noun phrase whose last token is before ``index``."""
        return self._by_end.get(index)


class Caption(ParsedText):
    """A parsed caption with the other captions and boxes of its image.

    Attributes:
        words: words of all captions and boxes of the image.
        contents: lemmas of nouns, verbs and adjectives, the context of a new word.
        nouns_and_verbs: lemmas of nouns and verbs, with which a new object must co-occur.
        joined: spans of the words that are joined by hyphens, apostrophes or slashes.
    """

    def __init__(self, pair: Pair, tokens: Sequence[Token]) -> None:
        super().__init__(tokens)
        self.pair = pair
        self.words = ImageWords(pair)
        self.contents = self._lemmas_of(_CONTENTS)
        self.nouns_and_verbs = self._lemmas_of(_NOUNS_AND_VERBS)
        self.joined = joined_word_spans(pair.caption)

    @cached_property
    def parts(self) -> frozenset[int]:
        """The tokens that are parts of a hyphenated or joined word: "walk", "-" and "in" of "walk-in"."""
        starts = enumerate(token.start for token in self.tokens) if self.joined else ()
        return frozenset(at for at, own in starts for start, end in self.joined if start <= own < end)

    @cached_property
    def quoted(self) -> frozenset[int]:
        """The tokens of quoted text: "a sign that says no | bikes", 'reads "tie"'."""
        text, quoting = self.pair.caption, words_with("quotes")
        found: set[int] = set()
        if '"' in text or "“" in text:
            found.update(at for at, token in enumerate(self.tokens) if _opens_quote(text[: token.start]))
        if not quoting.isdisjoint(self.lemmas):
            verbs = (at for at, tag in enumerate(self.tags) if tag.startswith("VB") and self.lemmas[at] in quoting)
            for at in verbs:
                if self.word(at + 1) not in words_with("no_quote"):
                    found.update(range(at + 1, at + 1 + _QUOTED))
        return frozenset(found)

    @cached_property
    def skip_reason(self) -> str:
        """Reason code if the caption cannot be edited at all (a question, not English), or an empty string."""
        text = self.pair.caption
        if is_question(text):
            return "question"
        return "not_english" if other_language(text) else ""

    def _lemmas_of(self, kinds: frozenset[str]) -> tuple[str, ...]:
        return tuple([token.lemma for token in self.tokens if token.pos in kinds and token.lemma not in NON_OBJECTS])

    def exchange(self, first: Span, second: Span) -> tuple[Change, Change]:
        """Return the changes that exchange the words of two spans, given in order of position."""
        source = self.pair.caption
        (start, end), (second_start, second_end) = span(self.tokens, *first), span(self.tokens, *second)
        moved = lowercase_span(source, start, end, proper=self.tag(first[0]).startswith("NNP"))
        return Change(start, end, source[second_start:second_end]), Change(second_start, second_end, moved)

    def in_name(self, at: int) -> bool:
        """Return whether a word begins or continues a proper name: "Red" of the Red Sox, "Big" of Big Ben."""
        both = self.tokens[at : at + 2]
        if len(both) < 2 or not all(token.text[:1].isupper() for token in both):
            return False
        return (at > 0 or self.tags[at] in PROPER) and caption_style(self.pair.caption) is Style.SENTENCE


def _opens_quote(before: str) -> bool:
    return before.count('"') % 2 == 1 or before.count("“") > before.count("”")
