"""Summary of a build: contents, types, shortfalls, cost and files, as lines and as JSON."""

from collections import Counter
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from pairwright.cli.output.summary import (
    headline,
    next_step,
    quota_lines,
    share_of,
    type_table,
    warning,
    wrapped_table,
)
from pairwright.datasets.build_manifest import shard_paths
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.readers.skip_counts import REJECTED_PARTS, SkipCounts
from pairwright.datasets.rejects import list_reasons

_TEXT_KINDS = {  # kind of text: its stage, and a noun
    "hard_negatives": ("negatives", "hard negative"),
    "hard_positives": ("positives", "hard positive"),
    "conversations": ("conversations", "conversation"),
    "rationales": ("rationales", "rationale"),
}


def build_result(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON result of a finished build."""
    return {
        "out": str(folder),
        "stages": stage_counts(manifest),
        "shards": [str(path) for path in shard_paths(folder, manifest["files"])],
        "card": str(folder / "README.md"),
        "report": str(folder / "report.html"),
        "manifest": str(folder / "manifest.json"),
        "samples": manifest["contents"]["samples"],
        "samples_with": manifest["contents"].get("samples_with", {}),
        "types": manifest["types"],
    }


def stage_counts(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return unit, counts and seconds of each stage of a manifest, and what was rejected of kept rows."""
    names = ("unit", "candidates", "kept", "rejected", "seconds")
    return {
        stage: {
            **{name: counts[name] for name in names},
            **{name: counts["facts"][name] for name in REJECTED_PARTS if name in counts["facts"]},
        }
        for stage, counts in manifest["stages"].items()
    }


def missed_target(manifest: dict[str, Any]) -> list[str]:
    """Return why the refinement of a finished build ends it below its target: nothing kept, or attacks above; or nothing."""
    refine = manifest["stages"].get("refine", {"facts": {}})
    facts = refine["facts"]
    if not facts.get("in") or (facts["kept"] and facts.get("holds", True)):
        return []
    kept = f"refine: {facts['kept']:,} of {count_phrase(facts['in'], 'negative')} kept"
    if facts["kept"]:
        return [f"{kept}, and an attack is still above the target. Details: report.html."]
    return [f"{kept} ({list_reasons(refine['rejected'])}). Use more captions, or omit the section `refine`."]


def nothing_kept_in_build(stages: Mapping[str, Any]) -> list[str]:
    """Return the reasons of stages that kept no text: any that asks a model, or all if none kept any.

    Args:
        stages: of the manifest.
    """
    making = {
        name: each for name, each in stages.items() if each["candidates"] and each["facts"].keys() & {"by_type", "llm"}
    }
    empty = {name: each for name, each in making.items() if not each["kept"]}
    if len(empty) < len(making):
        empty = {name: each for name, each in empty.items() if "llm" in each["facts"]}
    return [
        f"{name}: no text was kept of {count_phrase(each['candidates'], each['unit'])} ({list_reasons(each['rejected'])})."
        for name, each in empty.items()
    ]


def build_lines(folder: Path, manifest: dict[str, Any], *, details: bool = False) -> list[str]:
    """Return the summary of a finished build: contents, types, shortfalls, cost, files."""
    from pairwright.flows.increments import increment_warnings

    contents, shards = manifest["contents"], manifest["shards"]
    samples, pages = contents["samples"], "report.html, README.md (dataset card), manifest.json"
    tars = f"{shards.get('url') or 'shards'}/{shards['pattern']}"
    return [
        "",
        headline(f"{count_phrase(samples, 'sample')}{'' if contents['with_image'] else ', text only'}"),
        *_sample_share_lines(contents.get("samples_with", {}), manifest["stages"], samples),
        *_type_lines(manifest, samples, details=details),
        *map(warning, _input_lines(manifest)),
        *map(warning, _limit_lines(manifest)),
        *map(warning, _refine_lines(manifest)),
        *map(warning, increment_warnings(manifest)),
        *_model_lines(folder, manifest),
        "",
        *([f"Shards: {tars}"] if shards.get("url") else []),
        f"Written to {folder}: {pages if shards.get('url') else f'{tars}, {pages}'}",
        *([] if nothing_kept_in_build(manifest["stages"]) else next_step("inspect", folder)),
    ]


def unchanged_lines(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the summary of a build that an increment had nothing to add to."""
    samples = count_phrase(manifest["contents"]["samples"], "sample")
    return ["", headline(f"Unchanged: version {manifest['build']['number']} in {folder}, {samples}")]


def _sample_share_lines(samples_with: dict[str, int], stages: Container[str], samples: int) -> list[str]:
    """Return the number of samples with at least one text of each kind that the build makes."""
    shares = [
        f"{share_of(samples_with[kind], samples)} {name}"
        for kind, (stage, name) in _TEXT_KINDS.items()
        if samples_with.get(kind) or (kind in samples_with and stage in stages)
    ]
    return [f"with at least one: {', '.join(shares)}"] if shares else []


def _type_lines(manifest: dict[str, Any], samples: int, *, details: bool) -> list[str]:
    types = [(name, counts["kept"], counts["rejected"]) for name, counts in manifest["types"].items()]
    if not types:
        return []
    if details:
        rows: list[list[object]] = [["type", "tried", "kept"]]
        rows += [[name, counts["made"], counts["kept"]] for name, counts in manifest["types"].items()]
        reasons = [list_reasons(rejected) for _, _, rejected in types]
        return ["", *wrapped_table(rows, ["rejected", *reasons])]
    return ["", *type_table(types, samples, "samples")]


def _input_lines(manifest: dict[str, Any]) -> list[str]:
    """Return how many rows of the input were rejected, and why, and how many lost captions, boxes or fields; empty if none."""
    pairs = manifest["stages"].get("pairs", {"rejected": {}, "candidates": 0})
    rejected = Counter(pairs["rejected"])
    parts = SkipCounts.of_kept_rows(pairs.get("facts", {}), REJECTED_PARTS)
    where = "in rejected/pairs-*.parquet"
    lines = []
    if rejected:
        where_read = "all versions" if manifest["build"]["number"] != manifest["build"]["full"] else "the input"
        lost = f"{rejected.total():,} of {count_phrase(pairs['candidates'], 'row')} of {where_read} rejected"
        lines.append(f"{lost}: {list_reasons(rejected)}. They are {where}.")
    for counts, about, unit in (
        (parts.captions, "Rejected alone, as their rows have others", "caption"),
        (parts.boxes, "Read without boxes, since one of them is bad", "row"),
        (parts.fields, "Read as unknown, since it is not usable", "optional field"),
    ):
        if counts:
            lines.append(
                f"{about}: {count_phrase(counts.total(), unit)} ({list_reasons(counts)}). Details are {where}."
            )
    return lines


def _limit_lines(manifest: dict[str, Any]) -> list[str]:
    """Return the quotas that were not met, and the types that a limit reduced."""
    return [
        line
        for stage in manifest["stages"].values()
        for line in quota_lines(stage["facts"].get("limits", {}), f"{stage['unit']}s: ")
    ]


def _refine_lines(manifest: dict[str, Any]) -> list[str]:
    """Return why refinement kept few negatives or missed its target, and what keeps more."""
    facts = manifest["stages"].get("refine", {}).get("facts", {})
    if not facts.get("in"):
        return []
    kept = f"refine: {facts['kept']:,} of {count_phrase(facts['in'], 'negative')} kept"
    if facts.get("advice"):
        return [f"{kept}. {facts['advice']}"]
    if 2 * facts["kept"] >= facts["in"]:
        return []
    if "bound" in facts:
        most = f"upper bound for any balanced subset: {facts['bound']:,}"
        return [f"{kept}; {most}. A larger `target` under refine, or `both_sides` under negatives, keeps more."]
    if "unbalanced_cell" in facts["rejected"]:
        return [f"{kept}: the set is too small to balance. More captions or fewer `cells` under refine keep more."]
    return []


def _model_lines(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the cost of texts by models and the failed rows; empty where no stage asks a model."""
    bills = {name: stage["facts"]["llm"] for name, stage in manifest["stages"].items() if "llm" in stage["facts"]}
    if not bills:
        return []
    from pairwright.flows.llm.failed_rows import count_failed_rows
    from pairwright.flows.state.layout import failed_files
    from pairwright.generators.llm.budget import format_usd

    cost = manifest["cost"]
    price = "price unknown" if cost["usd"] is None else format_usd(cost["usd"])
    lines = [
        f"Texts by models: {count_phrase(cost['requests'], 'answer')}, {count_phrase(cost['tokens'], 'token')}, {price}"
    ]
    for name, bill in bills.items():
        files = failed_files(folder, name)
        if bill["failed"] and files:
            where = str(files[0]) if len(files) == 1 else f"{files[0].parent}/*.jsonl"
            lines += [f"{name}: {line}" for line in count_failed_rows(*files).lines(where)]
    return lines
