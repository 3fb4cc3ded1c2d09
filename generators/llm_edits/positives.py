"""Hard positives by a language model: rewordings, and swaps around "and".

REPLACE requests another word for the same object, attribute or relation; SWAP the two conjuncts of "and" in reverse
order, only for captions with "and" and fewer than 15 words (The Hard Positive Truth, appendix C). One answer lists all
types of a caption; the model omits impossible ones. The prompt includes the other captions and labels of the image, in
which captioners use other words for the same things.

Every answer is validated (`edits.written`): silent corrections of grammar, which the paper observed, are rejected.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.generators.captions.image_words import words_of
from pairwright.generators.edit_types import POSITIVE_TYPES
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm_edits.generator import LLMEditGenerator, LLMEditOptions
from pairwright.generators.llm_edits.listed_answers import POSITIVES, ListedEdits
from pairwright.generators.llm_edits.requests import EditCandidate, PairRequests
from pairwright.generators.prompts.book import PromptBook

NAME = "llm-positives"
VERSION = 19  # raise when the same answers would give other rows
MAX_SWAP_WORDS = 15  # words: longer captions are not swapped

PROMPT = "positives-at-once"


@dataclass(frozen=True, slots=True)
class LLMPositiveOptions(LLMEditOptions):
    """What to make; types are of `POSITIVE_TYPES`."""

    types: tuple[str, ...] = POSITIVE_TYPES


class LLMPositives(LLMEditGenerator[LLMPositiveOptions]):
    """The generator of hard positives by a model."""

    name = NAME
    version = VERSION
    kind = "hard_positive"
    known_types = POSITIVE_TYPES
    default_options = LLMPositiveOptions()

    def _configure(self, book: PromptBook) -> None:
        prompt = book.get(PROMPT).with_image(sees=self.options.see_image)
        self._edits = ListedEdits(prompt, POSITIVES, POSITIVE_TYPES)

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        return self._edits.prompts

    def _ask(self, requests: PairRequests, rng: random.Random) -> LLMStep[list[EditCandidate]]:  # noqa: ARG002 - none drawn
        edits, caption = self._edits, requests.pair.caption
        wanted = tuple(kind for kind in self.options.types if kind != "swap-object" or is_swappable(caption))
        none = [EditCandidate(kind, reason="no_and") for kind in self.options.types if kind not in wanted]
        if not wanted:
            return none
        [answer] = yield from request_answers([edits.request(requests, wanted)], POSITIVES)
        return [*edits.candidates(caption, answer, wanted), *none]


def is_swappable(caption: str) -> bool:
    """Return whether a caption has "and" and is short enough for a model to swap its sides reliably."""
    words = words_of(caption)
    return "and" in words and len(words) < MAX_SWAP_WORDS
