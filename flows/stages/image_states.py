"""States and sizes of the image files that the pairs of a build name.

Each file is looked up, so the workers do it where there are many pairs. Nothing of it is kept from run to run, since files
may change. Only shares of a build (``--part``) keep what they find: each looks at its share of the images, and the run that
completes the build (``--finish``) looks at all of them again.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pairwright.datasets.images.loading import MEMBER_SEPARATOR, is_url, read_stored_size
from pairwright.datasets.remote.store_path import StoreListings
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.receipts import Counts, JobResult, json_hash
from pairwright.flows.state.selected_pairs import PairSelection, selected_images

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun

_MAX_LOCAL_PAIRS = 50_000  # whose image files are looked up in less time than processes take to start
_GROUPS = 64  # of parts: enough for the workers, and few listings of a store
_LARGEST = 2**32 - 1  # bytes of an image that are counted


class PartImages(NamedTuple):
    """The images of the selected pairs of a part.

    Attributes:
        part: name of the part.
        state: of the image files: size and time of change.
        sizes: bytes of each image, about, uint32 (pairs,); 0 for a missing one, a URL, and where none are looked for.
    """

    part: str
    state: str
    sizes: npt.NDArray[np.uint32]


async def survey_images(run: "StageRun", selection: PairSelection, *, with_sizes: bool = False) -> list[PartImages]:
    """Return state and sizes of the images of each part, in order; the workers look them up where there are many.

    Args:
        run: of the stage.
        selection: the pairs whose images are looked up.
        with_sizes: look for the sizes of the images too.

    Raises:
        OtherPartsLeft: in a share of a build, when others have not looked yet.
    """
    parts, survey = run.parts, partial(survey_parts, root=run.root, selection=selection, with_sizes=with_sizes)
    if run.selected_pairs <= _MAX_LOCAL_PAIRS:
        return survey(parts)
    groups = [parts[start::_GROUPS] for start in range(min(_GROUPS, len(parts)))]
    if run.engine.selection.share is None:
        found = await run.engine.call_all(survey, groups)
    else:
        jobs = [
            run.job(_survey_group, group, selection, with_sizes, part=f"images-{number:02d}")
            for number, group in enumerate(groups)
        ]
        receipts = await run.engine.run_group(run.name, jobs)
        found = [[_decode(*row) for row in receipt.handoff["images"]] for receipt in receipts]
    by_part = {images.part: images for group in found for images in group}
    return [by_part[part] for part in parts]


async def image_states(run: "StageRun", selection: PairSelection, *, seen: bool) -> dict[str, str]:
    """Return the state of the images of each part, by which a changed one is noticed; empty where they are not ``seen``."""
    if not seen:
        return dict.fromkeys(run.parts, "")
    return {images.part: images.state for images in await survey_images(run, selection)}


def survey_parts(
    parts: Sequence[str], root: Path, selection: PairSelection, *, with_sizes: bool = False
) -> list[PartImages]:
    """Return state and sizes of the images of some parts; arguments as of `survey_images`."""
    listings, found = StoreListings(), []
    for part in parts:
        images = selected_images(root, part, selection)
        sizes = [image_bytes(image, listings) for image in images] if with_sizes else [0] * len(images)
        found.append(PartImages(part, _state(images, listings), np.array(sizes, np.uint32)))
    return found


def image_bytes(image: str, listings: StoreListings | None = None) -> int:
    """Return the approximate bytes of an image, by its locator; 0 for none, a missing one or a URL."""
    return 0 if not image or is_url(image) else min(read_stored_size(image, listings), _LARGEST)


def _state(images: pl.Series, listings: StoreListings) -> str:
    files = images.str.replace(f"(?s){MEMBER_SEPARATOR}.*$", "${1}").unique(maintain_order=True)
    return json_hash(file_state([path for file in files if file and (path := listings.path(file)).is_file()]))


def _survey_group(root: Path, parts: Sequence[str], selection: PairSelection, with_sizes: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    found = survey_parts(parts, root, selection, with_sizes=with_sizes)
    rows = [[images.part, images.state, images.sizes.tolist()] for images in found]
    return JobResult([], Counts("pair"), handoff={"images": rows})


def _decode(part: str, state: str, sizes: Sequence[int]) -> PartImages:
    return PartImages(part, state, np.array(sizes, np.uint32))
