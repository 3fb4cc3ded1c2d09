"""Manifest of a build, and of the version that an increment makes.

Counts of stages are summed over all versions (`merge_manifests`). Facts are summed if they count texts; measurements
(recall, attacks before and after refinement) stay those of the last full build, and those of each increment are in
``increments``. The audit measures all versions together.
"""

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pairwright import __version__
from pairwright.datasets.readers.skip_counts import REJECTED_PARTS
from pairwright.datasets.redaction import redact
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.state.code_versions import package_version, source_hash
from pairwright.flows.state.receipts import Receipt, merged_facts, sum_facts, total_counts

_SUMMED_FACTS = ("refined_away", "balanced_away", "for_training", *REJECTED_PARTS)
_TEXT_COUNTS = ("made", "kept", "rejected")
PACKAGES = ("faiss-cpu", "numpy", "pillow", "polars", "prefect", "spacy")


def stage_facts(done: Mapping[str, Sequence[Receipt]]) -> dict[str, Any]:
    """Return the counts, seconds, parts and facts of each stage."""
    return {stage: _stage_entry(receipts) for stage, receipts in done.items()}


def build_manifest(config: BuildConfig, done: Mapping[str, Sequence[Receipt]]) -> dict[str, Any]:
    """Return the manifest of a build without ``build`` and ``contents``."""
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
            output.path: {
                "bytes": output.bytes,
                "sha256": output.sha256,
                **({"url": output.url} if output.url else {}),
            }
            for receipts in done.values()
            for receipt in receipts
            for output in receipt.outputs
        },
        "environment": {
            "python": platform.python_version(),
            "system": platform.system(),
            "source": source_hash(),
            **{name: package_version(name) for name in PACKAGES},
        },
    }


def cost_facts(stages: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost of all model answers that the texts are made from; ``usd`` is None if a price is unknown."""
    bills = [stage["facts"]["llm"]["in_all"] for stage in stages.values() if "llm" in stage["facts"]]
    costs = [bill["cost"] for bill in bills]
    return {
        "requests": sum(bill["answers"] for bill in bills),
        "tokens": sum(bill["prompt_tokens"] + bill["completion_tokens"] for bill in bills),
        "usd": None if None in costs else float(sum(costs)),
    }


def type_counts(stages: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of each type of text after balancing and refinement: made, kept, rejected by reason."""
    types: dict[str, Any] = {}
    for stage, entry in stages.items():
        for name, counts in entry["facts"].get("by_type", {}).items():
            if "made" in counts:
                types[f"{stage}: {name}"] = {**counts, "rejected": dict(counts["rejected"])}
    for entry in stages.values():
        for fact in ("balanced_away", "refined_away"):
            for name, count in entry["facts"].get(fact, {}).items():
                types[name]["kept"] -= count
                types[name]["rejected"][fact] = count
    return types


def _stage_entry(receipts: Sequence[Receipt]) -> dict[str, Any]:
    counts = total_counts(receipts)
    return {
        "unit": counts.unit,
        "candidates": counts.candidates,
        "kept": counts.kept,
        "rejected": dict(counts.rejected),
        "seconds": round(sum(receipt.seconds for receipt in receipts), 3),
        "parts": len(receipts),
        "facts": merged_facts([receipt.facts for receipt in receipts]),
    }


def merge_manifests(before: Mapping[str, Any], new: Mapping[str, Any], number: int, state: str) -> dict[str, Any]:
    """Return the manifest of the version that an increment makes.

    Args:
        before: manifest of the version before.
        new: of the increment; its ``contents`` and ``shards`` cover all versions.
        number: of the version.
        state: of the input.
    """
    stages = {name: _merged_stage(stage, new["stages"].get(name)) for name, stage in before["stages"].items()}
    pairs = new["stages"]["pairs"]
    parts = pairs["facts"]["parts"]
    first = before["shards"]["files"]
    shards = [f"{each:05d}.tar" for each in range(first, new["shards"]["files"])]
    increment = {
        "number": number,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "pairs": {
            "new": pairs["kept"],
            **{name: pairs["facts"][name] for name in ("known", "changed", "removed")},
        },
        "shards": shards,
        "source": new["environment"]["source"],
        "stages": new["stages"],
    }
    audit = new["stages"].get("audit", {}).get("facts", {}).get("audit", {})
    return {
        **before,
        **{name: new[name] for name in ("created", "version", "config", "shards", "contents", "environment")},
        "stages": stages,
        "types": type_counts(stages),
        "cost": cost_facts(stages),
        "files": {**before["files"], **new["files"]},
        "build": {
            **before["build"],
            "number": number,
            "kind": "incremental",
            "parts": before["build"]["parts"] + parts,
            "input": state,
        },
        "increments": [*before.get("increments", []), increment],
        "audit": audit,
    }


def _merged_stage(before: Mapping[str, Any], new: Mapping[str, Any] | None) -> dict[str, Any]:
    if new is None:
        return dict(before)
    counts = ("candidates", "kept", "rejected", "seconds", "parts")
    facts, more = dict(before["facts"]), new["facts"]
    for name in _SUMMED_FACTS:
        if name in more:
            facts[name] = sum_facts(facts[name], more[name]) if name in facts else more[name]
    if "by_type" in more:
        facts["by_type"] = _merged_texts(facts.get("by_type", {}), more["by_type"])
    if "limits" in more:
        facts["limits"] = {
            kind: _merged_limits(facts.get("limits", {}).get(kind), each) for kind, each in more["limits"].items()
        }
    if "carried" in more:
        facts["carried"] = more["carried"]
    if "llm" in more:
        one, other = facts["llm"], more["llm"]  # new failed rows are listed in the increment's own folder
        facts["llm"] = {**other, "failed": one["failed"], "in_all": sum_facts(one["in_all"], other["in_all"])}
    return {**before, **{name: sum_facts(before[name], new[name]) for name in counts}, "facts": facts}


def _merged_texts(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return summed counts of texts by type; other facts by type (of refinement) stay those of the full build."""
    if not all(set(_TEXT_COUNTS) <= each.keys() for each in (*before.values(), *new.values())):
        return dict(before)
    return {kind: sum_facts(before.get(kind), new.get(kind)) for kind in [*before, *sorted(set(new) - set(before))]}


def _merged_limits(before: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    if before is None:
        return dict(new)
    most = [each for each in (before["most"], new["most"]) if each is not None]
    return {
        "asked": before["asked"],
        "available": before["available"] + new["available"],
        "given": before["given"] + new["given"],
        "most": sum(most) if most else None,
        "used": before["used"] + new["used"],
    }
