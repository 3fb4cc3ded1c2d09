"""AnyRes: grids, tiles, and the order of features."""

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from hypothesis import given  # noqa: E402 - after the skips
from hypothesis import strategies as st  # noqa: E402

from pairwright.datasets.errors import UsageError  # noqa: E402
from pairwright.training.models.anyres import (  # noqa: E402
    GRIDS,
    Grid,
    choose_grid,
    fit_size,
    merge_features,
    split_image,
)

sides = st.integers(1, 3000)


def test_the_grids_are_the_paper_s() -> None:
    """003, section 4.7: {2x2, 1x{2,3,4}, {2,3,4}x1}, up to 672x672, 336x1344 and 1344x336 pixels."""
    assert {(grid.rows, grid.columns) for grid in GRIDS} == {(2, 2), (1, 2), (1, 3), (1, 4), (2, 1), (3, 1), (4, 1)}
    assert {(336 * grid.columns, 336 * grid.rows) for grid in GRIDS} >= {(672, 672), (336, 1344), (1344, 336)}


@pytest.mark.parametrize(
    ("width", "height", "grid"),
    [
        (672, 672, (2, 2)),
        (1344, 336, (1, 4)),
        (336, 1344, (4, 1)),
        (640, 480, (2, 2)),
        (1000, 400, (1, 3)),
        (200, 100, (1, 2)),  # small: shown whole by several grids, and with least padding by this
        (100, 200, (2, 1)),
    ],
)
def test_an_image_gets_the_grid_of_its_shape(width: int, height: int, grid: tuple[int, int]) -> None:
    assert choose_grid(width, height, 336) == Grid(*grid)


@given(sides, sides)
def test_the_choice_is_that_of_transformers_but_for_rounding(width: int, height: int) -> None:
    """Theirs cuts fractions of a pixel off, so where two grids are as good within a row of pixels, choices may differ."""
    from transformers.image_processing_utils import select_best_resolution

    ours = choose_grid(width, height, 336)
    rows, columns = select_best_resolution((height, width), [(336 * one.rows, 336 * one.columns) for one in GRIDS])
    theirs = Grid(rows // 336, columns // 336)

    def shown(grid: Grid) -> int:
        large = fit_size(width, height, 336 * grid.columns, 336 * grid.rows)
        return min(large[0] * large[1], width * height)

    assert ours == theirs or abs(shown(ours) - shown(theirs)) <= 4 * 336


@given(sides, sides, sides, sides)
def test_what_is_fitted_touches_one_side_and_stays_within_the_other(
    width: int, height: int, most_width: int, most_height: int
) -> None:
    found = fit_size(width, height, most_width, most_height)
    assert 1 <= found[0] <= most_width
    assert 1 <= found[1] <= most_height
    assert found[0] == most_width or found[1] == most_height


def test_tiles_lie_row_by_row_behind_the_whole_image() -> None:
    """An image whose every tile is of one value; made small, it keeps its mean."""
    values = torch.arange(1.0, 7.0).reshape(2, 3)
    image = values.repeat_interleave(4, 0).repeat_interleave(4, 1).expand(3, 8, 12)
    parts = split_image(image, 4, Grid(2, 3))
    assert parts.shape == (7, 3, 4, 4)
    for number, part in enumerate(parts[1:]):
        assert torch.allclose(part, torch.full_like(part, float(number + 1)), atol=1e-5)


def test_an_image_keeps_its_proportions_and_is_padded_evenly_with_nought() -> None:
    image = torch.ones(3, 10, 40)
    whole = split_image(image, 8, Grid(1, 4))[0]
    assert torch.allclose(whole[:, 3:5], torch.ones(3, 2, 8), atol=1e-5)
    assert not whole[:, :3].any()
    assert not whole[:, 5:].any()
    tall = split_image(torch.ones(3, 40, 10), 8, Grid(2, 2))
    assert torch.allclose(tall[1, :, :, 6:], torch.ones(3, 8, 2), atol=1e-5)
    assert not tall[1, :, :, :6].any()


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_features_are_read_row_by_row_across_the_tiles(rows: int, columns: int, side: int) -> None:
    """Each feature is its place in the large map; so read, they count up."""
    large = torch.arange(float(rows * side * columns * side)).reshape(rows * side, columns * side)
    tiles = [
        large[row * side : (row + 1) * side, column * side : (column + 1) * side].reshape(-1, 1)
        for row in range(rows)
        for column in range(columns)
    ]
    whole = -torch.ones(side * side, 1)
    found = merge_features(torch.stack([whole, *tiles]), Grid(rows, columns))
    assert torch.equal(found, torch.cat([whole, large.reshape(-1, 1)]))


def test_an_image_takes_the_tokens_of_its_tiles_and_of_the_whole() -> None:
    """CLIP ViT-L/14 at 336 pixels has 576 patches: 2880 tokens for a square, as LLaVA-NeXT."""
    assert (1 + choose_grid(1000, 1000, 336).tiles) * 576 == 2880
    image = torch.zeros(3, 20, 50)
    grid = choose_grid(50, 20, 8)
    features = torch.zeros(len(split_image(image, 8)), 4, 2)
    assert len(merge_features(features, grid)) == (1 + grid.tiles) * 4


def test_what_cannot_be_cut_or_merged_is_refused() -> None:
    with pytest.raises(UsageError, match="no grid for an image of 0x5"):
        choose_grid(0, 5, 336)
    with pytest.raises(UsageError, match="3 parts of 4 patches do not match an image and 2x2 tiles"):
        merge_features(torch.zeros(3, 4, 1), Grid(2, 2))
    with pytest.raises(UsageError, match="5 parts of 3 patches"):
        merge_features(torch.zeros(5, 3, 1), Grid(2, 2))
