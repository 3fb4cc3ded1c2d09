"""Texts written with quotas and caps: rows are set aside on the disk until all are there, then judged together."""

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.commands.annotation_files import Write, open_writer
from pairwright.generators.balance import (
    BalanceLimits,
    BalanceResult,
    BalanceRow,
    balance_row,
    find_excess_rows,
    is_balanced,
    reject_excess_rows,
)


@contextmanager
def open_balanced_writer(
    path: Path,
    generator: str,
    limits: BalanceLimits,
    add: Callable[[Sequence[Annotation]], None],
    judged: Callable[[BalanceResult], None],
) -> Iterator[Write]:
    """Give a function that takes a pair and its annotations; as `annotation_files.open_writer`, but balanced.

    Args:
        path: the file, whole when the block ends, or absent.
        generator: whose rows they are.
        limits: of the set; where there are none, rows are written as they come.
        add: told the rows of each pair as they are written.
        judged: told what the limits left of each type, where there are limits.

    Raises:
        UsageError: when the ending names no format for such rows.
    """
    with open_writer(path, generator) as write:

        def put(pair: Pair, rows: Sequence[Annotation]) -> None:
            add(rows)
            write(pair, rows)

        if limits == BalanceLimits():
            yield put
            return
        lines: list[BalanceRow] = []
        with tempfile.TemporaryFile(dir=path.absolute().parent) as spool:

            def set_aside(pair: Pair, rows: Sequence[Annotation]) -> None:
                lines.extend(balance_row(row) for row in rows if is_balanced(row, generator) and row.status == "kept")
                pickle.dump((pair, list(rows)), spool)

            yield set_aside
            verdict = find_excess_rows(lines, limits)
            judged(verdict)
            spool.seek(0)
            for pair, rows in _read_spool(spool):
                put(pair, list(reject_excess_rows(rows, verdict.gone)))


def _read_spool(spool: IO[bytes]) -> Iterator[tuple[Pair, list[Annotation]]]:
    while True:
        try:
            yield pickle.load(spool)  # noqa: S301 - what this process has just written
        except EOFError:
            return
