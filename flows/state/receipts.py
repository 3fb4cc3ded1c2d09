"""Receipts: what makes a killed build go on where it stood, and a changed one redo only what changed.

A *job* is one unit of work: a stage, a part, a plain function and its arguments. Its *fingerprint* is a hash
of what shapes its output: the settings of its stage, the source code, the versions of the packages that it
works with, the state of what it reads from outside (`inputs.py`), and the receipts of the jobs whose output it reads. When a job is done, a *receipt* is written last, with the fingerprint, the outputs (each
with bytes and sha256) and the counts. A job whose receipt holds the same fingerprint, and whose outputs stand
there with the stated sizes, is not run again. Since fingerprints are over content, a stage that gives the same
bytes as before leaves all that follows untouched.

Not covered: an output whose bytes were changed by hand without changing its size (`pairwright verify` finds it).
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.progress import attribute_steps_to
from pairwright.datasets.records import compact_json

SHAPING_PACKAGES = ("faiss-cpu", "lemminflect", "numpy", "pillow", "polars", "pyarrow", "spacy")
SOURCE_ROOMS = ("datasets", "indexes", "generators", "filters", "flows")


@dataclass(frozen=True)
class Counts:
    """What a stage looked at and what became of it; candidates = kept + the sum of rejected."""

    unit: str
    candidates: int = 0
    kept: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.candidates != self.kept + sum(self.rejected.values()):
            raise AssertionError(f"counts of {self.unit} do not add up: {self}")

    def __add__(self, other: "Counts") -> "Counts":
        reasons = sorted({*self.rejected, *other.rejected})
        return Counts(
            unit=self.unit,
            candidates=self.candidates + other.candidates,
            kept=self.kept + other.kept,
            rejected={reason: self.rejected.get(reason, 0) + other.rejected.get(reason, 0) for reason in reasons},
        )


@dataclass(frozen=True)
class JobResult:
    """What a job's function gives back: the files it wrote, its counts, and facts for the manifest."""

    outputs: Sequence[Path]
    counts: Counts
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One unit of work of a build.

    ``run(root, *args)`` is a top-level function, so that any process can run it; unless the job runs *here*, in a
    thread of the build's own process. A *wide* job is the only one of its stage and gains by more than one core.
    """

    stage: str
    part: str
    run: Callable[..., JobResult]
    args: tuple[Any, ...]
    fingerprint: str
    here: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Output:
    """A file of a build, by its path inside the build directory."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Receipt:
    """The proof that a job is done."""

    stage: str
    part: str
    fingerprint: str
    outputs: tuple[Output, ...]
    counts: Counts
    facts: Mapping[str, Any]
    seconds: float

    @property
    def digest(self) -> str:
        """Hash of the outputs' names and contents: what a later job's fingerprint depends on."""
        return json_hash([[output.path, output.sha256] for output in self.outputs])


def json_hash(value: Any) -> str:
    """Return a 128-bit hash in hex of a JSON value."""
    return hashlib.blake2b(compact_json(value).encode(), digest_size=16).hexdigest()


def fingerprint(stage: str, part: str, settings: Any, inputs: Sequence[Receipt]) -> str:
    """Return the fingerprint of a job: over its settings, the source code and what it reads."""
    return json_hash([stage, part, settings, source_hash(), package_versions(), [receipt.digest for receipt in inputs]])


@lru_cache(maxsize=1)
def package_versions() -> list[str]:
    """Return the versions of the packages that shape the bytes of a build."""
    return [f"{name} {metadata.version(name)}" for name in SHAPING_PACKAGES]


@lru_cache(maxsize=1)
def source_hash() -> str:
    """Return a hash over the source, data and prompt files of the rooms that shape a build's output."""
    package = Path(__file__).resolve().parents[2]
    hasher = hashlib.blake2b(digest_size=16)
    for room in SOURCE_ROOMS:
        for path in sorted((package / room).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                hasher.update(str(path.relative_to(package)).encode())
                hasher.update(hashlib.sha256(path.read_bytes()).digest())
    return hasher.hexdigest()


def receipt_path(root: Path, stage: str, part: str) -> Path:
    """Return where the receipt of a job stands in the build directory ``root``."""
    return root / "receipts" / stage / f"{part}.json"


def read_receipt(root: Path, stage: str, part: str) -> Receipt | None:
    """Return the receipt of a job, or None when there is none or it is of another version of this file."""
    try:
        data = orjson.loads(receipt_path(root, stage, part).read_bytes())
        return Receipt(
            **{
                **data,
                "outputs": tuple(Output(**output) for output in data["outputs"]),
                "counts": Counts(**data["counts"]),
            }
        )
    except (FileNotFoundError, orjson.JSONDecodeError, TypeError, KeyError):
        return None


def read_receipts(root: Path) -> Iterator[Receipt]:
    """Yield all receipts of the build directory ``root`` that can be read."""
    for path in sorted((root / "receipts").glob("*/*.json")):
        receipt = read_receipt(root, path.parent.name, path.stem)
        if receipt is not None:
            yield receipt


def valid_receipt(root: Path, job: Job) -> Receipt | None:
    """Return the receipt of ``job`` when it need not run again."""
    receipt = read_receipt(root, job.stage, job.part)
    if receipt is None or receipt.fingerprint != job.fingerprint:
        return None
    whole = all(_size(root / output.path) == output.bytes for output in receipt.outputs)
    return receipt if whole else None


def run_job(root: Path, job: Job) -> Receipt:
    """Run ``job`` in the build directory ``root`` and write its receipt, unless a valid one stands there."""
    done = valid_receipt(root, job)
    if done:
        return done
    # From here on the outputs are neither the old job's nor the new one's until the receipt says so.
    receipt_path(root, job.stage, job.part).unlink(missing_ok=True)
    started = time.perf_counter()
    with attribute_steps_to(job.stage, job.part):
        outcome = job.run(root, *job.args)
    receipt = Receipt(
        stage=job.stage,
        part=job.part,
        fingerprint=job.fingerprint,
        outputs=tuple(_describe(root, path) for path in outcome.outputs),
        counts=outcome.counts,
        facts=outcome.facts,
        seconds=round(time.perf_counter() - started, 3),
    )
    write_bytes(receipt_path(root, job.stage, job.part), orjson.dumps(asdict(receipt), option=orjson.OPT_INDENT_2))
    return receipt


def _describe(root: Path, path: Path) -> Output:
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return Output(path=path.relative_to(root).as_posix(), bytes=path.stat().st_size, sha256=digest)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
