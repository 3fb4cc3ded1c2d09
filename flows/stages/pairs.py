"""Stage ``pairs``: the user's data becomes checked pairs, in parts; what is broken becomes rejected rows."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.reading import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.datasets.rejects import Reject
from pairwright.datasets.tables import PAIRS, REJECTS
from pairwright.flows.layout import pairs_path, part_name, rejected_path
from pairwright.flows.receipts import Counts, Outcome


def read_input(root: Path, options: ReadOptions, part_size: int) -> Outcome:
    """Read the input to the end; write a part for every ``part_size`` pairs that are kept.

    Raises:
        InputError: on a broken row when the options say stop, and when no pair is left.
    """
    outputs: list[Path] = []
    reasons: Counter[str] = Counter()
    kept = 0
    for number, (pairs, rejects) in enumerate(_parts(options, part_size)):
        part = part_name(number)
        PAIRS.write(pairs, pairs_path(root, part))
        REJECTS.write(rejects, rejected_path(root, "pairs", part))
        outputs += [pairs_path(root, part), rejected_path(root, "pairs", part)]
        kept += len(pairs)
        reasons.update(reject.reason for reject in rejects)
    if not kept:
        raise InputError(
            f"no pair could be read ({_told(reasons)})",
            where=str(options.input),
            mend="Look at the file and at `columns`; without image files, set `verify_images: off`",
        )
    counts = Counts("row", kept + reasons.total(), kept, dict(sorted(reasons.items())))
    return Outcome(outputs, counts, {"parts": len(outputs) // 2})


def _parts(options: ReadOptions, size: int) -> Iterator[tuple[list[Pair], list[Reject]]]:
    pairs: list[Pair] = []
    rejects: list[Reject] = []
    for batch in read_pairs(options):
        pairs += batch.pairs
        rejects += batch.rejects
        while len(pairs) >= size or len(rejects) >= size:
            yield pairs[:size], rejects
            pairs, rejects = pairs[size:], []
    if pairs or rejects:
        yield pairs, rejects


def _told(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in reasons.most_common()) or "it is empty"
