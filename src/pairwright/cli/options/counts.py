"""``--counts`` of ``generate conversations``: how many of each type."""

from collections.abc import Sequence

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known


def parse_counts(written: str, types: Sequence[str]) -> dict[str, int]:
    """Return ``conversation=58,brief=23`` as the count of each type.

    Args:
        written: as the user gave it.
        types: that can have one.

    Raises:
        UsageError: when it is not written so.
    """
    counts: dict[str, int] = {}
    for item in filter(None, (item.strip() for item in written.split(","))):
        kind, _, number = (part.strip() for part in item.partition("="))
        require_known("--counts: no such type:", [kind], types)
        if not number.isdecimal() or kind in counts:
            raise UsageError(f"--counts {written!r}: write TYPE=N,... such as {types[0]}=1000, each type once.")
        counts[kind] = int(number)
    return counts
