"""``counts`` of conversations that a model writes: the pairs to ask about are counted out before the first request.

Some answers are rejected, so a pass over the pairs may give fewer than are asked for. Then as many further pairs are
asked about, in the same order of their hashes, and the pass is made again: what was answered comes from the cache and
costs nothing, and never more is asked than is missing. It ends when the counts are met, when there is no further pair,
when further pairs have given nothing, or after `MAX_PASSES`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pairwright.generators.balance import BalanceResult, TypeBalance
from pairwright.generators.conversations.type_ratios import assign_types
from pairwright.generators.counts import AnnotationCounts

MAX_PASSES = 8  # where one in three is rejected, eight leave one in six thousand


def restrict_to_counts(options: Mapping[str, Any], keys: Iterable[str], seed: int) -> dict[str, Any]:
    """Return a maker's options with ``only`` (type to the keys that are asked for it) in place of ``counts``.

    Args:
        options: of a maker that asks a model; with ``counts`` or without.
        keys: of all pairs; not read when there are no counts.
        seed: of the run.
    """
    counts = options.get("counts")
    rest = {name: value for name, value in options.items() if name != "counts"}
    return {**rest, "only": assign_types(keys, counts, seed)} if counts else rest


@dataclass
class QuotaPasses:
    """How many pairs are asked about for each type, pass by pass.

    Args:
        options: of a maker that asks a model; with ``counts`` or without.
        keys: gives the keys of all pairs, as often as asked.
        seed: of the run.
    """

    options: Mapping[str, Any]
    keys: Callable[[], Iterable[str]]
    seed: int
    _ask: dict[str, int] = field(init=False)
    _kept: dict[str, int] = field(init=False, default_factory=dict)
    _passes: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        """Begin with as many pairs as conversations are asked for."""
        self._ask = dict(self.options.get("counts") or {})

    def now(self) -> dict[str, Any]:
        """Return the maker's options for the next pass."""
        return restrict_to_counts({**self.options, "counts": self._ask}, self.keys(), self.seed)

    def missing(self, tally: AnnotationCounts) -> dict[str, int]:
        """Return for each type that a pass has not filled how many are missing."""
        counts: Mapping[str, int] = self.options.get("counts") or {}
        return {kind: asked - tally.kept[kind] for kind, asked in counts.items() if tally.kept[kind] < asked}

    def goes_on(self, tally: AnnotationCounts, pairs: int) -> bool:
        """Return whether another pass is to be made, which then asks about further pairs.

        Args:
            tally: of the pass that has ended.
            pairs: how many there are.
        """
        missing = self.missing(tally)
        grown = {kind for kind in missing if tally.kept[kind] > self._kept.get(kind, 0)}
        further = {kind: min(pairs, self._ask[kind] + missing[kind]) for kind in sorted(grown)}
        further = {kind: count for kind, count in further.items() if count > self._ask[kind]}
        if not further or self._passes >= MAX_PASSES:
            return False
        self._kept = {kind: tally.kept[kind] for kind in self._ask}
        self._ask |= further
        self._passes += 1
        return True


def missing_message(missing: Mapping[str, int]) -> str:
    """Return a line that says what counts were not met by how many; empty when all were."""
    short = ", ".join(f"{count:,} {kind}" for kind, count in sorted(missing.items()))
    return (
        f"Fewer than asked for: {short} missing; too few pairs gave an answer that passes the checks." if short else ""
    )


def quota_verdict(options: Mapping[str, Any], tally: AnnotationCounts) -> BalanceResult:
    """Return, for each type of ``counts``, how many pairs were asked about (``available``) and how many rows are given."""
    counts: Mapping[str, int] = options.get("counts") or {}
    types = {}
    for kind, asked in counts.items():
        over = tally.rejected[kind]["over_quota"]
        available = tally.kept[kind] + tally.rejected[kind].total() - over
        types[kind] = TypeBalance(asked, available, tally.kept[kind], None, 0)
    return BalanceResult({}, types)
