"""A pool that runs the jobs of a build on the nodes of a Ray cluster.

A job is a plain function over files. Every node must therefore see the build directory and the input at the same path, on
a shared disk, and run the same pairwright with the same packages; other code would write other bytes without an error.
Each worker checks both before its first job. Only names and settings are sent over the network.

The jobs of a lost node or worker are given to others, up to `_RETRIES` more times each. Jobs write files by renaming, so
a job that runs twice, even at the same time, writes the same bytes.

Ray is used without `prefect_ray.RayTaskRunner` (docs/reference/known-issues.md), which runs Prefect's part of a task on the node:
each node would need the address of a Prefect server, or start one of its own. Here Prefect's tasks stay in the process
of the build and wait for the jobs.
"""

import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import MissingResourceError, PairwrightError, UsageError
from pairwright.flows.runners.node_checks import check_node
from pairwright.flows.state.code_versions import package_versions, source_hash
from pairwright.flows.state.layout import SHARED_MARK
from pairwright.indexes.hnsw.faiss_files import limit_faiss_threads

if TYPE_CHECKING:
    import ray

_RETRIES = 5  # of a job whose worker or node is lost
_END_SECONDS = 10.0
_CONNECT_SECONDS = 10.0


def ray_module() -> Any:
    """Import Ray and return it.

    Raises:
        MissingResourceError: when it is not installed.
    """
    # Avoids a warning about a future default of Ray.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise MissingResourceError("ray is not installed. Run: pip install 'pairwright[ray]'") from None
    return ray


class RayPool(Executor):
    """Runs jobs on an existing Ray cluster.

    Args:
        root: the build directory.
        address: ``HOST:PORT`` of the head of the cluster; empty for the cluster of this machine.

    Raises:
        UsageError: for an invalid address, or when no cluster answers.
        MissingResourceError: when Ray is not installed.
    """

    def __init__(self, root: Path, address: str = "") -> None:
        self._ray = ray_module()
        self._open: set[ray.ObjectRef[Any]] = set()
        self._root, self._mark = root, uuid4().hex
        _connect(self._ray, address)
        write_text(root / SHARED_MARK, self._mark)
        self._work = self._ray.remote(max_retries=_RETRIES)(_run_on_node)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run ``fn(*args)`` on some node; the future raises its error, or `PairwrightError` for a lost worker."""
        if kwargs:
            raise TypeError("jobs take positional arguments only")
        return self._submit(1, fn, *args)

    def submit_alone(self, fn: Callable[..., Any], /, *args: Any) -> "Future[Any]":
        """Run ``fn(*args)`` on some node with its cores, while no other job runs; otherwise like `submit`."""
        nodes = [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
        return self._submit(cores_alone(nodes), fn, *args)

    def _submit(self, cores: int, fn: Callable[..., Any], /, *args: Any) -> "Future[Any]":
        checked = (self._root, self._mark, source_hash(), package_versions())
        reference = self._work.options(num_cpus=cores).remote(*checked, cores, fn, *args)
        self._open.add(reference)
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # it cannot be cancelled any more

        def finish(ray_future: "Future[Any]") -> None:
            self._open.discard(reference)
            error = ray_future.exception()
            result = None if error else ray_future.result()
            if error:
                future.set_exception(_translate_error(self._ray, error))
            elif isinstance(result, PairwrightError):
                future.set_exception(result)
            else:
                future.set_result(result)

        reference.future().add_done_callback(finish)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as Executor has it
        """Leave the cluster, after its running jobs have ended or, with ``cancel_futures``, are cancelled."""
        running = list(self._open)
        if cancel_futures:
            for reference in running:
                self._ray.cancel(reference, force=True)
        if wait and running:
            self._ray.wait(running, num_returns=len(running), timeout=_END_SECONDS if cancel_futures else None)
        (self._root / SHARED_MARK).unlink(missing_ok=True)
        self._ray.shutdown()


def cores_alone(nodes: Sequence[int]) -> int:
    """Return the cores of a job that runs alone: those of the smallest node, so that it can run after any other is lost.

    Args:
        nodes: the cores of each node (0 = no jobs).
    """
    return min((cores for cores in nodes if cores), default=1)


def _connect(ray: Any, address: str) -> None:
    if "://" in address:
        raise UsageError(
            f"--address {address}: give HOST:PORT of the cluster's head, and run the build on a node of the cluster."
        )
    if address:
        _check_reachable(address)
    try:
        ray.init(address or "auto", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _no_cluster(address, error) from None


def _check_reachable(address: str) -> None:
    """Check that a server listens at an address; Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--address {address}: give HOST:PORT of the cluster's head, such as 10.0.0.1:6379.")
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from None


def _no_cluster(address: str, error: Exception) -> UsageError:
    reason = str(error).partition("\n")[0]
    return UsageError(
        f"no Ray cluster at {address or 'this machine'} ({reason}). Start one with `ray start --head`, add "
        "machines with `ray start --address HOST:PORT`, and pass that HOST:PORT as --address."
    )


def _translate_error(ray: Any, error: BaseException) -> BaseException:
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause
        return cause if isinstance(cause, BaseException) else PairwrightError(str(error))
    if isinstance(error, ray.exceptions.RayError):
        kind = type(error).__name__
        return PairwrightError(
            f"Ray lost the workers of a job {_RETRIES + 1} times ({kind}: killed, out of memory, or no node is left). "
            "Start the build again to resume it. See `ray status`, and give nodes fewer --num-cpus if memory is short."
        )
    return error


def _run_on_node(  # noqa: PLR0913, PLR0917 - as Ray hands them over
    root: Path, mark: str, source: str, packages: list[str], cores: int, run: Callable[..., Any], *args: Any
) -> Any:
    """Run a job on a node, with as many FAISS threads as it has cores.

    A `PairwrightError` is returned as a value, without Ray's traceback.
    """
    try:
        check_node(root, mark, source, tuple(packages))
        if cores == 1:  # Ray sets one thread
            return run(*args)
        with limit_faiss_threads(cores):
            return run(*args)
    except PairwrightError as error:
        return error
