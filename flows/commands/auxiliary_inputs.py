"""Auxiliary pairs of a command, such as a corpus to train on; broken rows are skipped with a message."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Pair


def read_auxiliary_pairs(options: ReadOptions, note: Callable[[str], None]) -> Iterator[Pair]:
    """Yield the pairs of an input; invalid rows and captions are skipped and counted.

    Args:
        options: of the reader; images are not checked.
        note: receives the number of skipped rows and captions, with reasons.

    Raises:
        InputError: when the input is not readable.
    """
    skipped = SkipCounts()
    for batch in read_pairs(replace(options, on_error="skip", verify_images="off", option_names=WITHOUT_OPTIONS)):
        yield from batch.pairs
        skipped.add(batch.rejects)
    if message := skipped.describe():
        note(f"{options.input}: skipped {message}.")
