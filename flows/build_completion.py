"""End of a full build: card, report and manifest are written, and the older version is replaced."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.build_manifest import shard_paths
from pairwright.datasets.progress import open_step
from pairwright.datasets.record_tables import ANNOTATIONS
from pairwright.datasets.reports.build_report import ScorerGaps, write_report
from pairwright.datasets.reports.dataset_card import render_card
from pairwright.datasets.reports.sample_gallery import choose_samples
from pairwright.datasets.shards.reading import read_shard
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.manifest import build_manifest
from pairwright.flows.stages.shards import shard_contents
from pairwright.flows.state.build_versions import full_version_number, replace_full, write_version
from pairwright.flows.state.leftovers import remove_leftovers, remove_stale_receipts
from pairwright.flows.state.receipts import Receipt, count_parts
from pairwright.generators.language.vocabulary import FloatArray

Truth = Callable[[Path], Mapping[str, Any]]

_GALLERY_POOL, _GALLERY_SIZE = 500, 24  # samples that the gallery of the report is chosen from, and shows


def finish_build(  # noqa: PLR0913, PLR0917 - what a full build knows at its end
    config: BuildConfig,
    root: Path,
    place: Path,
    done: Mapping[str, Sequence[Receipt]],
    truth: Truth | None,
    state: str,
) -> dict[str, Any]:
    """Write card, report and manifest of a full build, replace the older version, and return the manifest.

    Args:
        config: of the build.
        root: the build directory.
        place: the folder that the build worked in (`build_versions.full_build_folder`).
        done: receipts by stage.
        truth: judges the texts where the truth is known (the demo).
        state: of the input before it was read.
    """
    remove_leftovers(place, done)
    remove_stale_receipts(place, done)
    manifest = build_manifest(config, done)
    number, parts = full_version_number(root, manifest), count_parts(done)
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
    manifest["contents"] = shard_contents(done["shards"])
    write_pages(config, manifest, {place: manifest["files"]}, place)
    write_version(place, manifest)
    if place != root:
        replace_full(root, done, manifest)
    return manifest


def write_pages(
    config: BuildConfig, manifest: Mapping[str, Any], roots: Mapping[Path, Mapping[str, Any]], out: Path
) -> None:
    """Write card and report.

    Args:
        config: of the build.
        manifest: of the new version.
        roots: folders whose samples and scorers' gaps the report shows, each with its files as a manifest lists them.
        out: the folder to write into.
    """
    write_text(out / "README.md", render_card(manifest))
    samples = (
        sample for root, files in roots.items() for tar in shard_paths(root, files) for sample in read_shard(tar)
    )
    shown = choose_samples(islice(samples, _GALLERY_POOL), _GALLERY_SIZE, config.seed)
    with open_step("writing the report", unit=""):
        write_report(out / "report.html", manifest, shown, _gaps(roots) if config.refine else ())


def _gaps(roots: Collection[Path]) -> list[ScorerGaps]:
    """Return the scorers' gaps of the refined negatives: before of all candidates, after of the kept ones."""
    kept = _gap_scores([path for root in roots for path in sorted((root / "annotations").glob("*.parquet"))])
    rejected = _gap_scores([path for root in roots for path in sorted((root / "rejected").glob("refine-*.parquet"))])
    none = np.zeros(0)
    return [
        ScorerGaps(
            name.removesuffix("_gap"),
            np.concatenate([kept.get(name, none), rejected.get(name, none)]),
            kept.get(name, none),
        )
        for name in sorted({*kept, *rejected})
    ]


def _gap_scores(paths: Sequence[Path]) -> dict[str, FloatArray]:
    found: dict[str, list[FloatArray]] = {}
    for path in paths:
        rows = ANNOTATIONS.read_frame(path).select("scores").explode("scores", empty_as_null=False)
        scores = rows.unnest("scores").filter(pl.col("name").str.ends_with("_gap"))
        for (name,), some in scores.group_by("name"):
            found.setdefault(str(name), []).append(some["value"].to_numpy())
    return {name: np.concatenate(values) for name, values in found.items()}
