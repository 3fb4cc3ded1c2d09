"""Pairs that stand beside what is worked on: other captions of its images, a corpus to train on.

A broken row among them stops nothing, since what is worked on lies elsewhere; but it is told.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Pair


def read_auxiliary_pairs(options: ReadOptions, note: Callable[[str], None]) -> Iterator[Pair]:
    """Yield the pairs of an input; rows and captions that are none are passed over, and counted at the end.

    Args:
        options: how to read; images are not looked at.
        note: told in one line how many rows and captions were passed over, and why.

    Raises:
        InputError: the input cannot be read.
    """
    lost = SkipCounts()
    for batch in read_pairs(replace(options, on_error="skip", verify_images="off", option_names=WITHOUT_OPTIONS)):
        yield from batch.pairs
        lost.add(batch.rejects)
    if told := lost.describe():
        note(f"{options.input}: passed over {told}.")
