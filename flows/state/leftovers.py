"""Removal of files that no job of a build wrote: those of an earlier config or of a killed process."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pairwright.flows.state.layout import CLEANED_FOLDERS
from pairwright.flows.state.receipts import Receipt

Truth = Callable[[Path], Mapping[str, Any]]

_GALLERY_POOL, _GALLERY_SIZE = 500, 24  # samples that the gallery of the report is chosen from, and shows


def remove_leftovers(out: Path, done: Mapping[str, Sequence[Receipt]], *patterns: str) -> None:
    """Remove the files that no job of this build wrote: those of an earlier config or of a killed process.

    Args:
        out: the build directory.
        done: receipts by stage.
        patterns: of the files to check; by default all folders that a build owns.
    """
    outputs = [output for receipts in done.values() for receipt in receipts for output in receipt.outputs]
    accounted = {output.path for output in outputs if not output.url}
    for pattern in patterns or [*(f"{folder}/*" for folder in CLEANED_FOLDERS), "failed/.*", "failed/*/.*"]:
        for path in sorted(out.glob(pattern)):
            if path.is_file() and path.relative_to(out).as_posix() not in accounted:
                path.unlink(missing_ok=True)  # several processes may build parts


def remove_stale_receipts(out: Path, done: Mapping[str, Sequence[Receipt]]) -> None:
    """Remove the receipts of jobs that are not part of this build."""
    named = {(stage, f"{receipt.part}.json") for stage, receipts in done.items() for receipt in receipts}
    for path in sorted((out / "receipts").glob("*/*")):
        if (path.parent.name, path.name) not in named:
            path.unlink()
