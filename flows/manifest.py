"""The end of a build: leftovers swept away, then the card, the report and, last of all, the manifest."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pairwright import __version__
from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.progress import open_step
from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.datasets.redaction import redact
from pairwright.datasets.reports.build_report import ScorerGaps, write_report
from pairwright.datasets.reports.dataset_card import render_card
from pairwright.datasets.reports.sample_gallery import choose_samples
from pairwright.datasets.shards.content_counts import count_contents
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.webdataset import read_shard
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.runners.engine import total_counts
from pairwright.flows.state.layout import SWEPT
from pairwright.flows.state.receipts import Receipt, source_hash
from pairwright.flows.state.versions import full_version_number, replace_full, write_version
from pairwright.generators.language.vocabulary import FloatArray

Truth = Callable[[Path], Mapping[str, Any]]

_LOOKED_AT, _SHOWN = 5_000, 24  # samples that the report's gallery chooses from, and shows
PACKAGES = ("faiss-cpu", "numpy", "pillow", "polars", "prefect", "spacy")


def remove_leftovers(out: Path, done: Mapping[str, Sequence[Receipt]], *patterns: str) -> None:
    """Remove files that no job of this build accounts for: of an earlier config, or of a killed process.

    Args:
        out: the build directory.
        done: receipts by stage.
        patterns: where to look; everywhere when there are none.
    """
    accounted = {output.path for receipts in done.values() for receipt in receipts for output in receipt.outputs}
    for pattern in patterns or [*(f"{folder}/*" for folder in SWEPT), "failed/.*"]:  # attempts are no job's, and stay
        for path in sorted(out.glob(pattern)):
            if path.is_file() and path.relative_to(out).as_posix() not in accounted:
                path.unlink()


def remove_stale_receipts(out: Path, done: Mapping[str, Sequence[Receipt]]) -> None:
    """Remove the receipts of jobs that this build does not have."""
    for path in sorted((out / "receipts").glob("*/*")):
        if path.name not in {f"{receipt.part}.json" for receipt in done.get(path.parent.name, ())}:
            path.unlink()


def finish_build(  # noqa: PLR0913, PLR0917 - what a full build knows at its end
    config: BuildConfig,
    root: Path,
    place: Path,
    done: Mapping[str, Sequence[Receipt]],
    truth: Truth | None,
    state: str,
) -> dict[str, Any]:
    """Write card, report and manifest of a full build, let it replace an older version, and return the manifest.

    Args:
        config: of the build.
        root: the build directory.
        place: where the build worked (`versions.place_of_full`).
        done: receipts by stage.
        truth: judges the texts where the truth is known.
        state: of the input when it was read.
    """
    remove_leftovers(place, done)
    remove_stale_receipts(place, done)
    manifest = build_manifest(config, done)
    number, parts = full_version_number(root, manifest), done["pairs"][0].facts["parts"]
    manifest["build"] = {
        "number": number,
        "kind": "full",
        "full": number,
        "parts": parts,
        "full_parts": parts,
        "input": state,
    }
    if truth:
        manifest["oracle"] = truth(place)
    manifest["contents"] = count_contents(samples_in(place))
    write_pages(config, manifest, [place], place)
    write_version(place, manifest)
    if place != root:
        replace_full(root, done, manifest)
    return manifest


def write_pages(config: BuildConfig, manifest: Mapping[str, Any], roots: Sequence[Path], out: Path) -> None:
    """Write card and report into ``out``; samples and gaps come from all ``roots``, those to show from the first."""
    write_text(out / "README.md", render_card(manifest))
    samples = (sample for root in roots for sample in samples_in(root))
    shown = choose_samples(islice(samples, _LOOKED_AT), _SHOWN, config.seed)
    with open_step("writing the report", unit=""):
        write_report(out / "report.html", manifest, shown, _gaps(roots) if config.refine else ())


def stage_facts(done: Mapping[str, Sequence[Receipt]]) -> dict[str, Any]:
    """Return what the manifest tells of each stage: counts, seconds, parts, facts."""
    return {stage: _stage(receipts) for stage, receipts in done.items()}


def build_manifest(config: BuildConfig, done: Mapping[str, Sequence[Receipt]]) -> dict[str, Any]:
    """Return the manifest of what was done, without the contents of the shards."""
    stages = stage_facts(done)
    return {
        "name": config.name,
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": redact(config.model_dump(mode="json")),
        "stages": stages,
        "types": type_counts(stages),
        "shards": dict(done["sizes"][0].facts),
        "cost": cost_facts(stages),
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


def cost_facts(stages: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the answers of models cost that the texts rest on; ``usd`` is None where a price is unknown."""
    bills = [told["facts"]["llm"]["in_all"] for told in stages.values() if "llm" in told["facts"]]
    costs = [bill["cost"] for bill in bills]
    return {
        "requests": sum(bill["answers"] for bill in bills),
        "tokens": sum(bill["prompt_tokens"] + bill["completion_tokens"] for bill in bills),
        "usd": None if None in costs else float(sum(costs)),
    }


def samples_in(out: Path) -> Iterator[Sample]:
    """Yield the samples of a build's shards, if it has any."""
    for shard in sorted((out / "shards").glob("*.tar")):
        yield from read_shard(shard)


def _gaps(roots: Sequence[Path]) -> list[ScorerGaps]:
    """Return the gaps of the refined negatives: before, all that entered; after, those that stayed."""
    kept = _scores([path for root in roots for path in sorted((root / "annotations").glob("*.parquet"))])
    gone = _scores([path for root in roots for path in sorted((root / "rejected").glob("refine-*.parquet"))])
    none = np.zeros(0)
    return [
        ScorerGaps(
            name.removesuffix("_gap"),
            np.concatenate([kept.get(name, none), gone.get(name, none)]),
            kept.get(name, none),
        )
        for name in sorted({*kept, *gone})
    ]


def _scores(paths: Sequence[Path]) -> dict[str, FloatArray]:
    found: dict[str, list[FloatArray]] = {}
    for path in paths:
        rows = ANNOTATIONS.read_frame(path).select("scores").explode("scores", empty_as_null=False)
        scores = rows.unnest("scores").filter(pl.col("name").str.ends_with("_gap"))
        for (name,), some in scores.group_by("name"):
            found.setdefault(str(name), []).append(some["value"].to_numpy())
    return {name: np.concatenate(values) for name, values in found.items()}


def type_counts(stages: Mapping[str, Any]) -> dict[str, Any]:
    """Return what became of each type of text, refinement included: made, kept, rejected by reason."""
    types: dict[str, Any] = {}
    for stage, told in stages.items():
        for name, counts in told["facts"].get("by_type", {}).items():
            if "made" in counts:
                types[f"{stage}: {name}"] = {**counts, "rejected": dict(counts["rejected"])}
    balances = ("balance", "balance-positives", "balance-conversations")
    away = (*((stage, "balanced_away") for stage in balances), ("refine", "refined_away"))
    for stage, fact in away:
        for name, gone in stages.get(stage, {}).get("facts", {}).get(fact, {}).items():
            types[name]["kept"] -= gone
            types[name]["rejected"][fact] = gone
    return types


def _stage(receipts: Sequence[Receipt]) -> dict[str, Any]:
    counts = total_counts(receipts)
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
