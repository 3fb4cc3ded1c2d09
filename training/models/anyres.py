"""AnyRes (Liu, chapter 4): an image as tiles of the vision tower's size, plus the whole image downscaled.

The grid is chosen by the image's shape; the image is resized into it in proportion, padded, and cut. The tiles' features
form one large map, read row by row, after those of the whole image, which is padded too (section 4.3, "Global
context"). An image of r x c tiles takes (1 + r * c) times the tokens of one.

Not covered: removing the features of padding and marking row ends, as later releases of LLaVA-NeXT do; the dissertation
does not describe it.
"""

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
        """Number of tiles, without the whole image."""
        return self.rows * self.columns


GRIDS = (Grid(2, 2), Grid(1, 2), Grid(1, 3), Grid(1, 4), Grid(2, 1), Grid(3, 1), Grid(4, 1))


def choose_grid(width: int, height: int, size: int) -> Grid:
    """Return the grid of `GRIDS` that shows most of an image's pixels; of equals the one with fewest tiles, least padding, or the first.

    ``width`` and ``height`` are those of the image, ``size`` the tile side, all in pixels.
    """
    if min(width, height, size) < 1:
        raise UsageError(f"no grid for an image of {width}x{height} pixels and tiles of {size} pixels")

    def worth(grid: Grid) -> tuple[int, int, int]:
        shown_width, shown_height = fit_size(width, height, grid.columns * size, grid.rows * size)
        covered = shown_width * shown_height
        return min(covered, width * height), -grid.tiles, covered  # upscaling shows no more pixels

    return max(GRIDS, key=worth)


def fit_size(width: int, height: int, most_width: int, most_height: int) -> tuple[int, int]:
    """Return the largest width and height in pixels within the limits that keep the proportions."""
    if most_width * height <= most_height * width:
        return most_width, max(1, min(most_height, round(height * most_width / width)))
    return max(1, min(most_width, round(width * most_height / height))), most_height


def split_image(image: Tensor, size: int, grid: Grid | None = None) -> Tensor:
    """Return the whole image and its tiles row by row, float (1 + tiles, 3, size, size).

    The image is float (3, h, w), normalized, so that the padding, 0, is the mean color; ``size`` is the tile side in
    pixels, ``grid`` by default that of `choose_grid`.
    """
    grid = grid or choose_grid(image.shape[2], image.shape[1], size)
    large = _fit(image, grid.rows * size, grid.columns * size)
    tiles = large.reshape(3, grid.rows, size, grid.columns, size).permute(1, 3, 0, 2, 4).flatten(0, 1)
    return torch.cat([_fit(image, size, size)[None], tiles])


def merge_features(features: Tensor, grid: Grid) -> Tensor:
    """Return the features of the parts of `split_image` in reading order.

    Float (1 + tiles, p, d), p patches of a square row by row, become float ((1 + tiles) * p, d): those of the whole
    image, then the large map row by row, across the tiles.
    """
    parts, patches, dim = features.shape
    side = round(patches**0.5)
    if parts != 1 + grid.tiles or side * side != patches:
        raise UsageError(
            f"{parts} parts of {patches} patches do not match an image and {grid.rows}x{grid.columns} tiles"
        )
    large = features[1:].reshape(grid.rows, grid.columns, side, side, dim).permute(0, 2, 1, 3, 4)
    return torch.cat([features[0], large.reshape(-1, dim)])


def _fit(image: Tensor, height: int, width: int) -> Tensor:
    """Resize in proportion and pad to (3, height, width), centered."""
    shown_width, shown_height = fit_size(image.shape[2], image.shape[1], width, height)
    small = functional.interpolate(image[None], (shown_height, shown_width), mode="bicubic", antialias=True)[0]
    left, top = (width - shown_width) // 2, (height - shown_height) // 2
    return functional.pad(small, (left, width - shown_width - left, top, height - shown_height - top))
