"""Base class of the LLM generators of edits: images, groups of captions, validation."""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.identification import other_language
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.lexicon.protocols import Pool, Thesaurus
from pairwright.generators.llm.client.messages import Image
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm_edits.annotations import AnnotationBuilder
from pairwright.generators.llm_edits.requests import EditCandidate


class LLMEditOptions(Protocol):
    """Options of all generators of edits."""

    @property
    def types(self) -> tuple[str, ...]:
        """Types such as "replace-object"."""
        ...

    @property
    def captions_per_request(self) -> int:
        """Captions in one request, at most; one if the model sees the image."""
        ...

    @property
    def see_image(self) -> bool:
        """Whether to send the image."""
        ...


class LLMEditGenerator:
    """Base class of the generators of edits.

    Args:
        options: options of the generator.
        resources: WordNet, statistics of the user's captions, and the tagger of captions and answers.
        builder: builds the annotations of a caption.
        images: reads images for messages; used only with ``see_image``.

    Attributes:
        draws: whether requests depend on the random stream of the pair.

    Raises:
        UsageError: less than one caption per request.
    """

    draws = False

    def __init__(
        self,
        options: LLMEditOptions,
        resources: tuple[Thesaurus, Pool, Tagger],
        builder: AnnotationBuilder,
        images: MessageImages | None,
    ) -> None:
        if options.captions_per_request < 1:
            raise UsageError(f"captions_per_request must be at least 1, not {options.captions_per_request}.")
        self.captions_per_request = 1 if options.see_image else options.captions_per_request
        self._resources, self._builder = resources, builder
        self._images = (images or MessageImages()) if options.see_image else None

    def find_images(self, pair: Pair) -> tuple[Image, ...] | str:
        """Return the images that the model sees of a pair, or the reason why nothing is sent about it."""
        if other_language(pair.caption):
            return "not_english"
        if self._images is None:
            return ()
        return self._images.find(pair.image, (pair.width, pair.height)) or missing_image_reason(pair.image)

    @staticmethod
    def without_texts(reason: str, types: Sequence[str]) -> list[EditCandidate]:
        """Return a candidate of each type without a text, for a pair about which nothing is sent."""
        return [EditCandidate(kind, reason=reason) for kind in types]

    @cached_property
    def _checks(self) -> EditChecks:
        """The checks, whose tables are built when the first text is checked."""
        return EditChecks(*self._resources)

    def check(self, batch: Sequence[tuple[Pair, Sequence[EditCandidate]]]) -> list[list[Annotation]]:
        """Return the annotations of each pair, at least as many of each type as are requested."""
        return self._builder.annotations(batch, self._checks)
