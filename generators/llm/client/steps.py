"""A talk: how a row asks a model, as a plain Python generator that never touches a client.

A talk yields the requests of a round, all of which may be sent at once, and is given an outcome for each: a `Reply`, or
the `Failure` that it ended in. It goes on for as many rounds as it likes and returns what it made of them.

    def describe(pair: Pair) -> Talk[str]:
        [outcome] = yield [Request((Message("user", f"Describe: {pair.caption}"),), "small")]
        return outcome.text if isinstance(outcome, Reply) else ""

Runs give talks a server's answers (`runner`), plans the usual ones (`plan`), tests their own (`drive`).
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


def run_step(talk: LLMStep[T], answer: Callable[[Request], RequestOutcome]) -> T:
    """Hold a talk to its end with a function for a model; return what it returns."""
    try:
        requests = next(talk)
        while True:
            requests = talk.send([answer(request) for request in requests])
    except StopIteration as end:
        result: T = end.value
        return result


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
