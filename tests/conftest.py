"""Fixtures for all tests: real data where it is given, and a Prefect home that is nobody's."""

import os
from functools import cache
from pathlib import Path

import pytest
import typer.testing
from hypothesis import settings

from tests.examples import examples

# One thread for torch, here and in what tests start: tiny tensors wait for a second one longer than the work takes.
os.environ.setdefault("MKL_NUM_THREADS", "1")

# A busy machine is no flaw of the code under test. A test may ask for more or fewer, by `examples`, too.
settings.register_profile("pairwright", deadline=None, max_examples=examples(100))
settings.load_profile("pairwright")


# A `CliRunner` makes the tree of all commands anew for each call, which takes longer than most of the calls.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real captions and model outputs, named by PAIRWRIGHT_TEST_DATA."""
    named = os.environ.get("PAIRWRIGHT_TEST_DATA")
    if not named or not Path(named).is_dir():
        pytest.skip("PAIRWRIGHT_TEST_DATA does not name a folder with the real data")
    return Path(named).resolve()


@pytest.fixture(scope="session", autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads the user's keys or Prefect database."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PREFECT_API_URL", "PREFECT_PROFILE"):
        os.environ.pop(name, None)
    os.environ["PREFECT_HOME"] = str(tmp_path_factory.mktemp("prefect"))
