"""Exhausted system resources end a command in one line that names the limit to raise."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.errors.system_errors import system_error_message
from pairwright.cli.main import run as entry_point
from pairwright.datasets.errors import StorageError
from pairwright.datasets.records import Pair, pair_key
from pairwright.flows.state.locks import build_lock
from pairwright.indexes.building.build import build_index_from_pairs

PanicException = type("PanicException", (BaseException,), {})  # as pyo3 calls what Rust code raises


def wrapped(cause: BaseException) -> Exception:
    """Return an error that a library raised because of another."""
    error = ValueError("cannot be read")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "out of memory"),
        (ImportError("libarrow.so.2600: failed to map segment from shared object"), "out of memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out of memory"),
        (wrapped(MemoryError()), "out of memory"),
        (PanicException('called `Result::unwrap()` on an `Err` value: Os { code: 12, message: "" }'), "out of memory"),
        (PanicException("Os { code: 11, kind: WouldBlock }"), "cannot start another thread or process"),
        (RuntimeError("can't start new thread"), "cannot start another thread or process"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "cannot start another thread or process"),
        (OSError(errno.EMFILE, "Too many open files", "a.tar"), "too many open files. Raise the limit (ulimit -n"),
        (PanicException("Too many open files (os error 24)"), "too many open files"),
        (OSError(errno.ENOSPC, "No space left on device", "a.tar"), "a.tar: No space left on device. Free space."),
        (
            IsADirectoryError(errno.EISDIR, "Is a directory", "a"),
            "a: a folder is in the place of a file. Choose another",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "a"), "a: Permission denied. Check its permissions."),
        # As safetensors and torch report a full disk.
        (ValueError("I/O error: No space left on device (os error 28)"), "the disk is full"),
        (RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"), "the disk is full"),
    ],
)
def test_each_refusal_is_one_line_with_the_limit_to_raise(error: BaseException, says: str) -> None:
    assert says in system_error_message(error)
    assert "\n" not in system_error_message(error)


@pytest.mark.parametrize("error", [ValueError("code: 24"), ImportError("no module named x"), RuntimeError("odd")])
def test_an_error_of_another_kind_is_no_refusal(error: Exception) -> None:
    assert system_error_message(error) == ""


def test_rust_code_that_gives_up_ends_a_command_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def panics() -> None:
        raise PanicException("called `Result::unwrap()` on an `Err` value")

    monkeypatch.setattr("pairwright.cli.main.app", panics)
    with pytest.raises(SystemExit, match="1"):
        entry_point()
    assert capsys.readouterr().err.startswith("pairwright: internal error (PanicException: called")


def test_a_full_disk_ends_a_command_with_how_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fills_the_disk() -> None:
        resumable_on_interrupt("--resume continues from the newest checkpoint")  # as `train` does
        raise RuntimeError("PytorchStreamWriter failed writing file data/0")

    monkeypatch.setattr("pairwright.cli.main.app", fills_the_disk)
    with pytest.raises(SystemExit, match="1"):
        entry_point()
    shown = capsys.readouterr().err
    assert shown.startswith("pairwright: the disk is full")
    assert shown.endswith(" Finished work is kept: --resume continues from the newest checkpoint.\n")


def test_a_command_with_too_few_open_files_says_which_limit_to_raise(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"caption": "a dog on a bed"}\n')
    (tmp_path / "b.yaml").write_text("{name: t, input: {path: in.jsonl}}")
    command = [sys.executable, "-m", "pairwright", "build", "b.yaml", "--no-prefect", "--workers", "2"]
    few: Callable[[], None] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))  # noqa: E731
    done = subprocess.run(command, cwd=tmp_path, preexec_fn=few, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "pairwright: too many open files. Raise the limit (ulimit -n, now 12)"
    )


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)


@pytest.mark.usefixtures("no_locks")
def test_a_file_system_without_locks_is_refused_in_one_line_by_a_build_and_by_an_index(tmp_path: Path) -> None:
    says = r"this file system has no file locks \(No locks available\).*Choose a folder on a local disk"
    with pytest.raises(StorageError, match=says), build_lock(tmp_path / "build"):
        pass
    pool = [Pair(pair_key("", "", "a dog"), "a dog")]
    with pytest.raises(StorageError, match=says):
        build_index_from_pairs(lambda: [pool], tmp_path / "index")
