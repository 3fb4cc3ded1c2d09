"""Reporters: rows of the training log for TensorBoard, Weights & Biases, MLflow and Trackio.

Each writes below the run folder, or where its own variables say (``WANDB_MODE=offline``, ``MLFLOW_TRACKING_URI``,
``TRACKIO_DIR``): without them MLflow writes to ``OUT/mlflow.db``, Trackio to its cache. A resumed run continues its earlier
report, by an id in ``OUT/reporting_id``; rows after the checkpoint are written again with equal values, which Weights & Biases
ignores.
"""

import importlib.util
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import MissingResourceError
from pairwright.datasets.suggestions import require_known
from pairwright.training.metrics_log import LogRow

PROJECT = "pairwright"
_PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow", "trackio": "trackio"}
REPORTERS = tuple(_PACKAGES)

_Write = Callable[[dict[str, float], int], None]


@dataclass(frozen=True, slots=True)
class _Run:
    """What a reporter needs to know: the run folder, its id, settings, and the first step (0: a new run)."""

    out: Path
    id: str
    settings: Mapping[str, Any]
    step: int


def check_reporters(names: Sequence[str]) -> None:
    """Check that reporters exist and are installed.

    Raises:
        UsageError: for an unknown name.
        MissingResourceError: if a package is missing.
    """
    require_known("no such reporter:", names, REPORTERS)
    missing = [_PACKAGES[name] for name in names if importlib.util.find_spec(_PACKAGES[name]) is None]
    if missing:
        raise MissingResourceError(f"--report-to requires {', '.join(missing)}: pip install {' '.join(missing)}")


@contextmanager
def open_reporters(
    names: Sequence[str], out: Path, settings: Mapping[str, Any], step: int
) -> Iterator[list[Callable[[LogRow], None]]]:
    """Provide functions that take log rows, one for each reporter; a run that fails is reported as failed.

    ``settings`` are shown with the run; ``step``: steps done, of a resumed run.

    Raises:
        UsageError: for an unknown name.
        MissingResourceError: if a package is missing.
    """
    check_reporters(names)
    run = _Run(out.absolute(), _run_id(out, resumed=step > 0) if names else "", settings, step)
    with ExitStack() as stack:
        writes = [stack.enter_context(_OPEN[name](run)) for name in names]
        yield [_row_writer(write) for write in writes]


def _row_writer(write: _Write) -> Callable[[LogRow], None]:
    def add(row: LogRow) -> None:
        write({name: value for name, value in row.values().items() if value is not None and name != "step"}, row.step)

    return add


def _run_id(out: Path, *, resumed: bool) -> str:
    path = out / "reporting_id"
    if resumed and path.is_file():
        return path.read_text().strip()
    made = uuid.uuid4().hex[:12]
    write_text(path, f"{made}\n")
    return made


@contextmanager
def _tensorboard(run: _Run) -> Iterator[_Write]:
    from torch.utils.tensorboard import SummaryWriter

    make: Any = SummaryWriter  # untyped
    writer = make(str(run.out / "tensorboard"), purge_step=run.step + 1)

    def write(values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    try:
        yield write
    finally:
        writer.close()


@contextmanager
def _wandb(run: _Run) -> Iterator[_Write]:
    import wandb

    opened = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=run.out.name,
        id=run.id,
        resume="allow",
        dir=str(run.out),
        config=dict(run.settings),
    )
    with opened:  # a run that an exception leaves has failed
        yield lambda values, step: opened.log(values, step=step)


@contextmanager
def _mlflow(run: _Run) -> Iterator[_Write]:
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    address = os.environ.get("MLFLOW_TRACKING_URI")
    client = MlflowClient(address or f"sqlite:///{run.out}/mlflow.db")
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
    found = client.get_experiment_by_name(name)
    files = None if address else str(run.out / "mlflow")
    experiment = found.experiment_id if found else client.create_experiment(name, artifact_location=files)
    earlier = client.search_runs([experiment], f"tags.pairwright_run = '{run.id}'")
    if earlier:
        number = earlier[0].info.run_id
        client.set_terminated(number, "RUNNING")
    else:
        made = client.create_run(experiment, tags={"pairwright_run": run.id}, run_name=run.out.name)
        number = made.info.run_id
        client.log_batch(number, params=[Param(key, str(value)[:500]) for key, value in _flat(run.settings)])

    def write(values: dict[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        client.log_batch(number, metrics=[Metric(key, value, now, step) for key, value in values.items()])

    try:
        yield write
    except BaseException:
        client.set_terminated(number, "FAILED")
        raise
    client.set_terminated(number, "FINISHED")


@contextmanager
def _trackio(run: _Run) -> Iterator[_Write]:
    import trackio

    opened = trackio.init(
        project=os.environ.get("TRACKIO_PROJECT", PROJECT),
        name=f"{run.out.name}-{run.id}",
        config=dict(run.settings),
        resume="allow",
        embed=False,
    )
    try:
        yield lambda values, step: opened.log(values, step=step)
    finally:
        opened.finish()


_OPEN = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow, "trackio": _trackio}


def _flat(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield nested settings with names such as ``optimizer.lr``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
