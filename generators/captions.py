"""A caption made ready for edits: its tokens, noun phrases, relations and what else is said of the image.

Built once a pair and shared by all makers of edits. An *outcome* is what a maker yields for each place that it tries:
the changes to make there, or the reason why it makes none. Reasons, from "nothing there" to "nearly": see `REASONS`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pairwright.datasets.records import Pair
from pairwright.generators.context import ImageWords
from pairwright.generators.edits import Change, joined_words
from pairwright.generators.language.tokens import Token
from pairwright.generators.nouns import FRAMES
from pairwright.generators.phrases import NounPhrase, is_plural, noun_phrases
from pairwright.generators.relations import Found, relations_in
from pairwright.generators.wordlists import word_set

# When every place fails, the reason that stands furthest to the right is the one given.
REASONS = (
    "no_edit", "no_candidate", "not_grammatical", "true_of_image", "may_be_false", "identical", "duplicate", "no_positive"
)  # fmt: skip

Outcome = tuple[Change, ...] | str

# Words that speak of a thing named before; what they stand beside cannot be moved or changed in number or sex.
ANAPHORS = word_set("its their his her hers theirs it them him himself herself itself themselves each other")
GENDERED = word_set("his her hers him he she himself herself")


@dataclass(frozen=True)
class Caption:
    """A pair's caption with everything that the makers of edits look at."""

    pair: Pair
    tokens: Sequence[Token]

    @cached_property
    def phrases(self) -> tuple[NounPhrase, ...]:
        """Noun phrases from left to right."""
        return noun_phrases(self.tokens)

    @cached_property
    def relations(self) -> tuple[Found, ...]:
        """Relations from left to right."""
        return relations_in(self.tokens)

    @cached_property
    def words(self) -> ImageWords:
        """What all captions and boxes of the image say."""
        return ImageWords.of(self.pair)

    @cached_property
    def lower(self) -> tuple[str, ...]:
        """The tokens as written, in lower case."""
        return tuple(token.text.lower() for token in self.tokens)

    @cached_property
    def parts(self) -> frozenset[int]:
        """The tokens that are but a part of a word as written: "walk", "-" and "in" of "walk-in"."""
        spans = joined_words(self.pair.caption)
        inside = (at for at, token in enumerate(self.tokens) for start, end in spans if start <= token.start < end)
        return frozenset(inside) if spans else frozenset()

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """Lemmas of nouns, verbs and adjectives, the context in which a new word must make sense."""
        kept = (token for token in self.tokens if token.pos in {"NOUN", "VERB", "ADJ"})
        return tuple(token.lemma for token in kept if token.lemma not in FRAMES)

    @cached_property
    def company(self) -> tuple[str, ...]:
        """Lemmas of nouns and of what is done, beside which another thing must make sense."""
        kept = (token for token in self.tokens if token.pos in {"NOUN", "VERB"})
        return tuple(token.lemma for token in kept if token.lemma not in FRAMES)

    def word(self, index: int) -> str:
        """Return the lower-case token at ``index``, or an empty string outside the caption."""
        return self.lower[index] if 0 <= index < len(self.lower) else ""

    def tag(self, index: int) -> str:
        """Return the tag of the token at ``index``, or an empty string outside the caption."""
        return self.tokens[index].tag if 0 <= index < len(self.tokens) else ""

    def noun(self, phrase: NounPhrase) -> str:
        """Return the noun of a phrase as a dictionary has it, a compound with spaces ("fire hydrant")."""
        before = [self.word(at) for at in phrase.nouns[:-1]]
        return " ".join([*before, self.tokens[phrase.head].lemma])

    def head(self, phrase: NounPhrase) -> str:
        """Return the lemma of the head noun."""
        return self.tokens[phrase.head].lemma

    def plural(self, phrase: NounPhrase) -> bool:
        """Whether the phrase speaks of several."""
        return is_plural(self.tokens[phrase.head])

    def is_thing(self, phrase: NounPhrase) -> bool:
        """Whether the phrase names something to be seen, and not a view, a part or an amount."""
        return self.head(phrase) not in FRAMES and self.tag(phrase.head) in {"NN", "NNS"}

    def is_whole(self, phrase: NounPhrase) -> bool:
        """Whether the phrase ends where it seems to: not "a lush | green field", "the snow | covered ground"."""
        after, beyond = self.tag(phrase.end), self.tag(phrase.end + 1)
        return after not in {"JJ", "HYPH", "CD", "NNP"} and not (after in {"VBN", "VBD"} and beyond.startswith("NN"))

    def starting_at(self, index: int) -> NounPhrase | None:
        """Return the noun phrase that starts at token ``index``."""
        return self._by_start.get(index)

    def ending_at(self, index: int) -> NounPhrase | None:
        """Return the noun phrase whose last token is before ``index``."""
        return self._by_end.get(index)

    @cached_property
    def _by_start(self) -> dict[int, NounPhrase]:
        return {phrase.start: phrase for phrase in self.phrases}

    @cached_property
    def _by_end(self) -> dict[int, NounPhrase]:
        return {phrase.end: phrase for phrase in self.phrases}
