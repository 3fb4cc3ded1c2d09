"""Atomic file writes, and removal of stale temporary files."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from pairwright.datasets.atomic_files import _MACHINE_SUFFIX, remove_stale_temporaries, replace_atomically, write_text


def broken_off(path: Path) -> None:
    with replace_atomically(path) as temporary:
        temporary.write_text("half")
        raise ValueError("broken")


def test_a_file_is_complete_or_absent(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(ValueError, match="broken"):
        broken_off(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.txt"]


def test_an_unwritable_path_is_named_as_the_user_wrote_it(tmp_path: Path) -> None:
    refused = OSError(errno.EACCES, "Permission denied", str(tmp_path / f".a.txt.tmp-{os.getpid()}{_MACHINE_SUFFIX}"))
    with pytest.raises(PermissionError) as caught:
        full(tmp_path / "a.txt", refused)
    assert caught.value.filename == str(tmp_path / "a.txt")


def full(path: Path, error: Exception) -> None:
    with replace_atomically(path):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)"),
        RuntimeError("Error in write_index: write error in x: 0 != 16 (No space left on device)"),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("28 requested and 0 written: No space left on device"),
    ],
)
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(OSError, match="No space left on device") as caught:
        full(tmp_path / "a.parquet", error)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a.parquet"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", [0.1, 0.4, 0.7, 0.99])
def test_a_disk_that_fills_anywhere_in_a_table_is_an_error(tmp_path: Path, part: float) -> None:
    """Most of this table is its footer, of whose writing polars says "Invalid thrift: transport error"."""
    resource = pytest.importorskip("resource", reason="the system has no limits of files' sizes")
    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({f"column {number} of a wide table": ["a"] for number in range(500)})
    write_frame(frame, path)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(len(before) * part), hard))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_frame(frame, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    with replace_atomically(path) as temporary:
        frame.write_parquet(temporary)


def test_a_read_only_file_system_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux refuses to remove a file there before it looks whether there is one."""
    wanted = tmp_path / "rows.jsonl"

    def refuse(path: Path, **_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as caught, replace_atomically(wanted) as temporary:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(temporary))
    assert caught.value.filename == str(wanted)


def test_an_error_about_another_file_keeps_its_name(tmp_path: Path) -> None:
    other = OSError(errno.EIO, "Input/output error", "input.tar")
    with pytest.raises(OSError, match=r"input\.tar"):
        full(tmp_path / "a.parquet", other)


KILLED = """
import os, sys
from pathlib import Path
from pairwright.datasets.atomic_files import replace_atomically
with replace_atomically(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os._exit(9)
"""


def test_temporary_files_of_dead_processes_are_removed_and_of_living_ones_kept(tmp_path: Path) -> None:
    out = tmp_path / "a[1].jsonl"
    subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    strange = tmp_path / f".{out.name}.tmp-1@another-machine"
    strange.touch()
    with replace_atomically(out) as mine:
        mine.write_text("whole")
        remove_stale_temporaries(out)
        assert set(tmp_path.iterdir()) == {mine, strange}
        assert str(os.getpid()) in mine.name
    assert set(tmp_path.iterdir()) == {out, strange}
