"""Reporters: rows of the training log for TensorBoard, Weights & Biases, MLflow and Trackio, by accelerate's trackers.

Each writes below the run folder, or where its own variables say (``WANDB_MODE=offline``, ``MLFLOW_TRACKING_URI``,
``TRACKIO_DIR``): without them MLflow writes to ``OUT/mlflow.db``, Trackio to its cache. A resumed run continues its earlier
report, by an id in ``OUT/reporting_id``; rows after the checkpoint are written again with equal values, which Weights & Biases
ignores.
"""

import importlib.util
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelerate.tracking import (  # type: ignore[import-untyped]
    GeneralTracker,
    MLflowTracker,
    TensorBoardTracker,
    TrackioTracker,
    WandBTracker,
)

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import MissingResourceError, PluginError
from pairwright.datasets.suggestions import require_known
from pairwright.training.run_folder import flat_settings

PROJECT = "pairwright"

Report = Callable[[Mapping[str, float], int], None]
"""Takes values by name, and their step."""


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
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResourceError(f"--report-to requires {', '.join(missing)}: pip install {' '.join(missing)}")


@contextmanager
def open_reporters(names: Sequence[str], out: Path, settings: Mapping[str, Any], step: int) -> Iterator[list[Report]]:
    """Provide functions that take values of a step, one for each reporter; a run that fails is reported as failed.

    ``settings`` are shown with the run; ``step``: steps done, of a resumed run.

    Raises:
        PluginError: if a reporter fails, also later; other errors as of `check_reporters`.
    """
    check_reporters(names)
    run = _Run(out.absolute(), _run_id(out, resumed=step > 0) if names else "", settings, step)
    with ExitStack() as stack:
        yield [stack.enter_context(_tracking(name, run)) for name in dict.fromkeys(names)]


@contextmanager
def _tracking(name: str, run: _Run) -> Iterator[Report]:
    with _explain_errors(name):
        tracker = REPORTERS[name](run)

    def report(values: Mapping[str, float], step: int) -> None:
        with _explain_errors(name):
            tracker.log(dict(values), step=step)

    try:
        yield report
    except BaseException:
        _FAIL.get(tracker.name, type(tracker).finish)(tracker)
        raise
    tracker.finish()


@contextmanager
def _explain_errors(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each package has its own, such as that of a missing login
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise PluginError(
            f"--report-to {name}: {first.rstrip('.')}. Fix it and continue with --resume, or without this report."
        ) from error


def _run_id(out: Path, *, resumed: bool) -> str:
    path = out / "reporting_id"
    if resumed and path.is_file():
        return path.read_text().strip()
    made = uuid.uuid4().hex[:12]
    write_text(path, f"{made}\n")
    return made


def _tensorboard(run: _Run) -> GeneralTracker:
    tracker = TensorBoardTracker("tensorboard", str(run.out), purge_step=run.step + 1)
    tracker.start()
    return tracker


def _wandb(run: _Run) -> GeneralTracker:
    project, settings = os.environ.get("WANDB_PROJECT", PROJECT), dict(run.settings)
    named = {"name": run.out.name, "id": run.id, "resume": "allow", "dir": str(run.out)}
    tracker = WandBTracker(project, config=settings, **named)
    tracker.start()
    return tracker


def _trackio(run: _Run) -> GeneralTracker:
    project, name = os.environ.get("TRACKIO_PROJECT", PROJECT), f"{run.out.name}-{run.id}"
    tracker = TrackioTracker(project, name=name, config=dict(run.settings), resume="allow", embed=False)
    tracker.start()
    return tracker


def _mlflow(run: _Run) -> GeneralTracker:
    import mlflow

    address = os.environ.get("MLFLOW_TRACKING_URI")
    mlflow.set_tracking_uri(address or f"sqlite:///{run.out}/mlflow.db")
    experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
    same = {"experiment_names": [experiment], "filter_string": f"tags.pairwright_run = '{run.id}'"}
    earlier = [one.info.run_id for one in mlflow.search_runs(**same, output_format="list")]
    tracker = MLflowTracker(
        experiment,
        logging_dir=None if address else str(run.out / "mlflow"),
        run_id=earlier[0] if earlier else None,
        tags={"pairwright_run": run.id},
        run_name=run.out.name,
    )
    tracker.start()
    if not earlier:
        tracker.store_init_configuration(dict(flat_settings(run.settings)))
    return tracker


def _fail_mlflow(_: GeneralTracker) -> None:
    import mlflow

    mlflow.end_run("FAILED")


REPORTERS = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow, "trackio": _trackio}
_FAIL: dict[str, Callable[[Any], None]] = {
    "mlflow": _fail_mlflow,
    "wandb": lambda tracker: tracker.run.finish(exit_code=1),
}
