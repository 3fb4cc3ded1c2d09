"""Jobs and receipts: a killed build resumes, and a changed one repeats only what changed.

A *job* is one unit of work: a stage, a part, a plain function and its arguments. Its *fingerprint* is a hash of what
shapes its output: the settings, the code that its stage uses (`code_versions.py`), the versions of packages, the state
of what it reads from outside the build (`inputs.py`), and the outputs of the stages that it reads. After a job its
*receipt* is written: fingerprint, outputs (each with bytes and sha256) and counts. A job whose receipt has the same
fingerprint, and whose outputs exist with the recorded sizes, does not run again. Outputs in an object store are checked
once, before their stage (`shard_store.py`). Fingerprints cover content: a stage that writes the same bytes as before does
not make later stages run again.

Not detected: an output that was changed by hand without changing its size (`pairwright verify` finds it).
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.progress import attribute_steps_to
from pairwright.datasets.records import compact_json

if TYPE_CHECKING:
    from pairwright.flows.llm.model_access import ModelAccess


@dataclass(frozen=True)
class Counts:
    """Candidates of a stage, and how many were kept or rejected, by reason; candidates = kept + rejected."""

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
    """Result of a job: the files that it wrote, its counts, facts for the manifest, and a handoff to later stages.

    ``stored`` are outputs in an object store, of which this machine has no copy.
    """

    outputs: Sequence[Path]
    counts: Counts
    facts: Mapping[str, Any] = field(default_factory=dict)
    handoff: Mapping[str, Any] = field(default_factory=dict)
    stored: Sequence["OutputFile"] = ()


@dataclass(frozen=True)
class Job:
    """One unit of work of a build.

    Attributes:
        stage: its stage.
        part: its part; ``all`` for the only job of a stage.
        run: called with the build directory and ``args``; a top-level function, so that any process can run it.
        args: of the function.
        fingerprint: of all that shapes its output.
        in_build_process: whether it runs in a thread of the build's own process.
        multi_core: whether it is the only job of its stage and uses several cores.
        asks: the model whose requests the build's process sends for it; None: it asks none, or by itself.
        shown_as_one: whether it and the other jobs of its group are one task run of Prefect.
    """

    stage: str
    part: str
    run: Callable[..., JobResult]
    args: tuple[Any, ...]
    fingerprint: str
    in_build_process: bool = False
    multi_core: bool = False
    asks: "ModelAccess | None" = None
    shown_as_one: bool = False


@dataclass(frozen=True)
class OutputFile:
    """A file of a build, by its path in the build directory; with a URL, it is in an object store instead."""

    path: str
    bytes: int
    sha256: str
    url: str = ""


@dataclass(frozen=True)
class Receipt:
    """The record of a finished job."""

    stage: str
    part: str
    fingerprint: str
    outputs: tuple[OutputFile, ...]
    counts: Counts
    facts: Mapping[str, Any]
    seconds: float
    handoff: Mapping[str, Any] = field(default_factory=dict)
    cpu: float = 0.0  # seconds of user and system time of its process

    @cached_property
    def digest(self) -> str:
        """Hash of the outputs' names and contents, part of the fingerprints of later jobs."""
        return json_hash([[output.path, output.sha256] for output in self.outputs])


def json_hash(value: Any) -> str:
    """Return a 128-bit hash in hex of a JSON value."""
    text = compact_json(value).encode("utf-8", "surrogatepass")  # names of files need not be UTF-8
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def total_counts(receipts: Sequence[Receipt]) -> Counts:
    """Return the counts of a stage: the sum over its jobs."""
    counts = receipts[0].counts
    for receipt in receipts[1:]:
        counts += receipt.counts
    return counts


def contents_of(receipts: Sequence[Receipt]) -> dict[str, str]:
    """Return the SHA-256 of each output of ``receipts`` by its path in the build directory."""
    return {output.path: output.sha256 for receipt in receipts for output in receipt.outputs}


def count_parts(done: Mapping[str, Sequence[Receipt]]) -> int:
    """Return how many parts the stage ``pairs`` wrote, by the receipts of each stage."""
    return sum(receipt.facts.get("parts", 0) for receipt in done["pairs"])


def merged_facts(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of all parts together: numbers are summed, other values taken from the first part with one."""
    merged: dict[str, Any] = dict(facts[0])
    for later in facts[1:]:
        for name, value in later.items():
            # A bill has fractions of USD, and is unknown if one of its prices is.
            merged[name] = sum_facts(merged[name], value) if name == "llm" else _added(merged.get(name), value)
    return merged


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {name: _added(one.get(name), other.get(name)) for name in sorted({*one, *other})}
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return other if one is None else one


def sum_facts(one: Any, other: Any) -> Any:
    """Return the sum of counts, nested too; a missing count is 0, and the sum with an unknown price is unknown."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = [*one, *sorted(set(other) - set(one))]
        return {
            name: sum_facts(one[name], other[name]) if name in one and name in other else {**one, **other}[name]
            for name in names
        }
    if one is None or other is None:
        return None
    if isinstance(one, int | float) and isinstance(other, int | float):
        return round(one + other, 9)
    return one


def receipt_path(root: Path, stage: str, part: str) -> Path:
    """Return the path of the receipt of a job in the build directory ``root``."""
    return root / "receipts" / stage / f"{part}.json"


def read_receipt(root: Path, stage: str, part: str) -> Receipt | None:
    """Return the receipt of a job; None when there is none, or one of another format."""
    try:
        data = orjson.loads(receipt_path(root, stage, part).read_bytes())
        return Receipt(
            **{
                **data,
                "outputs": tuple(OutputFile(**output) for output in data["outputs"]),
                "counts": Counts(**data["counts"]),
            }
        )
    except (FileNotFoundError, orjson.JSONDecodeError, TypeError, KeyError):
        return None


def read_receipts(root: Path) -> Iterator[Receipt]:
    """Yield all readable receipts of the build directory ``root``."""
    for path in sorted((root / "receipts").glob("*/*.json")):
        receipt = read_receipt(root, path.parent.name, path.stem)
        if receipt is not None:
            yield receipt


def valid_receipt(root: Path, job: Job) -> Receipt | None:
    """Return the receipt of ``job`` if it does not have to run again, else None."""
    receipt = read_receipt(root, job.stage, job.part)
    if receipt is None or receipt.fingerprint != job.fingerprint:
        return None
    complete = all(output.url or _size(root / output.path) == output.bytes for output in receipt.outputs)
    return receipt if complete else None


def run_job(root: Path, job: Job) -> Receipt:
    """Run ``job`` in the build directory ``root`` and write its receipt, unless there is a valid one."""
    done = valid_receipt(root, job)
    if done:
        return done
    # While the job runs, its outputs match neither the old receipt nor the new one.
    receipt_path(root, job.stage, job.part).unlink(missing_ok=True)
    started, cpu = time.perf_counter(), time.process_time()
    with attribute_steps_to(job.stage, job.part):
        result = job.run(root, *job.args)
    receipt = Receipt(
        stage=job.stage,
        part=job.part,
        fingerprint=job.fingerprint,
        outputs=(*(_describe(root, path) for path in result.outputs), *result.stored),
        counts=result.counts,
        facts=result.facts,
        handoff=result.handoff,
        seconds=round(time.perf_counter() - started, 3),
        cpu=round(time.process_time() - cpu, 3),
    )
    write_bytes(receipt_path(root, job.stage, job.part), orjson.dumps(asdict(receipt), option=orjson.OPT_INDENT_2))
    return receipt


def _describe(root: Path, path: Path) -> OutputFile:
    return OutputFile(path=path.relative_to(root).as_posix(), bytes=path.stat().st_size, sha256=hash_file(path))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
