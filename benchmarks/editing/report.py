"""Markdown tables of the figures of `edits.py`."""

from collections.abc import Mapping, Sequence
from typing import Any

_ATTACKS = ("single_words", "words", "letters", "trigram_total", "trigram_mean", "plausibility", "length")
_WORDS = ("single_words", "words")
_PROXIES = ("log_prob_change", "unlikely", "plausibility_change", "imbalance")
_SECTIONS = ("default", "both sides")


def render_markdown(figures: Mapping[str, Any]) -> str:
    """Return the figures as Markdown."""
    if "refinement" in figures:
        return "\n".join(_render_refinement(label, one) for label, one in figures.items())
    parts = [f"{figures['captions']:,} captions of {figures['images']:,} images\n"]
    for name in (name for name in _SECTIONS if name in figures):
        parts += [f"## {name.capitalize()}\n", _render_attacks(figures[name]), _render_by_rows(figures[name])]
    parts += ["## Proxies\n", _render_proxies(figures["default"])]
    parts += ["## Words\n", _render_words(figures["default"])]
    parts += ["## Rejected, share of captions\n", _render_rejected(figures["default"])]
    if "slots" in figures:
        parts += ["## Distinct kept edits per slot\n", _render_slots(figures["slots"])]
    same = "equal" if figures["same_bytes"] else "DIFFERENT"
    parts += [f"## Speed of the whole command (bytes of all runs: {same})\n", _render_speed(figures["speed"])]
    return "\n".join(parts)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table; the first column is left-aligned."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def percent(value: float | None) -> str:
    """Return a share as a percentage; empty without one."""
    return "" if value is None else f"{value:.1%}"


def _render_attacks(types: Mapping[str, Any]) -> str:
    rows = [
        [kind, f"{one['rows']:,}", percent(one["yield"]), *(percent(one.get(name)) for name in _ATTACKS)]
        for kind, one in types.items()
    ]
    return table(["type", "kept", "yield", *(name.replace("_", " ") for name in _ATTACKS)], rows)


def _render_by_rows(types: Mapping[str, Any]) -> str:
    sizes = sorted({size for one in types.values() for size in one["by_rows"]}, key=int)
    if not sizes:
        return ""
    rows = [
        [kind, *(percent(one["by_rows"].get(size, {}).get(name)) for name in _WORDS for size in sizes)]
        for kind, one in types.items()
    ]
    return table(["type", *(f"{name.replace('_', ' ')}, {size} rows" for name in _WORDS for size in sizes)], rows)


def _render_proxies(types: Mapping[str, Any]) -> str:
    rows = [[kind, *(one.get(name, "") for name in _PROXIES)] for kind, one in types.items()]
    return table(["type", *(name.replace("_", " ") for name in _PROXIES)], rows)


def _render_words(types: Mapping[str, Any]) -> str:
    def listed(pairs: Sequence[tuple[str, float]]) -> str:
        return ", ".join(f"{phrase} {share:.1%}" for phrase, share in pairs)

    rows = [[kind, listed(one["inserted"]), listed(one["removed"])] for kind, one in types.items()]
    return table(["type", "inserted", "removed"], rows)


def _render_rejected(types: Mapping[str, Any]) -> str:
    reasons = sorted({reason for one in types.values() for reason in one["rejected"]})
    rows = [[kind, *(percent(one["rejected"].get(reason)) for reason in reasons)] for kind, one in types.items()]
    return table(["type", *reasons], rows)


def _render_slots(types: Mapping[str, Any]) -> str:
    rows = [
        [kind, one["slots"], percent(one.get("one")), percent(one.get("three_or_more")), one.get("median", ""), one.get("mean", "")]
        for kind, one in types.items()
    ]  # fmt: skip
    return table(["type", "slots", "one", "three or more", "median", "mean"], rows)


def _render_speed(runs: Mapping[str, Mapping[str, float]]) -> str:
    names = list(next(iter(runs.values())))
    rows = [[workers, *(run[name] for name in names)] for workers, run in runs.items()]
    return table(["workers", *(name.replace("_", " ") for name in names)], rows)


def _render_refinement(label: str, found: Mapping[str, Any]) -> str:
    kept = f"{found['in']:,} rows in, {found['kept']:,} kept ({percent(found['share'])})"
    sides = [[name, percent(one["before"]), percent(one["after"])] for name, one in found["attacks"].items()]
    types = [
        [kind, f"{one['in']:,}", f"{one['kept']:,}", percent(one["kept"] / max(one["in"], 1)), one["worst"]]
        + [percent(one.get(name)) for name in ("accuracy", "words", "letters")]
        for kind, one in found["by_type"].items()
    ]
    parts = [
        f"## {label.capitalize()}\n",
        f"{kept}; exit code {found['code']}, {found['cpu']} s of CPU\n",
        table(["attack, folded", "before", "after"], sides),
        table(["type", "in", "kept", "share", "worst", "folded", "words", "letters"], types),
        table(["held-out attack", "rate"], [[name, percent(rate)] for name, rate in found["held_out"].items()]),
    ]
    return "\n".join(parts)
