"""Hard positives by a language model: rewordings, and what "and" joins in another order.

REPLACE asks for another word for the same object, attribute or relation; SWAP for the two sides of "and", only in
captions that have one and fewer than 15 words (The Hard Positive Truth, appendix C). The paper's model reworded objects
more than attributes more than relations, so each is asked for by a prompt of its own, and each prompt may answer that
it is not possible. All types of a caption are asked in one round.

Every answer is validated (`edits.written`): silent corrections of grammar, which the paper observed, are rejected.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.datasets.records import Annotation, Origin, Pair
from pairwright.datasets.suggestions import require_known
from pairwright.generators.captions.context import words_of
from pairwright.generators.edits.constraints.knowledge import EditThesaurus
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.sources import Pool
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm_edits import (
    AnnotationBuilder,
    EditCandidate,
    PairRequests,
    Rewritten,
    candidate_from_answer,
)
from pairwright.generators.prompts.book import PromptBook

NAME = "llm-positives"
VERSION = 9
MAX_SWAP_WORDS = 15  # words: longer captions are not swapped

_PROMPTS = {
    "replace-object": "positive-replace-object",
    "replace-attribute": "positive-replace-attribute",
    "replace-relation": "positive-replace-relation",
    "swap-object": "positive-swap",
}
TYPES = tuple(_PROMPTS)


@dataclass(frozen=True, slots=True)
class LLMPositiveOptions:
    """What to make.

    Attributes:
        types: of `TYPES`.
        seed: written into the origin of each row.
    """

    types: tuple[str, ...] = TYPES
    seed: int = 0


class LLMPositives:
    """The generator (`protocols.CheckedLLMGenerator`) of hard positives by a model.

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool`).
        tagger: tags the captions and what the model wrote.
        book: the prompts.
        model: name of the model at the server.
        options: what to make.

    Raises:
        UsageError: an unknown type.
    """

    name = NAME
    version = VERSION
    kind = "hard_positive"

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a build's materials
        self,
        thesaurus: EditThesaurus,
        pool: Pool,
        tagger: Tagger,
        book: PromptBook,
        model: str,
        options: LLMPositiveOptions | None = None,
    ) -> None:
        self.options = options or LLMPositiveOptions()
        require_known("no such type of positive:", self.options.types, TYPES)
        self._checks = EditChecks(thesaurus, pool, tagger)
        self._model = model
        self._wanted = AnnotationBuilder(
            "hard_positive", self.options.types, 1, Origin(NAME, VERSION, self.options.seed, model)
        )
        self._prompts = {kind: book.get(_PROMPTS[kind]) for kind in self.options.types}

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        return [prompt.id for prompt in self._prompts.values()]

    def ask(
        self,
        pair: Pair,
        rng: random.Random,  # noqa: ARG002 - the protocol's; nothing is drawn
        *,
        attempt: int = 0,
    ) -> LLMStep[list[EditCandidate]]:
        """Return the steps for ``pair``, which end in one candidate for each type."""
        asking = PairRequests(pair, self._model, attempt)
        wanted = [kind for kind in self.options.types if kind != "swap-object" or is_swappable(pair.caption)]
        answers = yield from request_answers(
            [asking.request(self._prompts[kind], {}, Rewritten) for kind in wanted], Rewritten
        )
        found = [
            candidate_from_answer(kind, self._prompts[kind], answer)
            for kind, answer in zip(wanted, answers, strict=True)
        ]
        return found + [EditCandidate(kind, reason="no_and") for kind in self.options.types if kind not in wanted]

    def check(self, batch: Sequence[tuple[Pair, Sequence[EditCandidate]]]) -> list[list[Annotation]]:
        """Return one annotation for each type of each pair."""
        return self._wanted.annotations(batch, self._checks)


def is_swappable(caption: str) -> bool:
    """Whether a caption has "and" and is short enough for a model to swap its sides reliably."""
    words = words_of(caption)
    return "and" in words and len(words) < MAX_SWAP_WORDS
