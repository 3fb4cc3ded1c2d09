"""Files of rationales: student rows, and rejected examples apart from them.

``.jsonl``     student rows of both splits; rejected examples in ``OUT.rejected.jsonl``
a folder       ``train.jsonl``, ``validation.jsonl`` and ``rejected.jsonl``
``.parquet``   table of all examples without prefixes; ``pairwright export`` makes student rows of it
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import orjson

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import UsageError
from pairwright.datasets.exports.rationales import StudentRows, open_student_rows, student_files
from pairwright.datasets.records import Example

Write = Callable[[Example], int]

ENDINGS = ("", ".jsonl", ".parquet")


def check_output_ending(out: Path) -> None:
    """Check that the extension of the output is known.

    Raises:
        UsageError: it is not.
    """
    if out.suffix.lower() not in ENDINGS:
        raise UsageError(f"{out}: rationales are written to a .jsonl, a .parquet, or a folder (no ending).")


def rejected_file(out: Path) -> Path:
    """Return the path of the rejected examples."""
    return out.with_suffix(".rejected.jsonl") if out.suffix else out / "rejected.jsonl"


def output_files(out: Path) -> list[Path]:
    """Return all files of an output."""
    return [out] if out.suffix.lower() == ".parquet" else [*student_files(out), rejected_file(out)]


@contextmanager
def open_example_writer(out: Path, rows: StudentRows) -> Iterator[Write]:
    """Give a function that writes an example and returns the number of student rows; files are complete or absent.

    Raises:
        UsageError: as `check_output_ending`.
    """
    check_output_ending(out)
    if out.suffix.lower() == ".parquet":
        with _table(out) as write:
            yield write
        return
    with ExitStack() as stack:
        rejected = stack.enter_context(stack.enter_context(replace_atomically(rejected_file(out))).open("wb"))
        student = stack.enter_context(open_student_rows(out, rows))

        def write_one(example: Example) -> int:
            if example.status == "rejected":
                rejected.write(orjson.dumps(asdict(example), option=orjson.OPT_APPEND_NEWLINE))
            return student(example, "")

        yield write_one


@contextmanager
def _table(out: Path) -> Iterator[Write]:
    from pairwright.datasets.record_tables import EXAMPLES

    held: list[Example] = []

    def write(example: Example) -> int:
        held.append(example)
        return 0

    yield write
    EXAMPLES.write(held, out)
