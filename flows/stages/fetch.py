"""Stage ``fetch``: the images of chosen pairs that are URLs are downloaded; pairs whose image did not come are rejected.

Downloads stand in ``downloads/``, which outlives a kill and a changed config: what was fetched is not asked for again.
"""

from pathlib import Path

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import is_url, split_locator
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.readers.pairs import ReadBatch
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.flows.config.sections import FetchSection
from pairwright.flows.state.layout import DOWNLOADS, fetched_images_path, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.flows.state.selection import PairSelection, selected_pairs
from pairwright.indexes.fetching.fetch import fetch_images
from pairwright.indexes.fetching.options import FetchOptions
from pairwright.indexes.retrieval.exclusion import read_exclusions


def fetch_chosen(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    parts: list[str],
    section: FetchSection,
    choice: PairSelection,
    exclude: tuple[str, ...],
    home: Path | None = None,
) -> JobResult:
    """Fetch what the chosen pairs name by URL. The unit is a pair; one with a local image is kept as it is.

    Pairs that are added to those of the build directory ``home`` enter its table of images: it names both.

    Raises:
        InputError: when fewer than the asked share of the URLs, or no pair at all, has its image afterwards.
    """
    local: list[str] = []
    batches: list[ReadBatch] = []
    for part in parts:
        pairs = selected_pairs(root, part, choice)
        local += [pair.key for pair in pairs if not is_url(pair.image)]
        batches.append(ReadBatch([pair for pair in pairs if is_url(pair.image)], []))
    with report_named_steps("images") as follow:
        told = fetch_images(batches, root / DOWNLOADS, _options(section), follow, read_exclusions(exclude))
    none = not (told.fetched or local or home)
    if told.fetched < section.min_success * told.pairs or none:
        raise InputError(
            f"{told.fetched} of {told.pairs} images came ({_reasons_line(told.rejected)})",
            where=str(root / DOWNLOADS / "rejected.parquet"),
            fix="Start again to go on fetching; or change `min_success`, `retries` or `timeout` under fetch",
        )
    copies = PAIRS.read_frame(root / DOWNLOADS / "fetched.parquet").select(
        "key", (pl.lit(f"{DOWNLOADS}/") + pl.col("image")).alias("image"), "width", "height"
    )
    table = pl.concat([copies, pl.DataFrame({"key": local}, schema={"key": pl.String})], how="diagonal").sort("key")
    before = [pl.read_parquet(fetched_images_path(home))] if home else []
    with replace_atomically(fetched_images_path(root)) as temporary:
        pl.concat([*before, table], how="diagonal").sort("key").write_parquet(temporary)
    rejected = rejected_path(root, "fetch", "all")
    REJECTS.write(REJECTS.read(root / DOWNLOADS / "rejected.parquet"), rejected)
    tars = sorted({split_locator(image)[0] for image in copies["image"]})
    counts = Counts("pair", table.height + sum(told.rejected.values()), table.height, told.rejected)
    facts = {"urls": told.urls, "asked": told.asked, "reused": told.reused, "bytes": told.bytes}
    return JobResult([fetched_images_path(root), rejected, *(root / tar for tar in tars)], counts, facts)


def _options(section: FetchSection) -> FetchOptions:
    return FetchOptions(**section.model_dump(exclude={"min_success"}))


def _reasons_line(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in reasons.items()) or "none was asked for"
