"""Processes of a run: distributed training, and launch settings that are refused."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from accelerate import PartialState  # type: ignore[import-untyped]  # noqa: E402

from pairwright.datasets.errors import StorageError, UsageError  # noqa: E402 - behind the guard of torch
from pairwright.training import accelerate_setup  # noqa: E402
from pairwright.training.accelerate_setup import default_workers, start_processes  # noqa: E402
from tests.training.training_cases import clip, run, shards, two_processes  # noqa: E402

HOLD = """
import fcntl, sys
handle = open(sys.argv[1], "w")
fcntl.lockf(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Given(NamedTuple):
    """Shards and a model to begin with."""

    data: str
    model: str


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Of 16 scenes."""
    folder = tmp_path_factory.mktemp("processes")
    return Given(shards(folder / "shards", count=16), clip(folder, count=16))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("WORLD_SIZE=2", r"2 processes were started, but accelerate joined 1 .* unset WORLD_SIZE"),
        ("OMPI_COMM_WORLD_SIZE=4", r"4 processes were started, but accelerate joined 1"),
        ("ACCELERATE_USE_FSDP=true", r"asks for FSDP .* is not supported.* --multi_gpu"),
        ("ACCELERATE_USE_DEEPSPEED=true", r"asks for DeepSpeed .* is not supported"),
        ("ACCELERATE_USE_MEGATRON_LM=true", r"asks for Megatron-LM .* is not supported"),
        ("ACCELERATE_USE_PARALLELISM_CONFIG=true", r"asks for a parallelism config .* is not supported"),
        (
            "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=4",
            r"gradient_accumulation_steps 4, which is not supported.* batches\.chunk",
        ),
        ("ACCELERATE_MIXED_PRECISION=bf16", r"bf16, .* fp32\. .*--set precision=bf16"),
    ],
)
def test_launch_settings_that_are_not_supported_are_refused_with_the_way_out(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, said: str
) -> None:
    monkeypatch.setenv(*setting.split("="))
    with pytest.raises(UsageError, match=said):
        run("clip", *given, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_processes_that_cannot_be_joined_are_refused_with_the_launcher_to_use(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_by_accelerate = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    for name in set_by_accelerate:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    PartialState._reset_state()  # as in a new process
    with pytest.raises(UsageError, match=r"^2 launched processes .*MASTER_ADDR.*torchrun --nproc-per-node 2"):
        run("clip", *given, tmp_path / "run")
    for name in ("WORLD_SIZE", "RANK", *set_by_accelerate):
        monkeypatch.delenv(name, raising=False)
    assert run("clip", *given, tmp_path / "run").steps == 2


def test_the_defaults_of_accelerate_launch_are_accepted(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ACCELERATE_MIXED_PRECISION", "no"), ("ACCELERATE_USE_CPU", "True"), ("WORLD_SIZE", "1")):
        monkeypatch.setenv(name, value)
    assert run("clip", *given, tmp_path / "run").steps == 2


def test_one_run_at_a_time_trains_in_a_folder(given: Given, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run" / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StorageError, match=r"another run trains in this folder.*choose another --out"):
            run("clip", *given, tmp_path / "run")
        assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
        other.communicate()
    assert run("clip", *given, tmp_path / "run").steps == 2


def test_loading_processes_share_the_cores_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(24)))
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert (default_workers(1), default_workers(4), default_workers(64)) == (16, 6, 1)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # of 4 processes on two machines, two are here
    assert default_workers(4) == 12


def test_precision_is_that_of_the_launcher_then_bf16_where_a_gpu_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert start_processes("auto").mixed_precision == ("bf16" if torch.cuda.is_available() else "no")
    monkeypatch.setattr(accelerate_setup, "PartialState", lambda: SimpleNamespace(device=torch.device("cuda")))
    for has, expected in ((True, "bf16"), (False, "no")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda has=has: has)
        assert accelerate_setup._mixed_precision("auto") == expected
    monkeypatch.undo()
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert start_processes("auto").mixed_precision == "bf16"


@pytest.mark.slow
def test_torchrun_without_a_gpu_trains_one_model_in_two_processes(given: Given, tmp_path: Path) -> None:
    asked = ["train", "clip", "--data", given.data, "--model", given.model, "--out", str(tmp_path / "run"), "--json"]
    changes = ("batches.size=8", "batches.workers=0", "schedule.steps=3", "log_every=1")
    done = two_processes("pairwright", *asked, *(part for change in changes for part in ("--set", change)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"steps"') == 1
    assert done.stderr.count("step 1 ") == 1
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 4
