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
    outcomes: dict[int, list[RequestOutcome] | None] = dict.fromkeys(range(len(steps)))
    while outcomes:
        asked: dict[int, Sequence[Request]] = {}
        for at, received in outcomes.items():
            try:
                asked[at] = next(steps[at]) if received is None else steps[at].send(received)
            except StopIteration as end:
                results[at] = end.value
        if not asked:
            break
        answers = iter((yield [request for own in asked.values() for request in own]))
        outcomes = {at: [next(answers) for _ in own] for at, own in asked.items()}
    return tuple(results[at] for at in range(len(steps)))


def relay(step: LLMStep[T], send: Callable[[Sequence[Request]], LLMStep[Sequence[RequestOutcome]]]) -> LLMStep[T]:
    """Run a step whose requests are sent, in each round, by another step that returns their outcomes."""
    try:
        requests = next(step)
        while True:
            requests = step.send((yield from send(requests)))
    except StopIteration as end:
        result: T = end.value
        return result


def map_requests(step: LLMStep[T], change: Callable[[Request], Request]) -> LLMStep[T]:
    """Run a step with ``change`` applied to each of its requests."""

    def send(requests: Sequence[Request]) -> LLMStep[Sequence[RequestOutcome]]:
        return (yield [change(request) for request in requests])

    return relay(step, send)
