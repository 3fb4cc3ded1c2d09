"""Pairs of the inputs of commands: with counts of what is skipped, of auxiliary inputs, and how many there are."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.progress import has_listener, track
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Pair

BATCH: Final = 512  # pairs or captions that a command reads, tags or passes on at a time


def read_counted_pairs(read: ReadOptions, skipped: SkipCounts) -> Iterator[Pair]:
    """Yield the pairs of an input; ``skipped`` counts the invalid rows and captions."""
    for batch in read_pairs(replace(read, batch_size=BATCH)):
        skipped.add(batch.rejects)
        yield from batch.pairs


def read_auxiliary_pairs(options: ReadOptions, note: Callable[[str], None]) -> Iterator[Pair]:
    """Yield the pairs of an auxiliary input, such as a corpus to train on; invalid rows and captions are skipped.

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


def total_for_progress(read: ReadOptions) -> int | None:
    """Return the number of pairs of an input for a progress bar; None without a listener, and for tars, which are slow to count."""
    inputs = (read.input,) if isinstance(read.input, str) else read.input
    return None if not has_listener() or any(each.endswith(".tar") for each in inputs) else count_pairs(read)


def count_pairs(read: ReadOptions) -> int:
    """Return the number of pairs of an input, which is read as a whole."""
    return sum(len(batch.pairs) for batch in track(read_pairs(read), "counting rows", unit="batches"))
