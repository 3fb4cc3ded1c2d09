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

from pairwright.datasets.records import Origin, Pair
from pairwright.datasets.suggestions import require_known
from pairwright.generators.captions.image_words import words_of
from pairwright.generators.edit_types import POSITIVE_TYPES
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.lexicon.protocols import Pool, Thesaurus
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.group_size import CAPTIONS_PER_REQUEST
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm_edits.annotations import AnnotationBuilder
from pairwright.generators.llm_edits.generator import LLMEditGenerator
from pairwright.generators.llm_edits.listed_answers import POSITIVES, ListedEdits
from pairwright.generators.llm_edits.requests import EditCandidate, PairRequests
from pairwright.generators.prompts.book import PromptBook

NAME = "llm-positives"
VERSION = 14  # raise when the same answers would give other rows
MAX_SWAP_WORDS = 15  # words: longer captions are not swapped

PROMPT = "positives-at-once"


@dataclass(frozen=True, slots=True)
class LLMPositiveOptions:
    """What to make.

    Attributes:
        types: of `POSITIVE_TYPES`.
        captions_per_request: captions in one request, at most; one if the model sees the image.
        see_image: send the image.
        seed: written into the origin of each row.
    """

    types: tuple[str, ...] = POSITIVE_TYPES
    captions_per_request: int = CAPTIONS_PER_REQUEST
    see_image: bool = False
    seed: int = 0


class LLMPositives(LLMEditGenerator):
    """The generator (`protocols.CheckedLLMGenerator`) of hard positives by a model.

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool_statistics`).
        tagger: tags the captions and what the model wrote.
        book: the prompts.
        model: name of the model at the server.
        options: what to make.
        images: reads images for messages; used only with ``see_image``.

    Raises:
        UsageError: an unknown type, or less than one caption per request.
    """

    name = NAME
    version = VERSION
    kind = "hard_positive"

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a build's materials
        self,
        thesaurus: Thesaurus,
        pool: Pool,
        tagger: Tagger,
        book: PromptBook,
        model: str,
        options: LLMPositiveOptions | None = None,
        *,
        images: MessageImages | None = None,
    ) -> None:
        self.options = options or LLMPositiveOptions()
        require_known("no such type of positive:", self.options.types, POSITIVE_TYPES)
        origin = Origin(NAME, VERSION, self.options.seed, model)
        builder = AnnotationBuilder("hard_positive", self.options.types, 1, origin)
        super().__init__(self.options, (thesaurus, pool, tagger), builder, images)
        self._model = model
        self._prompt = book.get(PROMPT).with_image(sees=self.options.see_image)

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        return [self._prompt.id]

    @property
    def texts_per_pair(self) -> int:
        """Texts that are requested for a pair."""
        return len(self.options.types)

    def ask(
        self,
        pair: Pair,
        rng: random.Random,  # noqa: ARG002 - the protocol's; nothing is drawn
        *,
        attempt: int = 0,
    ) -> LLMStep[list[EditCandidate]]:
        """Return the steps for ``pair``, which end in one candidate for each type."""
        wanted = tuple(kind for kind in self.options.types if kind != "swap-object" or is_swappable(pair.caption))
        none = [EditCandidate(kind, reason="no_and") for kind in self.options.types if kind not in wanted]
        if not wanted:
            return none
        images = self.find_images(pair)
        if isinstance(images, str):
            return [*self.without_texts(images, wanted), *none]
        edits = ListedEdits(self._prompt, POSITIVES, POSITIVE_TYPES, wanted)
        values: dict[str, object] = {"types": [] if set(wanted) == set(POSITIVE_TYPES) else list(wanted)}
        request = PairRequests(pair, self._model, attempt, images).request(self._prompt, values, POSITIVES.whole)
        [answer] = yield from request_answers([request], POSITIVES)
        return [*edits.candidates(pair.caption, answer), *none]


def is_swappable(caption: str) -> bool:
    """Return whether a caption has "and" and is short enough for a model to swap its sides reliably."""
    words = words_of(caption)
    return "and" in words and len(words) < MAX_SWAP_WORDS
