"""Hard negatives by a language model: SugarCrepe's seven types, in one call a caption or by its workflow.

REPLACE, SWAP and ADD, of objects, attributes and relations (SugarCrepe, appendix C.3.2). Two variants:

- ``one-call``: one answer with ``candidates`` negatives of every type, each with true words for the same slot if both
  sides are requested. Every request contains a preference that is drawn for its row, such as "edit the end of the caption".
- ``workflow``: as published. REPLACE finds the concepts of the kind (temperature 0), proposes another for one drawn at
  random (1.0) and composes the sentence (0); ADD likewise, for objects without the first step; SWAP is one call that
  first states whether it is possible. With one of each of the seven types that is 15 requests in three rounds.

Every answer is validated (`edits.written`). Each text becomes one annotation, kept or rejected, and so does each
requested type and ordinal without a text; see `annotations.py`.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Origin, Pair
from pairwright.datasets.rng import make_rng
from pairwright.datasets.suggestions import require_known
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.lexicon.protocols import Pool, Thesaurus
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.group_size import CAPTIONS_PER_REQUEST, MAX_CANDIDATES
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm_edits.annotations import AnnotationBuilder
from pairwright.generators.llm_edits.generator import LLMEditGenerator
from pairwright.generators.llm_edits.listed_answers import BOTH_SIDES, NEGATIVES, SEEN_NEGATIVES, ListedEdits
from pairwright.generators.llm_edits.requests import EditCandidate, PairRequests
from pairwright.generators.llm_edits.sugarcrepe_workflow import SugarCrepeWorkflow
from pairwright.generators.prompts.book import Prompt, PromptBook

NAME = "llm-negatives"
VERSION = 14  # raise when the same answers would give other rows
ONE_CALL_PROMPT, PAIRS_PROMPT = "negatives-at-once", "negatives-both-sides"

VARIANTS = ("one-call", "workflow")


@dataclass(frozen=True, slots=True)
class LLMNegativeOptions:
    """What to make.

    Attributes:
        types: of `BENCHMARK_TYPES`.
        per_type: answers for each caption.
        candidates: negatives of each type in one answer, at most `MAX_CANDIDATES`.
        both_sides: pair each negative with a hard positive, see `annotations.AnnotationBuilder`.
        variant: of `VARIANTS`.
        captions_per_request: captions in one request, at most; one if the model sees the image.
        see_image: send the image; each negative states what the image shows in place of the edit.
        seed: recorded in the origin of each row; the random generator is an argument of the call.
    """

    types: tuple[str, ...] = BENCHMARK_TYPES
    per_type: int = 1
    candidates: int = 1
    both_sides: bool = False
    variant: str = "one-call"
    captions_per_request: int = CAPTIONS_PER_REQUEST
    see_image: bool = False
    seed: int = 0


class LLMNegatives(LLMEditGenerator):
    """The generator (`protocols.CheckedLLMGenerator`) of hard negatives by a model.

    Args:
        thesaurus: WordNet (`language.wordnet.load_wordnet`).
        pool: frozen statistics of the user's captions (`language.pool_statistics`).
        tagger: tags the captions and what the model wrote.
        book: the prompts.
        model: name of the model at the server.
        options: what to make.
        images: reads images for messages; used only with ``see_image``.

    Raises:
        UsageError: an unknown type or variant, less than one negative a type, or more than `MAX_CANDIDATES`.
    """

    name = NAME
    version = VERSION
    kind = "hard_negative"

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of a build's materials
        self,
        thesaurus: Thesaurus,
        pool: Pool,
        tagger: Tagger,
        book: PromptBook,
        model: str,
        options: LLMNegativeOptions | None = None,
        *,
        images: MessageImages | None = None,
    ) -> None:
        self.options = options or LLMNegativeOptions()
        require_known("no such type of negative:", self.options.types, BENCHMARK_TYPES)
        require_known("no such variant:", [self.options.variant], VARIANTS)
        for name in ("per_type", "candidates"):
            if (count := getattr(self.options, name)) < 1:
                raise UsageError(f"{name} must be at least 1, not {count}.")
        chosen = self.options
        if chosen.candidates > MAX_CANDIDATES:
            raise UsageError(f"candidates must be at most {MAX_CANDIDATES}, not {chosen.candidates}.")
        if chosen.variant == "workflow" and (chosen.candidates > 1 or chosen.both_sides):
            raise UsageError("candidates and both_sides require the variant one-call.")
        if chosen.see_image and (chosen.variant == "workflow" or chosen.both_sides):
            raise UsageError("see_image requires the variant one-call without both_sides.")
        self._model = model
        origin = Origin(NAME, VERSION, chosen.seed, model)
        per_type = chosen.per_type * chosen.candidates
        builder = AnnotationBuilder("hard_negative", chosen.types, per_type, origin, chosen.both_sides)
        super().__init__(chosen, (thesaurus, pool, tagger), builder, images)
        self._variant: ListedEdits | SugarCrepeWorkflow = (
            _listed_edits(book, chosen)
            if chosen.variant == "one-call"
            else SugarCrepeWorkflow(book, chosen.types, chosen.per_type)
        )
        self.draws = isinstance(self._variant, SugarCrepeWorkflow)

    @property
    def texts_per_pair(self) -> int:
        """Texts that are requested for a pair."""
        return len(self.options.types) * self.options.per_type * self.options.candidates

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        variant = self._variant
        return [variant.prompt.id] if isinstance(variant, ListedEdits) else variant.prompts

    def ask(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[EditCandidate]]:
        """Return the steps for ``pair``, which end in its candidates."""
        images = self.find_images(pair)
        if isinstance(images, str):
            return self.without_texts(images, self.options.types)
        requests = PairRequests(pair, self._model, attempt * self.options.per_type, images)
        variant = self._variant
        if isinstance(variant, ListedEdits):
            return (yield from self._in_one_call(requests, variant))
        return (yield from variant.steps(requests, rng.getrandbits(64)))

    def _in_one_call(self, requests: PairRequests, edits: ListedEdits) -> LLMStep[list[EditCandidate]]:
        chosen, prompt = self.options, edits.prompt
        values: dict[str, object] = {
            "types": [] if set(chosen.types) == set(BENCHMARK_TYPES) else list(chosen.types),
            "count": chosen.candidates if chosen.candidates > 1 else 0,
        }
        built = [
            requests.request(
                prompt,
                {**values, "hint": self._draw_hint(prompt, requests, ordinal)},
                edits.shape.whole,
                ordinal,
                answers=chosen.candidates,
            )
            for ordinal in range(chosen.per_type)
        ]
        answers = yield from request_answers(built, edits.shape)
        return [each for answer in answers for each in edits.candidates(requests.pair.caption, answer)]

    def _draw_hint(self, prompt: Prompt, requests: PairRequests, ordinal: int) -> str:
        """Return the preference for one request, so that similar captions get different edits; the same for equal ones."""
        hints = prompt.lists.get("hints", ())
        rng = make_rng(self.options.seed, "hint", requests.pair.caption, requests.first + ordinal)
        return rng.choice(hints) if hints else ""


def _listed_edits(book: PromptBook, options: LLMNegativeOptions) -> ListedEdits:
    """Return the reader of the one-call answers, with their prompt and shape."""
    name, shape = (PAIRS_PROMPT, BOTH_SIDES) if options.both_sides else (ONE_CALL_PROMPT, NEGATIVES)
    prompt = book.get(name).with_image(sees=options.see_image)
    return ListedEdits(prompt, SEEN_NEGATIVES if options.see_image else shape, BENCHMARK_TYPES, options.types)
