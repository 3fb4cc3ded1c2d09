"""The steps of either kind of LLM generator about one pair, answers checked."""

import random

from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.protocols import AnyLLMGenerator, CheckedLLMGenerator


def steps_of_pair(
    generator: AnyLLMGenerator, pair: Pair, rng: random.Random, *, attempt: int = 0
) -> LLMStep[list[Annotation]]:
    """Return the steps, which end in the annotations of ``pair``."""
    if not isinstance(generator, CheckedLLMGenerator):
        return (yield from generator.annotate(pair, rng, attempt=attempt))
    found = yield from generator.ask(pair, rng, attempt=attempt)
    return generator.check([(pair, found)])[0]
