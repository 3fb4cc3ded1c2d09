"""A fact: something known of an image that a question can be asked about, in full, in short, or with options."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pairwright.generators.captions.context import plural_of
from pairwright.generators.captions.phrases import NUMBER_WORDS
from pairwright.generators.language.inflection import article

_INITIALS = re.compile(r"\btv(?=s?\b)")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that can be asked.

    Attributes:
        wordings: of the question, with fields.
        answer: a full sentence, with fields.
        fields: name -> text, of what stands in wordings and answers.
        says: ``yes`` or ``no`` for yes-no questions, else empty.
        short: the answer in a word or phrase, with fields; empty: it has none.
        wrong: what the short answer could be and surely is not; for questions with options.
        about: labels or nouns that it speaks of.
        presence: whether it asks whether something is there at all.
    """

    wordings: tuple[str, ...]
    answer: str
    fields: Mapping[str, str]
    says: str = ""
    short: str = ""
    wrong: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    presence: bool = False

    def question(self, rng: random.Random) -> str:
        """Return the question in one of its wordings."""
        return self.filled(rng.choice(self.wordings))

    def full(self) -> str:
        """Return the answer as a sentence."""
        return self.filled(self.answer)

    def brief(self) -> str:
        """Return the short answer with a capital; empty where there is none."""
        said = {"yes": "Yes", "no": "No"}.get(self.says) or self.filled(self.short)
        return said[:1].upper() + said[1:]

    def options(self) -> list[str]:
        """Return the wrong options with capitals."""
        return [said[:1].upper() + said[1:] for said in map(self.filled, self.wrong)]

    def filled(self, text: str) -> str:
        """Return a text with its fields filled in, and with the capitals of "TV", which labels lack."""
        return _INITIALS.sub("TV", text.format_map(self.fields))


def label_fields(label: str, count: int = 1) -> dict[str, str]:
    """Return the fields of a label: noun, nouns, a_noun, count (in words), number (in digits)."""
    return {
        "noun": label,
        "nouns": plural_of(label),
        "a_noun": f"{article(label)} {label}",
        "count": NUMBER_WORDS[count - 1] if count else "no",
        "number": str(count),
    }
