"""Costs of the model answers used by a dataset's texts, as rows for card and report."""

from collections.abc import Mapping
from typing import Any

COST_COLUMNS = ("stage", "answers", "tokens in", "tokens out", "cost")


def list_cost_rows(manifest: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return a row, with columns `COST_COLUMNS`, for each stage that asked a model, and their sum if there are several."""
    by_stage = {name: stage.get("facts", {}).get("llm", {}) for name, stage in manifest.get("stages", {}).items()}
    bills = {name: each["in_all"] for name, each in by_stage.items() if each}
    rows = [_row(name, [bill]) for name, bill in bills.items()]
    return [*rows, _row("all", list(bills.values()))] if len(rows) > 1 else rows


def _row(name: str, bills: list[Mapping[str, Any]]) -> tuple[str, str, str, str, str]:
    counts = (sum(bill[each] for bill in bills) for each in ("answers", "prompt_tokens", "completion_tokens"))
    costs = [bill["cost"] for bill in bills]
    answers, into, out = (f"{count:,}" for count in counts)
    return name, answers, into, out, "price unknown" if None in costs else format_dollars(float(sum(costs)))


def format_dollars(cost: float) -> str:
    """Return USD, with enough digits for small amounts."""
    return f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.4f}"
