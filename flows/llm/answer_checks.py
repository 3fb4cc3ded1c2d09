"""Checks of the answers of finished rows, in batches and in the order of the rows.

Batches have a fixed number of items, so their contents do not depend on when answers arrive or on the number of workers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pairwright.datasets.errors import PairwrightError
from pairwright.generators.llm.runner import RowResult

CHECKED_AT_ONCE: Final = 256  # items

Item = TypeVar("Item")

AnswerCheck = Callable[[Sequence[tuple[Any, Any]]], Sequence[Any]]
"""Returns what to use in place of each result, from items with their results."""


class FinishedItem(NamedTuple, Generic[Item]):
    """An item of a finished row.

    Attributes:
        name: name of the item.
        item: the item.
        done: its row, with the result of this item; None after an error.
    """

    name: str
    item: Item
    done: RowResult[Any]


def check_results(check: AnswerCheck | None, finished: Iterable[FinishedItem[Item]]) -> Iterator[FinishedItem[Item]]:
    """Yield items with checked results, in order; when the run is stopped, those of all finished rows.

    Args:
        check: the check of items with their results; None: results stay as they are.
        finished: items with their results.
    """
    if check is None:
        yield from finished
        return
    batch: list[FinishedItem[Item]] = []
    try:
        for each in finished:
            batch.append(each)
            if len(batch) == CHECKED_AT_ONCE:
                yield from _checked(check, batch)
                batch = []
    except (PairwrightError, KeyboardInterrupt):
        yield from _checked(check, batch)
        raise
    yield from _checked(check, batch)


def _checked(check: AnswerCheck, batch: Sequence[FinishedItem[Item]]) -> Iterator[FinishedItem[Item]]:
    answered = [(each.item, each.done.result) for each in batch if each.done.error is None]
    results = iter(check(answered) if answered else ())
    for each in batch:
        yield each if each.done.error is not None else each._replace(done=replace(each.done, result=next(results)))
