"""The end of a build: leftovers swept away, then the card, the report and, last of all, the manifest."""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from pairwright import __version__
from pairwright.datasets.atomic import write_bytes, write_text
from pairwright.datasets.card import card
from pairwright.datasets.contents import survey
from pairwright.datasets.exports.source import open_source
from pairwright.datasets.report import report
from pairwright.flows.config import BuildConfig
from pairwright.flows.engine import total
from pairwright.flows.receipts import Receipt, source_hash

Truth = Callable[[Path], Mapping[str, Any]]

FOLDERS = ("pairs", "index", "retrieval", "tokens", "statistics", "candidates", "annotations", "rejected", "shards")
PACKAGES = ("faiss-cpu", "numpy", "pillow", "polars", "prefect", "spacy")


def sweep(out: Path, done: Mapping[str, Sequence[Receipt]], folders: Iterable[str] = FOLDERS) -> None:
    """Remove files that no job of this build accounts for: of an earlier config, or of a killed process."""
    accounted = {output.path for receipts in done.values() for receipt in receipts for output in receipt.outputs}
    for folder in folders:
        for path in sorted((out / folder).glob("*")):
            if path.relative_to(out).as_posix() not in accounted:
                path.unlink()
    for path in sorted((out / "receipts").glob("*/*.json")):
        known = {receipt.part for receipt in done.get(path.parent.name, ())}
        if path.stem not in known and tuple(folders) == FOLDERS:
            path.unlink()


def finish_build(
    config: BuildConfig, out: Path, done: Mapping[str, Sequence[Receipt]], truth: Truth | None
) -> dict[str, Any]:
    """Write card, report and manifest, in this order, and return the manifest."""
    manifest = _manifest(config, out, done)
    if truth:
        manifest["oracle"] = truth(out)
    samples = open_source(out).samples
    manifest["contents"] = survey(samples())
    write_text(out / "README.md", card(manifest))
    write_text(out / "report.html", report(manifest, samples()))
    write_bytes(out / "manifest.json", orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return manifest


def _manifest(config: BuildConfig, out: Path, done: Mapping[str, Sequence[Receipt]]) -> dict[str, Any]:
    return {
        "name": config.name,
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "out": str(out),
        "config": config.model_dump(mode="json"),
        "stages": {stage: _stage(receipts) for stage, receipts in done.items()},
        "shards": dict(done["sizes"][0].facts),
        "cost": {"requests": 0, "tokens": 0, "usd": 0.0},
        "files": {
            output.path: {"bytes": output.bytes, "sha256": output.sha256}
            for receipts in done.values()
            for receipt in receipts
            for output in receipt.outputs
        },
        "environment": {
            "python": platform.python_version(),
            "system": platform.system(),
            "source": source_hash(),
            **{name: metadata.version(name) for name in PACKAGES},
        },
    }


def _stage(receipts: Sequence[Receipt]) -> dict[str, Any]:
    counts = total(receipts)
    return {
        "unit": counts.unit,
        "candidates": counts.candidates,
        "kept": counts.kept,
        "rejected": dict(counts.rejected),
        "seconds": round(sum(receipt.seconds for receipt in receipts), 3),
        "parts": len(receipts),
        "facts": _merged([receipt.facts for receipt in receipts]),
    }


def _merged(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up numbers by type over parts; keep what is the same in all."""
    merged: dict[str, Any] = dict(facts[0])
    for later in facts[1:]:
        for name, value in later.items():
            merged[name] = _added(merged.get(name), value)
    return merged


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {name: _added(one.get(name), other.get(name)) for name in sorted({*one, *other})}
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return other if one is None else one
