"""Pairs that stand beside what is worked on: other captions of its images, a corpus to train on.

A broken row among them stops nothing, since what is worked on lies elsewhere; but it is told.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from pairwright.datasets.reading import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.datasets.skipped import Skipped
from pairwright.datasets.wording import AS_IT_IS


def pairs_beside(options: ReadOptions, note: Callable[[str], None]) -> Iterator[Pair]:
    """Yield the pairs of an input; rows and captions that are none are passed over, and counted at the end.

    Args:
        options: how to read; images are not looked at.
        note: told in one line how many rows and captions were passed over, and why.

    Raises:
        InputError: the input cannot be read.
    """
    lost = Skipped()
    for batch in read_pairs(replace(options, on_error="skip", verify_images="off", wording=AS_IT_IS)):
        yield from batch.pairs
        lost.add(batch.rejects)
    if told := lost.told():
        note(f"{options.input}: passed over {told}.")
