"""Steps that ask a model, as plain Python generators without a client.

A step yields a list of requests, which may be sent concurrently, and receives an outcome for each: a `Reply`, or the
`RequestError` in which it ended. It may do so several times and returns its result.

    def describe(pair: Pair) -> LLMStep[str]:
        [outcome] = yield [Request((Message("user", f"Describe: {pair.caption}"),), "small")]
        return outcome.text if isinstance(outcome, Reply) else ""

    concepts, swaps = yield from gather(ask(first, Concepts), ask(second, Swap))

Runs send a server's replies (`runner`), cost estimates typical ones (`cost_estimate`), tests their own (`run_step`).
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar, overload

from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

RequestOutcome = Reply | RequestError
LLMStep = Generator[Sequence[Request], Sequence[RequestOutcome], T]


def run_step(step: LLMStep[T], answer: Callable[[Request], RequestOutcome]) -> T:
    """Run a step with a function as the model; return the step's result."""
    try:
        requests = next(step)
        while True:
            requests = step.send([answer(request) for request in requests])
    except StopIteration as end:
        result: T = end.value
        return result


@overload
def gather(first: LLMStep[A], second: LLMStep[B], /) -> LLMStep[tuple[A, B]]: ...
@overload
def gather(*steps: LLMStep[A]) -> LLMStep[tuple[A, ...]]: ...
def gather(*steps: LLMStep[A]) -> LLMStep[tuple[A, ...]]:
    """Run steps concurrently: each round sends the requests of all unfinished steps. Return their results."""
    results: dict[int, A] = {}
    answered: dict[int, list[RequestOutcome] | None] = dict.fromkeys(range(len(steps)))
    while answered:
        asking = {}
        for at, received in answered.items():
            try:
                asking[at] = list(steps[at].send(received)) if received is not None else list(next(steps[at]))
            except StopIteration as end:
                results[at] = end.value
        answered = {}
        if not asking:
            break
        outcomes = iter((yield [request for requests in asking.values() for request in requests]))
        for at, requests in asking.items():
            answered[at] = [next(outcomes) for _ in requests]
    return tuple(results[at] for at in range(len(steps)))


def map_requests(step: LLMStep[T], change: Callable[[Request], Request]) -> LLMStep[T]:
    """Run a step with ``change`` applied to each of its requests."""
    try:
        requests = next(step)
        while True:
            requests = step.send((yield [change(request) for request in requests]))
    except StopIteration as end:
        result: T = end.value
        return result
