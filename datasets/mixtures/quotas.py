"""How many rows each source of a mixture gives: counts, ratios met to the row, and a share of the whole.

Ratios are divided by largest remainder: every source gets the whole part of its quota, and the rows that are left go
to the largest fractions, equal ones by name. So no source is a row or more off its quota, and the order in which
sources are listed plays no part. Arithmetic is exact (fractions of the decimals as written).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from pairwright.datasets.errors import UsageError


@dataclass(frozen=True, slots=True)
class SourceShare:
    """What is asked of a source: a count, a ratio to the other ratios, or (with neither) all its rows."""

    name: str
    count: int | None = None
    ratio: float | None = None


def largest_remainder(total: int, parts: Mapping[str, Fraction]) -> dict[str, int]:
    """Divide ``total`` by ``parts``.

    Args:
        total: at least 0.
        parts: none negative, one positive at least.

    Returns:
        A number a name; they add up to ``total``, and each is less than 1 from its quota.
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
    """Return how many rows each source gives.

    Args:
        wanted: what is asked of each source.
        there: distinct rows that each has.
        rows: of the whole mixture; what counts leave of it is divided by the ratios. None: as many as the ratios
            allow when no row stands twice, which the scarcest source decides.
        keep: share of the mixture that is kept, of every source alike (0 to 1, above 0).

    Raises:
        UsageError: when a source has fewer rows than asked of it, naming all such sources, or ``rows`` is too small.
    """
    asked = {each.name: there[each.name] if each.count is None else each.count for each in wanted}
    ratios = {each.name: _to_fraction(each.ratio) for each in wanted if each.ratio is not None}
    if ratios:
        fixed = sum(number for name, number in asked.items() if name not in ratios)
        if rows is not None and rows < fixed:
            raise UsageError(f"rows: {rows:,} is less than the {fixed:,} rows of the sources without a ratio.")
        asked |= largest_remainder(_max_total(ratios, there) if rows is None else rows - fixed, ratios)
    short = [
        f"source {name}: {number:,} rows asked, {there[name]:,} there (broken ones and duplicates do not count). Ask for fewer."
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
    """Return a number of rows by these ratios that no source is too small for: no quota is above what is there."""
    whole = sum(ratios.values())
    return min(int(there[name] * whole / ratio) for name, ratio in ratios.items())


def _to_fraction(number: float) -> Fraction:
    return Fraction(Decimal(repr(number)))
