"""An incremental build: what is new in the input is made, judged by what is frozen, and appended.

Pool statistics, language models, classifiers and the retrieval's bar are those of the last full build; shards that stand are
not touched. Everything new is made in ``.next/``, as a small build of its own, and takes its place at once
(`versions.py`). Where nothing is new, nothing happens.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import replace_atomically, write_text
from pairwright.datasets.errors import UsageError
from pairwright.datasets.redaction import redact
from pairwright.datasets.shards.content_counts import add_counts, count_contents
from pairwright.datasets.version_switch import discard_staged_version, switch_version
from pairwright.flows.config.build import BuildConfig, dump_config
from pairwright.flows.config.sections import IndexSection
from pairwright.flows.generating_stages import generating_stages, quota_section
from pairwright.flows.manifest import build_manifest, remove_leftovers, samples_in, write_pages
from pairwright.flows.manifest_merge import merge_manifests, remaining_limits
from pairwright.flows.runners.engine import Engine
from pairwright.flows.stage_jobs import StageJobs
from pairwright.flows.stage_selection import stage_names
from pairwright.flows.stages.balance import balance_annotations, balance_stage, quota_limits
from pairwright.flows.stages.fetch import fetch_chosen
from pairwright.flows.stages.incremental import audit_all, freeze, refine_new, write_sizes
from pairwright.flows.stages.index import PRECOMPUTED, index_state, retrieve_state
from pairwright.flows.stages.new_pairs import read_new_pairs
from pairwright.flows.stages.pairs import Intake
from pairwright.flows.stages.refine import scorers_state
from pairwright.flows.stages.tag import statistics_path
from pairwright.flows.state.inputs import input_state, named_state, read_options
from pairwright.flows.state.layout import DOWNLOADS, part_name
from pairwright.flows.state.receipts import Counts, Output, Receipt, json_hash
from pairwright.flows.state.selection import PairSelection
from pairwright.flows.state.versions import INCREMENTS, page_moves, version_path, write_version

_PACE = ("max_concurrency", "requests_per_minute", "tokens_per_minute", "timeout", "max_retries", "patience")
_FREE = ("max_cost", "max_requests", "prices", "price", "cache", "batch", "base_url", "transport")


def increment_stages(config: BuildConfig) -> tuple[str, ...]:
    """Return the stages of an incremental build in the order in which they run."""
    left_out = {"words"} if config.retrieve else {"words", "index"}
    audited = ("audit",) if _has_audit(config) else ()
    names = [name for name in stage_names(config) if name not in left_out]
    if config.refine:
        names.insert(names.index("refine"), "freeze")
    return (*names, *audited)


def refuse_changed_settings(config: BuildConfig, before: Mapping[str, Any]) -> None:
    """Refuse to append to a build what is made in another way.

    Raises:
        UsageError: naming the settings that differ, or a stage that cannot append.
    """
    told, now = (_fixed_settings(each) for each in (before["config"], redact(config.model_dump(mode="json"))))
    differing = sorted(name for name in {*told, *now} if told.get(name) != now.get(name))
    if differing:
        raise UsageError(
            f"{', '.join(differing)}: other settings than those of the last full build, so that what is new would be "
            "made in another way. Build with --full, or set them back."
        )
    if config.retrieve and config.index_section and config.index_section.encoder == PRECOMPUTED:
        raise UsageError("vectors that are there already cannot be added to an index. Build with --full.")


_LOCATION_SETTINGS = frozenset(
    {"workers", "runner", "address", "publish", "publish_keep", "copies_gib", "incremental", "part_size"}
)  # shape no byte


def _fixed_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in config.items() if name not in _LOCATION_SETTINGS}
    # Of a section that is not there and one that says nothing the outcome is the same.
    settings["index"] = (settings["index"] or IndexSection().model_dump(mode="json")) if settings["retrieve"] else None
    settings["input"] = {name: value for name, value in config["input"].items() if name != "path"}
    if settings.get("llm"):
        settings["llm"] = {name: each for name, each in settings["llm"].items() if name not in {*_PACE, *_FREE}}
    return settings


def _has_audit(config: BuildConfig) -> bool:
    return bool(config.negatives or config.generators)


@dataclass(frozen=True)
class IncrementBase:
    """What an increment is added to.

    Attributes:
        root: the build directory.
        manifest: of its newest version.
    """

    root: Path
    manifest: Mapping[str, Any]

    @property
    def parts(self) -> list[str]:
        """The parts of all versions."""
        return [part_name(number) for number in range(self.manifest["build"]["parts"])]

    @property
    def full(self) -> list[str]:
        """The parts of the last full build."""
        return [part_name(number) for number in range(self.manifest["build"]["full_parts"])]

    @property
    def state(self) -> str:
        """What tells one base from another: the content of its files."""
        return json_hash(self.manifest["files"])

    def file(self, name: str) -> Receipt:
        """Return a file of the base as what a stage reads."""
        told = self.manifest["files"][name]
        output = Output(name, told["bytes"], told["sha256"])
        return Receipt("base", name, "", (output,), Counts("file"), {}, 0.0)


class Increment(StageJobs):
    """The stages of an incremental build; the engine writes into ``.next/``."""

    async def run(self, base: IncrementBase) -> bool:
        """Run them all; say whether there was anything new."""
        config, known = self.config, base.parts
        words = self._prepare(base)
        pairs = await self.whole(
            "pairs",
            [],
            read_new_pairs,
            base.root,
            known,
            Intake(read_options(config.input), config.part_size, config.all_have_images),
            state=f"{input_state(config.input)} {base.state}",
        )
        if not pairs.counts.kept:
            return False
        parts = [part_name(number) for number in range(len(known), len(known) + pairs.facts["parts"])]
        remove_leftovers(self.engine.root, self.engine.done, "pairs/*", "rejected/pairs-*")
        chosen = await self._chosen(base, pairs, parts)
        tagged = await self.tag(pairs, parts)
        made: list[Receipt] = []
        for this in generating_stages(config):
            inputs = [*chosen, *tagged, words, *(each for each in made if each.stage in this.unlike)]
            made += await self.generate(remaining_limits(this, base.manifest), parts, inputs)
        for this in generating_stages(config):
            if section := quota_section(config, this.stage):
                name = balance_stage(this.stage)
                limits = remaining_limits(quota_limits(section), base.manifest, name)
                made.append(await self.whole(name, made, balance_annotations, parts, this, limits))
        if config.refine:
            made.append(await self._refine(base, [*chosen, *made], parts))
        if config.rationales:
            made += await self.rationales(config.rationales, parts, [*chosen, *made])
        await self._append(base, [*chosen, *made], parts)
        return True

    def _prepare(self, base: IncrementBase) -> Receipt:
        """Lay out ``.next/``: the frozen statistics of the pool, and the folder of downloads, which both share."""
        words = statistics_path(self.engine.root)
        with replace_atomically(words) as temporary:
            shutil.copyfile(statistics_path(base.root), temporary)
        downloads = self.engine.root / DOWNLOADS
        if self.config.fetch and not downloads.is_symlink():
            downloads.symlink_to(base.root / DOWNLOADS)
        return base.file(words.relative_to(self.engine.root).as_posix())

    async def _chosen(self, base: IncrementBase, pairs: Receipt, parts: list[str]) -> list[Receipt]:
        config, chosen = self.config, [pairs]
        if config.retrieve and (section := config.index_section):
            state = f"{index_state(section, config.input.path)} {base.state}"
            index = await self.index(section, parts, pairs, base.root / "index", state=state)
            state = f"{retrieve_state(config.retrieve)} {base.state}"
            asked = (parts, [pairs, index], section.device, base.root)
            chosen.append(await self.retrieve(config.retrieve, *asked, state=state))
        if config.fetch:
            before: PairSelection = "retrieved" if config.retrieve else "all"
            exclude = config.retrieve.exclude if config.retrieve else ()
            given = (parts, config.fetch, before, exclude, base.root)
            state = f"{named_state(exclude)} {base.state}"
            chosen.append(await self.whole("fetch", chosen, fetch_chosen, *given, state=state))
        return chosen

    async def _refine(self, base: IncrementBase, made: Sequence[Receipt], parts: list[str]) -> Receipt:
        config, section = self.config, self.config.refine
        stages = [this.stage for this in generating_stages(config) if this.to_refine]
        at_home = replace(self, engine=replace(self.engine, root=base.root))
        number = base.manifest["build"]["full"]
        full = version_path(base.root, number).read_bytes()
        frozen = await at_home.whole("freeze", [], freeze, stages, base.full, section, state=json_hash(full.hex()))
        carried = base.manifest["stages"]["refine"]["facts"].get("carried", {})
        how = (base.root, stages, parts, base.full, section, config.seed, carried)
        state = base.state + scorers_state(section)
        return await self.whole("refine", [frozen, *made], refine_new, *how, state=state)

    async def _append(self, base: IncrementBase, made: Sequence[Receipt], parts: list[str]) -> None:
        told = base.manifest["shards"]
        shards = await self.shards(parts, made, told["files"])
        remove_leftovers(self.engine.root, self.engine.done, "shards/*.tar")
        await self.whole("sizes", shards, write_sizes, base.root, told["image_ext"], state=base.state)
        if _has_audit(self.config):
            stages = [
                this.stage for this in generating_stages(self.config) if this.to_refine or this.stage == "negatives"
            ]
            stages += [extra.name for extra in self.config.generators if extra.name not in stages]
            how = (base.root, stages, base.parts, parts, self.config.seed)
            await self.whole("audit", made, audit_all, *how, state=base.state)


def finish_increment(config: BuildConfig, base: IncrementBase, engine: Engine, state: str) -> dict[str, Any]:
    """Write card, report and manifest of the union, and let everything take its place; return the manifest.

    Args:
        config: of the build.
        base: what is added to.
        engine: that ran the increment.
        state: of the input, when its reading began.
    """
    root, done = engine.root, engine.done
    number = base.manifest["build"]["number"] + 1
    moves = sorted(_destinations(done, number))
    new = build_manifest(config, done)
    new["files"] = {**_files(done, dict(moves))}
    new["contents"] = add_counts(base.manifest["contents"], count_contents(samples_in(root)))
    manifest = merge_manifests(base.manifest, new, number, state)
    write_pages(config, manifest, [root, base.root], root)
    write_text(root / "build.yaml", dump_config(config))
    write_version(root, manifest)
    switch_version(base.root, [*moves, *page_moves(manifest)])
    return manifest


def discard_empty_increment(base: IncrementBase, done: Mapping[str, Sequence[Receipt]]) -> str:
    """Forget what was begun, and return a line that says why there is no new version."""
    (pairs,) = done["pairs"]
    discard_staged_version(base.root)
    number = base.manifest["build"]["number"]
    return f"No new pairs since version {number}, so there is no new version{old_pairs_summary(pairs.facts, pairs.counts.rejected)}."


def increment_summary(manifest: Mapping[str, Any]) -> str:
    """Return a line on the newest increment of a version."""
    last = manifest["increments"][-1]
    pairs, audit = last["pairs"], manifest["audit"]
    line = f"Version {last['number']}: {pairs['new']:,} new pairs in {len(last['shards']):,} new shards"
    line += old_pairs_summary(pairs, last["stages"]["pairs"]["rejected"])
    failed = sum(stage["facts"].get("llm", {}).get("failed", 0) for stage in last["stages"].values())
    if failed:
        line += f"; a model made nothing of {failed:,} rows ({INCREMENTS}/{last['number']:04d}/failed says why)"
        line += ", --full asks again where no answer came"
    if audit.get("breaks"):
        worst = audit["breaks"][0]
        line += f"; the audit finds the union hackable ({worst['attack']} in {worst['of']}: {worst['accuracy']:.1%})"
    return f"{line}."


def old_pairs_summary(facts: Mapping[str, Any], rejected: Mapping[str, int]) -> str:
    """Return what is told of pairs that are not new: changed, removed, broken; empty where there are none."""
    told = [f"{facts[name]:,} {name}" for name in ("changed", "removed") if facts[name]]
    old = f"; {' and '.join(told)} pairs stay as they are until --full" if told else ""
    broken = sum(rejected.values())
    return old + (f"; {broken:,} new rows cannot be read" if broken else "")


def _destinations(done: Mapping[str, Sequence[Receipt]], number: int) -> list[tuple[str, str]]:
    """Return for each file that was made where it goes: parts and shards among the others, the rest to itself."""
    names = {
        output.path for stage, receipts in done.items() if stage != "freeze" for r in receipts for output in r.outputs
    }
    return [(name, _destination(name, number)) for name in names if not name.startswith(f"{DOWNLOADS}/")]


def _destination(name: str, number: int) -> str:
    shared = name in {"retrieval/keys.parquet", "fetched/images.parquet"}
    own = name.startswith(("index/", "retrieval/", "failed/")) or name.endswith("-all.parquet")
    return f"{INCREMENTS}/{number:04d}/{name}" if own and not shared else name


def _files(done: Mapping[str, Sequence[Receipt]], moves: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    return {
        moves.get(output.path, output.path): {"bytes": output.bytes, "sha256": output.sha256}
        for receipts in done.values()
        for receipt in receipts
        for output in receipt.outputs
    }
