"""A layout of candidate rows: JSON Lines with a true and a false statement about an image."""

from collections.abc import Iterator

from pairwright.filters.candidates.benchmark_readers import mapping_of, text_of
from pairwright.filters.candidates.layouts import ACCURACY, Layout, each_row
from pairwright.filters.candidates.source_rows import LocatedRow, Source, SourceRow


def rows(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield the candidate row of a line."""
    fields = mapping_of(row)
    image, caption, negative = (text_of(fields, [name], row.place) for name in ("picture", "yes", "no"))
    yield row.place, {**fields, "id": row.index, "image": image, "caption": caption, "negative": negative}


def is_yes_no(source: Source) -> bool:
    """Return whether a file has this layout."""
    return {"picture", "yes", "no"} <= source.fields


LAYOUT = Layout("yes-no", "true and false statements about images", each_row(rows), is_yes_no, scores=ACCURACY)
