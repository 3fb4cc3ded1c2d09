"""Numbers of rows per source of a mixture, from counts, exact ratios, and a share of the whole.

Ratios use the largest remainder method: every source gets the integer part of its quota, and the remaining rows go to the
largest fractions, ties by name. So no source is a full row off its quota, and the order of sources does not matter.
Arithmetic is exact (fractions of the decimals as written).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from pairwright.datasets.errors import UsageError


@dataclass(frozen=True, slots=True)
class SourceShare:
    """The share of a source: a count, a ratio to the other ratios, or (with neither) all its rows."""

    name: str
    count: int | None = None
    ratio: float | None = None


def largest_remainder(total: int, parts: Mapping[str, Fraction]) -> dict[str, int]:
    """Divide ``total`` by ``parts``.

    Args:
        total: at least 0.
        parts: non-negative, at least one positive.

    Returns:
        A number per name; they sum to ``total``, and each differs from its quota by less than 1.
    """
    whole = sum(parts.values())
    quotas = {name: total * part / whole for name, part in parts.items()}
    given = {name: int(quota) for name, quota in quotas.items()}
    by_rest = sorted(quotas, key=lambda name: (given[name] - quotas[name], name))
    for name in by_rest[: total - sum(given.values())]:
        given[name] += 1
    return given


def allocate_rows(
    wanted: Sequence[SourceShare], there: Mapping[str, int], *, rows: int | None = None, keep: float = 1.0
) -> dict[str, int]:
    """Return the number of rows of each source.

    Args:
        wanted: share of each source.
        there: number of distinct rows of each source.
        rows: of the whole mixture; the rest after counts is divided by the ratios. None means as many as the ratios allow
            without repetition, limited by the scarcest source.
        keep: share of every source that is kept (0 to 1, above 0).

    Raises:
        UsageError: if sources have fewer rows than their share, naming all of them, or ``rows`` is too small.
    """
    asked = {each.name: there[each.name] if each.count is None else each.count for each in wanted}
    ratios = {each.name: _to_fraction(each.ratio) for each in wanted if each.ratio is not None}
    if ratios:
        fixed = sum(number for name, number in asked.items() if name not in ratios)
        if rows is not None and rows < fixed:
            raise UsageError(f"rows: {rows:,} is less than the {fixed:,} rows of the sources without a ratio.")
        asked |= largest_remainder(_max_total(ratios, there) if rows is None else rows - fixed, ratios)
    short = [
        f"source {name}: {number:,} rows requested, {there[name]:,} available (without broken ones and duplicates). Request fewer."
        for name, number in asked.items()
        if number > there[name]
    ]
    if short:
        raise UsageError("\n".join(short))
    if keep == 1 or not any(asked.values()):
        return asked
    kept = int(_to_fraction(keep) * sum(asked.values()) + Fraction(1, 2))
    return largest_remainder(kept, {name: Fraction(number) for name, number in asked.items()})


def _max_total(ratios: Mapping[str, Fraction], there: Mapping[str, int]) -> int:
    """Return the largest number of rows by these ratios for which no source is too small."""
    whole = sum(ratios.values())
    return min(int(there[name] * whole / ratio) for name, ratio in ratios.items())


def _to_fraction(number: float) -> Fraction:
    return Fraction(Decimal(repr(number)))
