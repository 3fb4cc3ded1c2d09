"""Start of the worker processes of a build, while the build's own process still imports its modules."""

from pathlib import Path
from typing import Final

from pairwright.datasets.worker_processes import available_cores, start_fork_server
from pairwright.flows.config.build import BuildConfig

PRELOADED: Final = "pairwright.flows.runners.preloaded_stages"  # module that loads what all workers need


def process_count(config: BuildConfig) -> int:
    """Return the number of processes of a build on one machine; 1 is this process alone."""
    return config.workers or available_cores()


def start_early(config: BuildConfig, out: Path) -> None:
    """Start the server that forks the workers of a build into ``out``, unless it needs none or is finished."""
    if config.runner == "processes" and process_count(config) > 1 and not (out / "manifest.json").exists():
        start_fork_server(PRELOADED)
