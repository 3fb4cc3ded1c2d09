"""Jobs spread over the nodes of a Ray cluster: what stands in the engine's seam for its pool of processes.

A job is a plain function over files, so every node has to see the build directory (and the input) at the same path, on
a disk that they share, and has to run the same pairwright on the same packages. Both are checked by every worker before
its first job; a mistake there would not fail but give other bytes. What is sent over the network is names and settings.

A node or worker that is lost costs its jobs in flight: Ray gives them to others, `_TRIES` more times each. A job that
ran twice, even at the same time, wrote the same bytes, by renaming.

Ray is used as it is, not by `prefect_ray.RayTaskRunner` (docs/reference/known-issues.md): that runs Prefect's own part of a task
on the node, so that every node needs the address of a Prefect server; without one each starts a server of its own, and
the story is told to those. Here Prefect's tasks stay in the build's process, and wait for what runs elsewhere.
"""

import os
import platform
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.flows.state.receipts import package_versions, source_hash
from pairwright.indexes.hnsw.faiss_files import limit_faiss_threads

if TYPE_CHECKING:
    import ray

_TRIES = 5  # of a job whose worker or node is lost
_END_SECONDS = 10.0
_CONNECT_SECONDS = 10.0
SEEN = ".shared"  # in the build directory: what tells a worker that it sees this one, and none of that name of its own


def ray_module() -> Any:
    """Return Ray.

    Raises:
        MissingResource: when it is not installed.
    """
    # Read by Ray when it is imported. A warning of a coming default is none of the user's business.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise MissingResourceError("ray is not installed. Run: pip install 'pairwright[ray]'") from None
    return ray


class RayPool(Executor):
    """Runs jobs on a Ray cluster that is there already.

    Args:
        root: the build directory.
        address: ``HOST:PORT`` of the cluster's head; empty: the cluster that this machine is a node of.

    Raises:
        UsageError: for an address of another kind, or where no cluster answers.
        MissingResource: Ray is not installed.
    """

    def __init__(self, root: Path, address: str = "") -> None:
        self._ray = ray_module()
        self._open: set[ray.ObjectRef[Any]] = set()
        self._root, self._mark = root, uuid4().hex
        _connect(self._ray, address)
        write_text(root / SEEN, self._mark)
        self._work = self._ray.remote(max_retries=_TRIES)(_run_on_node)

    def cores_each(self, jobs: int) -> int:
        """Return how many cores each of so many jobs can have when they run at the same time, alone on the cluster."""
        return cores_per_job(
            [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]], jobs
        )

    def with_cores(self, cores: int) -> Executor:
        """Return what submits jobs to this pool that have ``cores`` each instead of one."""
        return _WithCores(self, cores)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run ``fn(*args)`` on some node; the future raises what it raised, or `PairwrightError` for a lost worker."""
        if kwargs:
            raise TypeError("a job takes its arguments by place")
        return self.run(1, fn, *args)

    def run(self, cores: int, fn: Callable[..., Any], /, *args: Any) -> "Future[Any]":
        """Run ``fn(*args)`` on some node with so many ``cores``; as `submit` in all else."""
        checked = (self._root, self._mark, source_hash(), package_versions())
        reference = self._work.options(num_cpus=cores).remote(*checked, cores, fn, *args)
        self._open.add(reference)
        given: Future[Any] = Future()
        given.set_running_or_notify_cancel()  # it is Ray's from here on

        def done(theirs: "Future[Any]") -> None:
            self._open.discard(reference)
            error = theirs.exception()
            result = None if error else theirs.result()
            if error:
                given.set_exception(_translate_error(self._ray, error))
            elif isinstance(result, PairwrightError):
                given.set_exception(result)
            else:
                given.set_result(result)

        reference.future().add_done_callback(done)
        return given

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as Executor has it
        """Leave the cluster; what still runs there is ended first with ``cancel_futures``."""
        running = list(self._open)
        if cancel_futures:
            for reference in running:
                self._ray.cancel(reference, force=True)
        if wait and running:
            self._ray.wait(running, num_returns=len(running), timeout=_END_SECONDS if cancel_futures else None)
        (self._root / SEEN).unlink(missing_ok=True)
        self._ray.shutdown()


class _WithCores(Executor):
    """A Ray pool whose jobs have several cores each; shutting it down leaves the pool open."""

    def __init__(self, pool: RayPool, cores: int) -> None:
        self._pool, self._cores = pool, cores

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run ``fn(*args)``, as `RayPool.submit` does."""
        if kwargs:
            raise TypeError("a job takes its arguments by place")
        return self._pool.run(self._cores, fn, *args)


def cores_per_job(nodes: Sequence[int], jobs: int) -> int:
    """Return how many cores each of ``jobs`` jobs can have when all run at the same time; 1 when they cannot.

    At most the cores of the smallest node, so that a job can still run after any other node is lost.

    Args:
        nodes: the cores of each node; 0 for one that runs no jobs.
        jobs: at least 1.
    """
    offered = [cores for cores in nodes if cores] or [1]
    fitting = (each for each in range(min(offered), 1, -1) if sum(cores // each for cores in offered) >= jobs)
    return next(fitting, 1)


def _connect(ray: Any, address: str) -> None:
    if "://" in address:
        raise UsageError(
            f"--address {address}: give HOST:PORT of the cluster's head, and build on one of its machines."
        )
    if address:
        _check_reachable(address)
    try:
        ray.init(address or "auto", log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _no_cluster(address, error) from None


def _check_reachable(address: str) -> None:
    """Refuse an address where nobody is, for which Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--address {address}: give HOST:PORT of the cluster's head, such as 10.0.0.1:6379.")
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from None


def _no_cluster(address: str, error: Exception) -> UsageError:
    told = str(error).partition("\n")[0]
    return UsageError(
        f"no Ray cluster at {address or 'this machine'} ({told}). Start one with `ray start --head`, have the other "
        "machines join with `ray start --address HOST:PORT`, and give that HOST:PORT as --address."
    )


def _translate_error(ray: Any, error: BaseException) -> BaseException:
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause
        return cause if isinstance(cause, BaseException) else PairwrightError(str(error))
    if isinstance(error, ray.exceptions.RayError):
        kind = type(error).__name__
        return PairwrightError(
            f"Ray lost the workers of a job {_TRIES + 1} times ({kind}: killed, out of memory, or no node is left). "
            "Start the build again: it goes on where it stood; see `ray status`, and give nodes fewer --num-cpus when "
            "memory is short."
        )
    return error


def _run_on_node(  # noqa: PLR0913, PLR0917 - as Ray hands them over
    root: Path, mark: str, source: str, packages: list[str], cores: int, run: Callable[..., Any], *args: Any
) -> Any:
    """Run a job on a node, with as many threads of FAISS as it has cores.

    An error in the user's data comes back as a value, without Ray's traceback around it.
    """
    try:
        _check(root, mark, source, tuple(packages))
        if cores == 1:  # Ray sees to that by itself; most jobs do without FAISS
            return run(*args)
        with limit_faiss_threads(cores):
            return run(*args)
    except PairwrightError as error:
        return error


@lru_cache(maxsize=8)
def _check(root: Path, mark: str, source: str, packages: tuple[str, ...]) -> None:
    node = platform.node()
    seen = root / SEEN
    if not seen.is_file() or seen.read_text() != mark:
        raise StorageError(
            f"{root}: node {node} does not see this build directory. Choose an --out on a disk that all nodes share."
        )
    if source_hash() != source:
        raise UsageError(f"node {node} runs another pairwright than the build. Install the same on all nodes.")
    other = sorted(set(packages) - set(package_versions()))
    if other:
        raise UsageError(f"node {node} has another version of {', '.join(other)}. Install the same on all nodes.")
