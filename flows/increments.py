"""Beginning and end of incremental builds: new pairs get texts and shards, which are added to the last version.

Statistics of the pool, language models, classifiers and retrieval thresholds are those of the last full build; existing
shards do not change. An increment is made in ``.next/``, as a small build of its own, and then moved into place
(`state/build_versions.py`). Without new pairs there is no new version.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import replace_atomically, write_text
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.shards.content_counts import add_counts
from pairwright.datasets.version_switch import discard_staged_version, switch_version
from pairwright.flows.build_completion import write_pages
from pairwright.flows.config.build import BuildConfig, dump_config
from pairwright.flows.graph import STAGES
from pairwright.flows.manifest import build_manifest, merge_manifests
from pairwright.flows.runners.engine import Engine
from pairwright.flows.stages.shards import shard_contents
from pairwright.flows.state.build_versions import INCREMENTS, IncrementBase, page_moves, write_version
from pairwright.flows.state.layout import DOWNLOADS
from pairwright.flows.state.receipts import Receipt


def prepare_increment(config: BuildConfig, base: IncrementBase, folder: Path) -> None:
    """Copy the frozen files of the base into the folder of the increment, and link the shared downloads."""
    for name in filter(base.has_file, chain.from_iterable(stage.frozen for stage in STAGES)):
        with replace_atomically(folder / name) as temporary:
            shutil.copyfile(base.root / name, temporary)
    downloads = folder / DOWNLOADS
    if config.fetch and not downloads.is_symlink():
        downloads.symlink_to(base.root / DOWNLOADS)


def finish_increment(config: BuildConfig, base: IncrementBase, engine: Engine, state: str) -> dict[str, Any]:
    """Write card, report and manifest of all versions, move the increment into place, and return the manifest.

    Args:
        config: of the build.
        base: the version that is added to.
        engine: that ran the increment.
        state: of the input before it was read.
    """
    root, done = engine.root, engine.done
    number = base.manifest["build"]["number"] + 1
    moves = sorted(_destinations(done, number))
    new = build_manifest(config, done)
    destinations, files = dict(moves), new["files"]
    new["files"] = {destinations.get(name, name): entry for name, entry in files.items()}
    new["contents"] = add_counts(base.manifest["contents"], shard_contents(done["shards"]))
    manifest = merge_manifests(base.manifest, new, number, state)
    write_pages(config, manifest, {root: files, base.root: base.manifest["files"]}, root)
    write_text(root / "build.yaml", dump_config(config))
    write_version(root, manifest)
    switch_version(base.root, [*moves, *page_moves(manifest)])
    return manifest


def discard_empty_increment(base: IncrementBase, done: Mapping[str, Sequence[Receipt]]) -> str:
    """Remove an increment without new pairs; return a message."""
    pairs = done["pairs"][0]  # the job after those that read the input
    discard_staged_version(base.root)
    number = base.manifest["build"]["number"]
    old = _old_pairs_summary(pairs.facts, pairs.counts.rejected)
    return f"No new pairs since version {number}, so there is no new version{old}."


def increment_summary(manifest: Mapping[str, Any]) -> str:
    """Return a line of text about the last increment."""
    last = manifest["increments"][-1]
    pairs = last["pairs"]
    line = f"Version {last['number']}: {count_phrase(pairs['new'], 'new pair')} in {count_phrase(len(last['shards']), 'new shard')}"
    read = last["stages"]["pairs"]
    line += _old_pairs_summary(read["facts"], read["rejected"])
    failed = sum(stage["facts"].get("llm", {}).get("failed", 0) for stage in last["stages"].values())
    if failed:
        line += (
            f"; the model failed on {count_phrase(failed, 'row')} (reasons in {INCREMENTS}/{last['number']:04d}/failed)"
        )
        line += ", --full retries those without an answer"
    return "; ".join((line, *increment_warnings(manifest))) + "."


def increment_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the texts of all versions together; empty for a dataset without increments."""
    if not manifest.get("increments"):
        return []
    found = list[str]()
    if breaks := manifest["audit"].get("breaks"):
        worst = breaks[0]
        found.append(f"audit of all versions: hackable ({worst['attack']} in {worst['of']}: {worst['accuracy']:.1%})")
    if mixed := mixed_generators(manifest["contents"].get("makers", ())):
        found.append(f"texts by different versions of a generator ({', '.join(mixed)}): --full makes all by the newest")
    return found


def mixed_generators(makers: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the generators of which a dataset holds several versions, such as ``rules 1 and 2``.

    Args:
        makers: of the contents of a manifest.
    """
    versions: defaultdict[str, set[int]] = defaultdict(set)
    for maker in makers:
        versions[maker["generator"]].add(maker["version"])
    return [
        f"{name} {' and '.join(map(str, sorted(found)))}" for name, found in sorted(versions.items()) if len(found) > 1
    ]


def _old_pairs_summary(facts: Mapping[str, Any], rejected: Mapping[str, int]) -> str:
    """Return the counts of changed, removed and broken pairs as text; empty if there are none."""
    changed, removed = facts["changed"], facts["removed"]
    old = ""
    if changed:
        old += f"; {count_phrase(changed, 'changed pair')} {verb_form(changed, 'keep')} the texts until --full"
    if removed:
        old += f"; {count_phrase(removed, 'pair')} no longer in the input {verb_form(removed, 'stay')} until --full"
    broken = sum(rejected.values())
    return old + (f"; {count_phrase(broken, 'new row')} cannot be read" if broken else "")


def _destinations(done: Mapping[str, Sequence[Receipt]], number: int) -> list[tuple[str, str]]:
    """Return the destination of each file of increment ``number``: with the other parts and shards, or in its folder."""
    in_base = {stage.name for stage in STAGES if stage.in_base}
    receipts = [receipt for stage, each in done.items() if stage not in in_base for receipt in each]
    names = {output.path for receipt in receipts for output in receipt.outputs if not output.url}
    return [(name, _destination(name, number)) for name in names if not name.startswith(f"{DOWNLOADS}/")]


def _destination(name: str, number: int) -> str:
    shared = name in {"retrieval/keys.parquet", "fetched/images.parquet"}
    own = name.startswith(
        ("scan/", "index/", "retrieval/", "failed/", "rejected/index-", "statistics/index-plan")
    ) or name.endswith("-all.parquet")
    return f"{INCREMENTS}/{number:04d}/{name}" if own and not shared else name
