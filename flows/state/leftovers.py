"""Removal of files that no job of a build wrote: those of an earlier config or of a killed process."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pairwright.flows.state.layout import CLEANED_FOLDERS
from pairwright.flows.state.receipts import Receipt


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
