"""Reports of a run to TensorBoard, Weights & Biases, MLflow and Trackio, by accelerate's trackers and their own variables.

A resumed run continues its earlier report, by an id in ``OUT/reporting_id`` (MLflow: by ``MLFLOW_RUN_ID``).
"""

import importlib.util
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from accelerate.tracking import filter_trackers  # type: ignore[import-untyped]

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import MissingResourceError, PluginError
from pairwright.datasets.suggestions import require_known
from pairwright.training.run_folder import Run, flat_settings

PROJECT = "pairwright"
REPORTERS = ("tensorboard", "wandb", "mlflow", "trackio")

Report = Callable[[Mapping[str, float], int], None]
"""Takes values by name, and their step."""


def check_reporters(names: Sequence[str]) -> None:
    """Check that reporters exist and are installed."""
    require_known("no such reporter:", names, REPORTERS)
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResourceError(f"--report-to requires {', '.join(missing)}: pip install {' '.join(missing)}")


@contextmanager
def open_reporters(accelerator: Any, run: Run[Any], step: int) -> Iterator[Report]:
    """Start the trackers of a run, resumed after ``step`` steps, and provide a function that takes values.

    A run that fails is reported as failed, where the tracker knows such a state. A tracker that fails raises
    `PluginError`.
    """
    check_reporters(run.report_to)
    if accelerator.is_main_process and run.report_to:
        _start_trackers(accelerator, run, step)

    def report(values: Mapping[str, float], step: int) -> None:
        with _explain_errors(run):
            accelerator.log(dict(values), step=step)

    try:
        yield report
    except BaseException:
        for tracker in accelerator.trackers:
            _FAIL.get(tracker.name, type(tracker).finish)(tracker)
        raise
    with _explain_errors(run):
        for tracker in accelerator.trackers:
            tracker.finish()


_FAIL: dict[str, Callable[[Any], None]] = {
    "mlflow": lambda _: importlib.import_module("mlflow").end_run("FAILED"),
    "wandb": lambda tracker: tracker.run.finish(exit_code=1),
}


def _start_trackers(accelerator: Any, run: Run[Any], step: int) -> None:
    path, name = run.out / "reporting_id", run.out.absolute().name
    if not (step and path.is_file()):
        write_text(path, f"{uuid.uuid4().hex[:12]}\n")
    number = path.read_text(encoding="utf-8").strip()
    shown = {key: one if isinstance(one, int | float) else str(one) for key, one in flat_settings(run.settings())}
    options = {
        "tensorboard": {"purge_step": step + 1},
        "wandb": {"name": name, "id": number, "resume": "allow", "dir": str(run.out)},
        "mlflow": {"run_name": name},
        "trackio": {"name": f"{name}-{number}", "resume": "allow", "embed": False},
    }
    with _explain_errors(run):
        # Of TensorBoard, which writes to a folder of the project's name: any name, so none beside those of the run.
        accelerator.project_configuration.logging_dir = str(run.out / "reports")
        accelerator.log_with = filter_trackers(list(run.report_to), accelerator.logging_dir)
        accelerator.init_trackers(os.environ.get("WANDB_PROJECT", PROJECT), shown, options)


@contextmanager
def _explain_errors(run: Run[Any]) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each package has its own, such as that of a missing login
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise PluginError(
            f"--report-to {','.join(run.report_to)}: {first.rstrip('.')}. Fix it and continue with --resume, or without "
            "this report."
        ) from error
