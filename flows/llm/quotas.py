"""``counts`` of conversations that a model writes: which pairs are asked for which type.

Some answers are rejected, so a pass over the pairs may keep fewer rows than requested. Then as many further pairs are
added, in the same hash order, and the pass is repeated: earlier answers come from the cache and are not billed again.
Passes end when the counts are reached, when no pairs are left, when further pairs gave nothing, or after `MAX_PASSES`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pairwright.generators.balance import BalanceResult, TypeBalance
from pairwright.generators.conversations.type_ratios import assign_types
from pairwright.generators.counts import AnnotationCounts

MAX_PASSES = 8  # where one in three is rejected, eight leave one in six thousand


def restrict_to_counts(options: Mapping[str, Any], keys: Iterable[str], seed: int) -> dict[str, Any]:
    """Return the options of a generator with ``only`` (type to the keys it is asked for) in place of ``counts``.

    Args:
        options: options of an LLM generator, with or without ``counts``.
        keys: keys of all pairs; not read without ``counts``.
        seed: seed of the run.
    """
    counts = options.get("counts")
    rest = {name: value for name, value in options.items() if name != "counts"}
    return {**rest, "only": assign_types(keys, counts, seed)} if counts else rest


@dataclass
class QuotaPasses:
    """The passes over all pairs that a generator needs to reach its ``counts``; one pass without them.

    Args:
        options: options of an LLM generator, with or without ``counts``.
        keys: returns the keys of all pairs; called before each pass.
        pairs: number of all pairs.
        seed: seed of the run.

    Attributes:
        counts: annotations of the latest pass, set by its caller.
    """

    options: Mapping[str, Any]
    keys: Callable[[], Iterable[str]]
    pairs: int
    seed: int
    counts: AnnotationCounts = field(default_factory=AnnotationCounts)
    _requested: dict[str, int] = field(init=False)
    _kept: dict[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Start with as many pairs as conversations are requested."""
        self._requested = dict(self._quota)

    @property
    def _quota(self) -> Mapping[str, int]:
        return self.options.get("counts") or {}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the options of the generator for each pass; `counts` must be set before the next one."""
        for number in range(MAX_PASSES):
            if number and not self._add_pairs():
                return
            yield restrict_to_counts({**self.options, "counts": self._requested}, self.keys(), self.seed)

    def _add_pairs(self) -> bool:
        """Request further pairs for the types that are missing rows and gained some; return whether there are any."""
        missing = self.missing()
        grown = {kind for kind in missing if self.counts.kept[kind] > self._kept.get(kind, 0)}
        more = {kind: min(self.pairs, self._requested[kind] + missing[kind]) for kind in sorted(grown)}
        more = {kind: count for kind, count in more.items() if count > self._requested[kind]}
        self._kept = {kind: self.counts.kept[kind] for kind in self._requested}
        self._requested |= more
        return bool(more)

    def missing(self) -> dict[str, int]:
        """Return the number of missing rows of each type that the latest pass did not fill."""
        kept = self.counts.kept
        return {kind: wanted - kept[kind] for kind, wanted in self._quota.items() if kept[kind] < wanted}

    def missing_text(self) -> str:
        """Return the missing rows as "2 detail, 1 reasoning"; empty if none are missing."""
        return ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.missing().items()))

    def missing_message(self) -> str:
        """Return a message about the missing rows; empty if none are missing."""
        missing = self.missing_text()
        return f"Below the requested counts: {missing} missing. Too few answers passed the checks." if missing else ""

    def verdict(self) -> BalanceResult | None:
        """Return for each type of ``counts`` the pairs asked (``available``) and rows kept; None without ``counts``."""
        types = {}
        for kind, wanted in self._quota.items():
            kept, rejected = self.counts.kept[kind], self.counts.rejected[kind]
            types[kind] = TypeBalance(wanted, kept + rejected.total() - rejected["over_quota"], kept, None, 0)
        return BalanceResult({}, types) if types else None
