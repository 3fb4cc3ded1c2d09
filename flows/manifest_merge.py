"""What a version tells of all that it holds: the counts of the one before with those of an increment.

Counts of stages are added. Of the facts those are added that are counts of texts; what was measured (recall, attacks of
refinement) stays that of the last full build, each increment's own standing in ``increments``. What no longer holds of
the union, whatever was measured, is for the audit to say.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, overload

from pairwright.flows.manifest import cost_facts, type_counts
from pairwright.flows.stages.generate import GeneratingStage
from pairwright.generators.balance import BalanceLimits

_ADDED = ("refined_away", "balanced_away", "for_training")
_MADE = ("made", "kept", "rejected")


def merge_manifests(before: Mapping[str, Any], new: Mapping[str, Any], number: int, state: str) -> dict[str, Any]:
    """Return the manifest of a version.

    Args:
        before: manifest of the version before.
        new: of the increment; ``contents`` and ``shards`` are of the union already.
        number: of the version.
        state: of the input.
    """
    stages = {name: _stage(told, new["stages"].get(name)) for name, told in before["stages"].items()}
    told_pairs = new["stages"]["pairs"]
    parts = told_pairs["facts"]["parts"]
    first = before["shards"]["files"]
    shards = [f"{each:05d}.tar" for each in range(first, new["shards"]["files"])]
    increment = {
        "number": number,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "pairs": {
            "new": told_pairs["kept"],
            **{name: told_pairs["facts"][name] for name in ("known", "changed", "removed")},
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


def _stage(before: Mapping[str, Any], new: Mapping[str, Any] | None) -> dict[str, Any]:
    if new is None:
        return dict(before)
    counts = ("candidates", "kept", "rejected", "seconds", "parts")
    facts, more = dict(before["facts"]), new["facts"]
    for name in _ADDED:
        if name in more:
            facts[name] = _sum(facts.get(name), more[name])
    if "by_type" in more:
        facts["by_type"] = _texts(facts.get("by_type", {}), more["by_type"])
    if "limits" in more:
        facts["limits"] = {
            kind: _limits(facts.get("limits", {}).get(kind), each) for kind, each in more["limits"].items()
        }
    if "carried" in more:
        facts["carried"] = more["carried"]
    if "llm" in more:
        one, other = facts["llm"], more["llm"]  # rows that failed now are named in the increment's own folder
        facts["llm"] = {**other, "failed": one["failed"], "in_all": _sum(one["in_all"], other["in_all"])}
    return {**before, **{name: _sum(before[name], new[name]) for name in counts}, "facts": facts}


def _texts(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Add counts of texts by type; what else is told by type (of refinement) stays that of the full build."""
    if not all(set(_MADE) <= each.keys() for each in (*before.values(), *new.values())):
        return dict(before)
    return {kind: _sum(before.get(kind), new.get(kind)) for kind in [*before, *sorted(set(new) - set(before))]}


def _limits(before: Mapping[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
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


def _sum(one: Any, other: Any) -> Any:
    """Add counts; what one side does not tell is what the other tells, but a price that is unknown stays so."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = [*one, *sorted(set(other) - set(one))]
        return {
            name: _sum(one[name], other[name]) if name in one and name in other else {**one, **other}[name]
            for name in names
        }
    if one is None or other is None:
        return None
    if isinstance(one, int | float) and isinstance(other, int | float):
        return round(one + other, 9)
    return one


@overload
def remaining_limits(limited: GeneratingStage, before: Mapping[str, Any]) -> GeneratingStage: ...
@overload
def remaining_limits(limited: BalanceLimits, before: Mapping[str, Any], stage: str) -> BalanceLimits: ...
def remaining_limits(
    limited: GeneratingStage | BalanceLimits, before: Mapping[str, Any], stage: str = ""
) -> GeneratingStage | BalanceLimits:
    """Return what quotas of a build leave for an increment: a maker that is asked for so many, or limits of a set.

    A cap on words holds among the new texts alone: within both, it is within the union.
    """
    if isinstance(limited, BalanceLimits):
        return replace(limited, quota=_remaining(limited.quota, before, stage, "given"))
    counts = limited.options.get("counts")
    if not counts or limited.to_balance:
        return limited
    left = _remaining(counts, before, limited.stage, "available")
    return replace(limited, options={**limited.options, "counts": left})


def _remaining(quota: Mapping[str, int], before: Mapping[str, Any], stage: str, used: str) -> dict[str, int]:
    told = before["stages"].get(stage, {}).get("facts", {}).get("limits", {})
    return {kind: max(0, most - told.get(kind, {}).get(used, 0)) for kind, most in quota.items()}
