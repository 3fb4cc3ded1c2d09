"""Fixtures for all tests: real data where it is given, and a Prefect home that is nobody's."""

import gc
import io
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

from tests.example_counts import examples

# What is imported is compiled once, as under `make`, also where Python is told elsewhere not to keep it: dozens of tests
# start a process that imports a thousand modules, and to compile them takes as long again as all else in the import.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A shell starts what runs in its background deaf to Ctrl-C, and so would all be that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Python looks for rings of dead objects each time that 700 are made; over what is imported here that is much looking.
# It looks for none while tests are collected, and not among what was made until then.
gc.set_threshold(20_000, 20, 50)
gc.disable()
# One thread for torch, here and in what tests start: tiny tensors wait for a second one longer than the work takes.
os.environ.setdefault("MKL_NUM_THREADS", "1")
# Threads of FAISS and torch sleep while they wait for each other: where other tests run beside, to spin takes twice the time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Files of tests are in memory where there is room: each build and each cache waits for the disk dozens of times.
_IN_MEMORY, _ROOM = Path("/dev/shm"), 2 << 30  # noqa: S108 - pytest makes a folder in it that is the user's own
if os.access(_IN_MEMORY, os.W_OK):
    _shared = os.statvfs(_IN_MEMORY)
    if _shared.f_bavail * _shared.f_frsize >= _ROOM and not _shared.f_flag & os.ST_NOEXEC:  # some tests write scripts
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_IN_MEMORY))

# A busy machine is no flaw of the code under test. A test may ask for more or fewer, by `examples`, too.
settings.register_profile("pairwright", deadline=None, max_examples=examples(100))
settings.load_profile("pairwright")


# A `CliRunner` makes the tree of all commands anew for each call, which takes longer than most of the calls.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a Prefect server come first and side by side, so that one of two processes starts it."""
    items.sort(key=lambda item: "prefect_database" not in getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real captions and model outputs, named by PAIRWRIGHT_TEST_DATA."""
    named = os.environ.get("PAIRWRIGHT_TEST_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("PAIRWRIGHT_TEST_DATA does not name a folder with the real data")
    return Path(named).resolve()


@pytest.fixture(scope="session", autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads the user's keys, caches or Prefect database."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PREFECT_API_URL", "PREFECT_PROFILE"):
        os.environ.pop(name, None)
    os.environ["PREFECT_HOME"] = str(tmp_path_factory.mktemp("prefect"))
    os.environ["PAIRWRIGHT_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def prefect_database(
    _own_environment: None, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """PREFECT_HOME has a database with all tables: making them anew takes a server twice as long to start.

    Made once for a release of Prefect, and kept with what pytest keeps. Tests that name an empty home of their own see
    how a server makes it.
    """
    kept = _kept(pytestconfig, tmp_path_factory) / f"prefect-{metadata.version('prefect')}.db"
    if not kept.exists():
        home = tmp_path_factory.mktemp("prefect-made")
        command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
        environment = {**os.environ, "PREFECT_HOME": str(home), "DO_NOT_TRACK": "1"}
        subprocess.run(command, env=environment, check=True, capture_output=True)
        beside = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(home / "prefect.db", beside)
        beside.replace(kept)  # whole or not there: another process of the same run may look for it
    shutil.copy(kept, Path(os.environ["PREFECT_HOME"]) / "prefect.db")


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All that is logged at any level. Pytest's own plugin, which does the same around every test, costs a test 1 ms."""
    stream, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(stream), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.setLevel(level)
    root.removeHandler(handler)


def _kept(config: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = getattr(config, "cache", None)  # there is none under `-p no:cacheprovider`
    return cache.mkdir("pairwright") if cache else tmp_path_factory.mktemp("kept")
