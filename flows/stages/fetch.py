"""Stage ``fetch``: downloads the images that selected pairs name by URL; pairs whose download failed are rejected.

The downloads in ``downloads/`` survive a kill and a changed config: a finished download is never repeated.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import is_url, split_locator
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.readers.pairs import ReadBatch
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.flows.state.inputs import named_state
from pairwright.flows.state.layout import DOWNLOADS, fetched_images_path, fetched_part_path, pairs_path, rejected_path
from pairwright.flows.state.receipts import Counts, Job, JobResult
from pairwright.flows.state.selected_pairs import PairSelection, selected_pairs
from pairwright.indexes.fetching.fetch import fetch_images
from pairwright.indexes.fetching.options import FetchOptions
from pairwright.indexes.retrieval.exclusion import read_exclusions

if TYPE_CHECKING:
    from pairwright.flows.config.sections import FetchSection
    from pairwright.flows.stages.definition import StageRun


def fetch_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``fetch``."""
    retrieve = run.config.retrieve
    selection: PairSelection = "retrieved" if retrieve else "all"
    exclude = (retrieve.exclude, retrieve.exclude_images) if retrieve else ((), ())
    args = (run.parts, run.config.fetch, selection, *exclude, *([run.base.root] if run.base else []))
    return [run.job(fetch_selected, *args, state=f"{named_state([*exclude[0], *exclude[1]])} {run.base_state}")]


def fetch_selected(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    parts: list[str],
    section: "FetchSection",
    selection: PairSelection,
    exclude: tuple[str, ...],
    exclude_images: tuple[str, ...],
    home: Path | None = None,
) -> JobResult:
    """Fetch the images that the selected pairs name by URL; the unit is a pair. Local images stay as they are.

    The table of images names those of the build directory ``home`` too, if there is one.

    Raises:
        InputError: when fewer than ``min_success`` of the images arrived, or no pair has an image.
    """
    local: list[str] = []

    def batches() -> Iterator[ReadBatch]:  # the records of one part are in memory at a time
        for part in parts:
            pairs = selected_pairs(root, part, selection)
            local.extend(pair.key for pair in pairs if not is_url(pair.image))
            yield ReadBatch([pair for pair in pairs if is_url(pair.image)], [])

    with report_named_steps("images") as follow:
        exclusion = read_exclusions(exclude, images=exclude_images)
        result = fetch_images(batches(), root / DOWNLOADS, _options(section), follow, exclusion)
    no_image = not (result.fetched or local or home)
    if result.fetched < section.min_success * result.pairs or no_image:
        raise InputError(
            f"{result.fetched} of {result.pairs} images arrived ({_reasons_line(result.rejected)})",
            where=str(root / DOWNLOADS / "rejected.parquet"),
            fix="Start the build again to continue, or change `min_success`, `retries` or `timeout` under fetch",
        )
    copies = PAIRS.read_frame(root / DOWNLOADS / "fetched.parquet").select(
        "key", (pl.lit(f"{DOWNLOADS}/") + pl.col("image")).alias("image"), "width", "height"
    )
    table = pl.concat([copies, pl.DataFrame({"key": local}, schema={"key": pl.String})], how="diagonal").sort("key")
    before = [pl.read_parquet(fetched_images_path(home))] if home else []
    with replace_atomically(fetched_images_path(root)) as temporary:
        pl.concat([*before, table], how="diagonal").sort("key").write_parquet(temporary)
    of_parts = [fetched_part_path(root, part) for part in parts]
    for part, path in zip(parts, of_parts, strict=True):
        own = pl.read_parquet(pairs_path(root, part), columns=["key"])
        with replace_atomically(path) as temporary:
            own.join(table, on="key", maintain_order="left").write_parquet(temporary)
    rejected = rejected_path(root, "fetch", "all")
    REJECTS.write(REJECTS.read(root / DOWNLOADS / "rejected.parquet"), rejected)
    tars = sorted({split_locator(image)[0] for image in copies["image"]})
    counts = Counts("pair", table.height + sum(result.rejected.values()), table.height, result.rejected)
    facts = {"urls": result.urls, "asked": result.asked, "reused": result.reused, "bytes": result.bytes}
    return JobResult([fetched_images_path(root), *of_parts, rejected, *(root / tar for tar in tars)], counts, facts)


def _options(section: "FetchSection") -> FetchOptions:
    return FetchOptions(**section.model_dump(exclude={"min_success"}))


def _reasons_line(reasons: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in reasons.items()) or "no pair names a URL"
