"""``counts`` of conversations that a model writes: the pairs to ask about are counted out before the first request."""

from collections.abc import Iterable, Mapping
from typing import Any

from pairwright.generators.balance import Given, Verdict
from pairwright.generators.tally import Tally
from pairwright.generators.type_mix import counted_out


def counted(options: Mapping[str, Any], keys: Iterable[str], seed: int) -> dict[str, Any]:
    """Return a maker's options with ``only`` (type to the keys that are asked for it) in place of ``counts``.

    Args:
        options: of a maker that asks a model; with ``counts`` or without.
        keys: of all pairs; not read when there are no counts.
        seed: of the run.
    """
    counts = options.get("counts")
    rest = {name: value for name, value in options.items() if name != "counts"}
    return {**rest, "only": counted_out(keys, counts, seed)} if counts else rest


def asked_and_given(options: Mapping[str, Any], tally: Tally) -> Verdict:
    """Return, for each type of ``counts``, how many pairs were asked about (``available``) and how many rows are given."""
    counts: Mapping[str, int] = options.get("counts") or {}
    types = {}
    for kind, asked in counts.items():
        over = tally.rejected[kind]["over_quota"]
        available = tally.kept[kind] + tally.rejected[kind].total() - over
        types[kind] = Given(asked, available, tally.kept[kind], None, 0)
    return Verdict({}, types)
