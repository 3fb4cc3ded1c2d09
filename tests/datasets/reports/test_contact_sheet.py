"""Dataset overview and contact sheet."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFont

from pairwright.datasets.errors import InputError
from pairwright.datasets.reports.contact_sheet import (
    CELL_WIDTH,
    MAX_CAPTION_LINES,
    draw_contact_sheet,
    read_first_samples,
    summarize_dataset,
    wrap_text,
)
from pairwright.datasets.shards.writing import write_shards
from tests.datasets.sample_builders import sample, samples


def test_the_overview_has_shard_counts_and_the_schema(tmp_path: Path) -> None:
    written = write_shards(samples(7), tmp_path / "s", max_samples=3)
    seen = summarize_dataset(tmp_path / "s")
    assert (seen["samples"], seen["shards"], seen["with_image"]) == (7, 3, 7)
    assert seen["bytes"] == sum(shard.bytes for shard in written.shards)
    assert list(seen["schema"])[:2] == ["key", "caption"]


def test_the_sheet_is_a_picture_with_a_cell_a_sample(tmp_path: Path) -> None:
    write_shards(samples(7), tmp_path / "s")
    shown = read_first_samples(tmp_path / "s", 6)
    assert len(shown) == 6
    sheet = Image.open(io.BytesIO(draw_contact_sheet(shown, columns=4)))
    assert sheet.format == "PNG"
    assert sheet.width == 4 * CELL_WIDTH
    assert draw_contact_sheet(shown) == draw_contact_sheet(shown)


def test_text_only_samples_give_a_sheet_of_words() -> None:
    words = Image.open(io.BytesIO(draw_contact_sheet([sample(0), sample(1)])))
    pictures = Image.open(io.BytesIO(draw_contact_sheet(samples(2))))
    assert words.height < pictures.height / 2


def test_nothing_to_show_is_an_error() -> None:
    with pytest.raises(InputError, match="no sample"):
        draw_contact_sheet([])


@given(st.text(max_size=200), st.integers(40, 300))
def test_wrapped_lines_fit_and_are_few(text: str, width: int) -> None:
    font = ImageFont.load_default(14)
    lines = wrap_text(text, font, width, MAX_CAPTION_LINES)
    assert len(lines) <= MAX_CAPTION_LINES
    assert all(font.getlength(line) <= width for line in lines)
