"""``--exclude``: evaluation data that must not leak into what is retrieved or fetched."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pairwright.indexes.retrieval.exclusion import Exclusion, MatchField


def load_exclusion(paths: Sequence[str], by: "Sequence[MatchField]" = ()) -> "Exclusion | None":
    """Return what the inputs hold together; None without any.

    Args:
        paths: pairs, folders of images, or ``.txt`` lists.
        by: what pairs are known by; the usual when empty.
    """
    from pairwright.cli.output.console import note
    from pairwright.datasets.suggestions import require_known
    from pairwright.indexes.retrieval.exclusion import DEFAULT_MATCH_FIELDS, MATCH_FIELDS, read_exclusions

    require_known("cannot exclude by", by, MATCH_FIELDS)
    if not paths:
        return None

    whole = read_exclusions(paths, by or DEFAULT_MATCH_FIELDS)
    assert whole is not None
    counts = ", ".join(f"{count:,} by {name}" for name, count in whole.sizes.items())
    skipped = f"; passed over {told}" if (told := whole.skipped.describe()) else ""
    unread = f"; {whole.unread:,} images could not be read and are not compared" if whole.unread else ""
    note(f"Leaving out what {' and '.join(paths)} hold{'s' * (len(paths) == 1)}: {counts}{skipped}{unread}")
    return whole
