"""AnyRes (003, chapter 4): an image in tiles of the vision tower's size, besides the whole image made small.

The grid is chosen for the image's shape, the image is fitted into it without changing its proportions and padded, and
cut. The tiles' features are put together into one large map, read row by row, behind those of the whole image, which is
padded too (section 4.3, "Global context"). So an image of r x c tiles takes (1 + r * c) times the tokens of one.

Not covered: what the later releases of LLaVA-NeXT do besides, cutting the padding's features away and marking the ends
of rows. The dissertation does not describe it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from pairwright.datasets.errors import UsageError


@dataclass(frozen=True, slots=True, order=True)
class Grid:
    """Rows and columns of tiles."""

    rows: int
    columns: int

    @property
    def tiles(self) -> int:
        """How many tiles it has; the whole image is not counted."""
        return self.rows * self.columns


GRIDS = (Grid(2, 2), Grid(1, 2), Grid(1, 3), Grid(1, 4), Grid(2, 1), Grid(3, 1), Grid(4, 1))


def choose_grid(width: int, height: int, size: int, grids: Sequence[Grid] = GRIDS) -> Grid:
    """Return the grid that shows most of an image's pixels; of those that show as many, the one of fewest tiles.

    Of those that have as many tiles, it is the one that has the least padding.

    Args:
        width: of the image in pixels.
        height: of the image in pixels.
        size: of a tile's side in pixels.
        grids: to choose from; of equals the first is taken.

    Raises:
        UsageError: when there is no grid, or the image has no pixels.
    """
    if not grids or min(width, height, size) < 1:
        raise UsageError(f"no grid for an image of {width}x{height} in tiles of {size} pixels")

    def worth(grid: Grid) -> tuple[int, int, int]:
        shown_width, shown_height = fit_size(width, height, grid.columns * size, grid.rows * size)
        covered = shown_width * shown_height
        return min(covered, width * height), -grid.tiles, covered  # making it larger shows nothing more

    return max(grids, key=worth)


def fit_size(width: int, height: int, most_width: int, most_height: int) -> tuple[int, int]:
    """Return the width and height in pixels of an image made as large as fits, in its proportions."""
    if most_width * height <= most_height * width:
        return most_width, max(1, min(most_height, round(height * most_width / width)))
    return max(1, min(most_width, round(width * most_height / height))), most_height


def split_image(image: Tensor, size: int, grid: Grid | None = None) -> Tensor:
    """Cut an image into the whole and its tiles.

    Args:
        image: float (3, h, w), normalised, so that the padding, 0, is the mean colour.
        size: of a tile's side in pixels.
        grid: `choose_grid`'s by default.

    Returns:
        Float (1 + tiles, 3, size, size): the whole image first, then the tiles row by row.
    """
    grid = grid or choose_grid(image.shape[2], image.shape[1], size)
    large = _fit(image, grid.rows * size, grid.columns * size)
    tiles = large.reshape(3, grid.rows, size, grid.columns, size).permute(1, 3, 0, 2, 4).flatten(0, 1)
    return torch.cat([_fit(image, size, size)[None], tiles])


def merge_features(features: Tensor, grid: Grid) -> Tensor:
    """Put the features of `split`'s parts in the order in which they are read.

    Args:
        features: float (1 + tiles, p, d); p patches, a square, row by row.
        grid: of the tiles.

    Returns:
        Float ((1 + tiles) * p, d): the whole image's, then the large map's row by row, across the tiles.

    Raises:
        UsageError: when the parts are not those of the grid, or p is no square.
    """
    parts, patches, dim = features.shape
    side = round(patches**0.5)
    if parts != 1 + grid.tiles or side * side != patches:
        raise UsageError(f"{parts} parts of {patches} patches are not an image and {grid.rows}x{grid.columns} tiles")
    large = features[1:].reshape(grid.rows, grid.columns, side, side, dim).permute(0, 2, 1, 3, 4)
    return torch.cat([features[0], large.reshape(-1, dim)])


def token_count(width: int, height: int, size: int, patches: int, grids: Sequence[Grid] = GRIDS) -> int:
    """Return how many tokens an image takes whose tiles of ``size`` pixels have ``patches`` each."""
    return (1 + choose_grid(width, height, size, grids).tiles) * patches


def _fit(image: Tensor, height: int, width: int) -> Tensor:
    """Resize in proportion to fit, and pad to (3, height, width), the image in the middle."""
    shown_width, shown_height = fit_size(image.shape[2], image.shape[1], width, height)
    small = functional.interpolate(image[None], (shown_height, shown_width), mode="bicubic", antialias=True)[0]
    left, top = (width - shown_width) // 2, (height - shown_height) // 2
    return functional.pad(small, (left, width - shown_width - left, top, height - shown_height - top))
