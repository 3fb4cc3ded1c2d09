"""Missing permissions are reported before the work, with the path and the fix."""

import ctypes
import json
import subprocess
import sys
from pathlib import Path

import pytest

_DROP_FROM_BOUNDS, _CAPABILITIES = 24, 41  # of prctl


def drop_privileges() -> None:
    """Let rights bind the administrator, too: what is started next has none of a system administrator's privileges."""
    system = ctypes.CDLL(None)
    for capability in range(_CAPABILITIES):
        system.prctl(_DROP_FROM_BOUNDS, capability, 0, 0, 0)  # refused to anyone else, who has none to drop


def run(folder: Path, *arguments: str) -> str:
    """Run a command that fails, as a user without root's rights; return its last line."""
    command = [sys.executable, "-m", "pairwright", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=drop_privileges)
    assert done.returncode == 1, done.stderr
    assert "judging" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """A folder with some captions, and a folder that nothing may be written in."""
    (tmp_path / "pool.jsonl").write_text(json.dumps({"caption": "a dog on a bed"}) + "\n")
    (tmp_path / "closed").mkdir(mode=0o555)
    return tmp_path


def test_a_folder_without_write_permission_is_refused_before_the_work(pool: Path) -> None:
    printed = run(pool, "filter", "pool.jsonl", "--min-words", "1", "--out", "closed/x.parquet")
    assert printed == (
        "pairwright: closed/x.parquet: closed is not writable. Check its permissions, or choose another --out."
    )


def test_an_input_without_read_permission_is_not_called_damaged(pool: Path) -> None:
    (pool / "pool.parquet").touch()
    for name in ("pool.jsonl", "pool.parquet"):
        (pool / name).chmod(0)
        told = run(pool, "filter", name, "--min-words", "1", "--out", "x.parquet")
        assert told == f"pairwright: {name}: is not readable. Check its permissions (ls -l)."
