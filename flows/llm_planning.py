"""What a maker that asks a model would ask over an input, and what that would cost: ``--dry-run`` and ``pairwright plan``.

Nothing is sent. The talks of a sample are held with the answers that their prompts expect (`generators.llm.plan`).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from pairwright.datasets.reading import read_pairs
from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.generating import Request, materials
from pairwright.flows.llm import Asking
from pairwright.flows.talking import talk_about
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.llm.cache import Cache
from pairwright.generators.llm.messages import Request as LLMRequest
from pairwright.generators.llm.plan import Sample, StagePlan, plan_stage, sample_of
from pairwright.generators.llm.runner import Row
from pairwright.generators.llm.talks import Talk
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.registry import build_llm_generator

T = TypeVar("T")


def plan_llm_generator(request: Request, asking: Asking, note: Callable[[str], None]) -> StagePlan:
    """Return what `llm_generating.run_llm_generator` would ask and cost.

    Raises:
        PairwrightError: when it could not begin.
    """
    tagger = load_tagger()
    made = asking.materials(materials(request, tagger, note), tagger)
    maker = build_llm_generator(request.generator, made, request.options)
    pairs = (pair for batch in read_pairs(request.read) for pair in batch.pairs)
    return plan_maker(maker, sample_of(pairs, seed=request.seed), tagger, asking, request.seed)


def plan_maker(maker: LLMGenerator, sample: Sample[Pair], tagger: Tagger, asking: Asking, seed: int) -> StagePlan:
    """Return what a maker would ask about pairs, by a sample of them.

    Raises:
        PairwrightError: when settings or prices cannot work, or the cache cannot be read.
    """
    tokens = tagger.tag([pair.caption for pair in sample.items])

    def talk(pair: Pair, words: Sequence[Token], attempt: int) -> Talk[list[Annotation]]:
        return _as_sent(talk_about(maker, seed, pair, words, attempt), asking.changed)

    with ExitStack() as stack:
        cache = stack.enter_context(Cache.open(asking.cache, create=False)) if asking.cache.exists() else None
        return plan_stage(
            maker.name,
            [Row(pair.key, partial(talk, pair, words)) for pair, words in zip(sample.items, tokens, strict=True)],
            sample.total,
            settings=asking.settings(),
            prices=asking.prices(),
            cache=cache,
            batch=asking.section.batch,
        )


def _as_sent(talk: Talk[T], change: Callable[[LLMRequest], LLMRequest]) -> Talk[T]:
    """Hold a talk with its requests as they would be sent."""
    try:
        requests = next(talk)
        while True:
            outcomes = yield [change(request) for request in requests]
            requests = talk.send(outcomes)
    except StopIteration as end:
        result: T = end.value
        return result
