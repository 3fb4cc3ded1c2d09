"""Several talks held at once as one: their rounds are asked together, so that none waits for another's.

concepts, swaps = yield from together(asked(first, Concepts), asked(second, Swap))
"""

from typing import TypeVar, overload

from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome

A = TypeVar("A")
B = TypeVar("B")


@overload
def gather(first: LLMStep[A], second: LLMStep[B], /) -> LLMStep[tuple[A, B]]: ...
@overload
def gather(*talks: LLMStep[A]) -> LLMStep[tuple[A, ...]]: ...
def gather(*talks: LLMStep[A]) -> LLMStep[tuple[A, ...]]:
    """Hold talks side by side: each round asks what all of them that still go on ask; returns their results."""
    results: dict[int, A] = {}
    answered: dict[int, list[RequestOutcome] | None] = dict.fromkeys(range(len(talks)))
    while answered:
        asking = {}
        for at, outcomes in answered.items():
            try:
                asking[at] = list(talks[at].send(outcomes)) if outcomes is not None else list(next(talks[at]))
            except StopIteration as end:
                results[at] = end.value
        answered = {}
        if not asking:
            break
        given = iter((yield [request for requests in asking.values() for request in requests]))
        for at, requests in asking.items():
            answered[at] = [next(given) for _ in requests]
    return tuple(results[at] for at in range(len(talks)))
