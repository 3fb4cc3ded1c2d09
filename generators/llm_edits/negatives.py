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
from pairwright.datasets.rng import make_rng
from pairwright.datasets.suggestions import require_known
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.group_size import MAX_CANDIDATES
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm_edits.generator import LLMEditGenerator, LLMEditOptions
from pairwright.generators.llm_edits.listed_answers import BOTH_SIDES, NEGATIVES, SEEN_NEGATIVES, ListedEdits
from pairwright.generators.llm_edits.requests import EditCandidate, PairRequests
from pairwright.generators.llm_edits.sugarcrepe_workflow import SugarCrepeWorkflow
from pairwright.generators.prompts.book import PromptBook

NAME = "llm-negatives"
VERSION = 19  # raise when the same answers would give other rows
ONE_CALL_PROMPT, PAIRS_PROMPT = "negatives-at-once", "negatives-both-sides"

VARIANTS = ("one-call", "workflow")


@dataclass(frozen=True, slots=True)
class LLMNegativeOptions(LLMEditOptions):
    """What to make; types are of `BENCHMARK_TYPES`.

    With ``see_image`` each negative states what the image shows in place of the edit.

    Attributes:
        per_type: answers for each caption.
        candidates: negatives of each type in one answer, at most `MAX_CANDIDATES`.
        both_sides: pair each negative with a hard positive, see `annotations.AnnotationBuilder`.
        variant: of `VARIANTS`.
    """

    types: tuple[str, ...] = BENCHMARK_TYPES
    per_type: int = 1
    candidates: int = 1
    both_sides: bool = False
    variant: str = "one-call"


class LLMNegatives(LLMEditGenerator[LLMNegativeOptions]):
    """The generator of hard negatives by a model.

    Raises:
        UsageError: an unknown type or variant, less than one negative a type, or more than `MAX_CANDIDATES`.
    """

    name = NAME
    version = VERSION
    kind = "hard_negative"
    known_types = BENCHMARK_TYPES
    default_options = LLMNegativeOptions()

    def _configure(self, book: PromptBook) -> None:
        chosen = self.options
        require_known("no such variant:", [chosen.variant], VARIANTS)
        for name in ("per_type", "candidates"):
            if (count := getattr(chosen, name)) < 1:
                raise UsageError(f"{name} must be at least 1, not {count}.")
        if chosen.candidates > MAX_CANDIDATES:
            raise UsageError(f"candidates must be at most {MAX_CANDIDATES}, not {chosen.candidates}.")
        if chosen.variant == "workflow" and (chosen.candidates > 1 or chosen.both_sides):
            raise UsageError("candidates and both_sides require the variant one-call.")
        if chosen.see_image and (chosen.variant == "workflow" or chosen.both_sides):
            raise UsageError("see_image requires the variant one-call without both_sides.")
        self.samples, self.both_sides = chosen.per_type, chosen.both_sides
        self.per_type = chosen.per_type * chosen.candidates
        self._variant: ListedEdits | SugarCrepeWorkflow
        if chosen.variant == "workflow":
            self._variant = SugarCrepeWorkflow(book, chosen.types, chosen.per_type)
            self.draws = True
        else:
            name, shape = (PAIRS_PROMPT, BOTH_SIDES) if chosen.both_sides else (ONE_CALL_PROMPT, NEGATIVES)
            prompt = book.get(name).with_image(sees=chosen.see_image)
            self._variant = ListedEdits(prompt, SEEN_NEGATIVES if chosen.see_image else shape, BENCHMARK_TYPES)

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        return self._variant.prompts

    def _ask(self, requests: PairRequests, rng: random.Random) -> LLMStep[list[EditCandidate]]:
        chosen, variant = self.options, self._variant
        if isinstance(variant, SugarCrepeWorkflow):
            return (yield from variant.steps(requests, rng.getrandbits(64)))
        built = [
            variant.request(
                requests, chosen.types, ordinal, self._draw_hint(variant, requests, ordinal), chosen.candidates
            )
            for ordinal in range(chosen.per_type)
        ]
        answers = yield from request_answers(built, variant.shape)
        return [each for answer in answers for each in variant.candidates(requests.pair.caption, answer, chosen.types)]

    def _draw_hint(self, edits: ListedEdits, requests: PairRequests, ordinal: int) -> str:
        """Return the preference for one request, so that similar captions get different edits; the same for equal ones."""
        hints = edits.prompt.lists.get("hints", ())
        rng = make_rng(self.options.seed, "hint", requests.pair.caption, requests.first + ordinal)
        return rng.choice(hints) if hints else ""
