"""Base class of the LLM generators of edits: options, images, groups of captions, validation."""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair
from pairwright.datasets.suggestions import require_known
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.identification import other_language
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.llm.client.messages import Image
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.group_size import CAPTIONS_PER_REQUEST
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm_edits.annotations import AnnotationBuilder
from pairwright.generators.llm_edits.requests import EditCandidate, PairRequests
from pairwright.generators.prompts.book import PromptBook


@dataclass(frozen=True, slots=True)
class LLMEditOptions:
    """Options of all generators of edits.

    Attributes:
        types: such as "replace-object".
        captions_per_request: captions in one request, at most; one if the model sees the image.
        see_image: send the image.
        seed: recorded in the origin of each row.
    """

    types: tuple[str, ...]
    captions_per_request: int = CAPTIONS_PER_REQUEST
    see_image: bool = False
    seed: int = 0


Options = TypeVar("Options", bound=LLMEditOptions)


class LLMEditGenerator(ABC, Generic[Options]):
    """Base class of the generators of edits (`protocols.CheckedLLMGenerator`).

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool_statistics`).
        tagger: tags the captions and what the model wrote.
        book: the prompts.
        model: name of the model at the server.
        options: what to make.
        images: reads images for messages; used only with ``see_image``.

    Attributes:
        known_types: types that `options` may contain.
        default_options: used if none are given.
        draws: whether requests depend on the random stream of the pair.
        samples: answers about each pair.
        per_type: texts of each type that are requested for a pair.
        both_sides: whether to pair each negative with a hard positive, see `annotations.AnnotationBuilder`.

    Raises:
        UsageError: an unknown type, less than one caption per request, or options that exclude each other.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    kind: ClassVar[str]
    known_types: ClassVar[tuple[str, ...]]
    default_options: Options
    draws = False
    samples = 1
    per_type = 1
    both_sides = False

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a build's materials
        self,
        thesaurus: WordNet,
        pool: PoolStatistics,
        tagger: Tagger,
        book: PromptBook,
        model: str,
        options: Options | None = None,
        *,
        images: MessageImages | None = None,
    ) -> None:
        chosen = options or self.default_options
        require_known(f"no such type of {self.kind.removeprefix('hard_')}:", chosen.types, self.known_types)
        if chosen.captions_per_request < 1:
            raise UsageError(f"captions_per_request must be at least 1, not {chosen.captions_per_request}.")
        self.options = chosen
        self.captions_per_request = 1 if chosen.see_image else chosen.captions_per_request
        self._resources, self._model = (thesaurus, pool, tagger), model
        self._images = (images or MessageImages()) if chosen.see_image else None
        self._configure(book)
        origin = Origin(self.name, self.version, chosen.seed, model)
        self._builder = AnnotationBuilder(self.kind, chosen.types, self.per_type, origin, self.both_sides)

    @property
    def texts_per_pair(self) -> int:
        """Texts that are requested for a pair."""
        return len(self.options.types) * self.per_type

    @property
    @abstractmethod
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""

    @abstractmethod
    def _configure(self, book: PromptBook) -> None:
        """Validate the options, load the prompts, and set the attributes that depend on the options."""

    @abstractmethod
    def _ask(self, requests: PairRequests, rng: random.Random) -> LLMStep[list[EditCandidate]]:
        """Return the steps that end in the candidates of a pair."""

    def ask(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[EditCandidate]]:
        """Return the steps for ``pair``, which end in its candidates: for each type at least one, or a reason."""
        images = self._find_images(pair)
        if isinstance(images, str):
            return [EditCandidate(kind, reason=images) for kind in self.options.types]
        return (yield from self._ask(PairRequests(pair, self._model, attempt * self.samples, images), rng))

    def _find_images(self, pair: Pair) -> tuple[Image, ...] | str:
        """Return the images that the model sees of a pair, or the reason why nothing is sent about it."""
        if other_language(pair.caption):
            return "not_english"
        if self._images is None:
            return ()
        return self._images.find(pair.image, (pair.width, pair.height)) or missing_image_reason(pair.image)

    @cached_property
    def _checks(self) -> EditChecks:
        """The checks, whose tables are built when the first text is checked."""
        return EditChecks(*self._resources)

    def check(self, batch: Sequence[tuple[Pair, Sequence[EditCandidate]]]) -> list[list[Annotation]]:
        """Return the annotations of each pair, at least as many of each type as are requested."""
        return self._builder.annotations(batch, self._checks)
