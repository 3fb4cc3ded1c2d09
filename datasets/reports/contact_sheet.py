"""Dataset overview: counts, and a contact sheet of the first samples.

`summarize_dataset` reads shards or a build directory once. `draw_contact_sheet` draws a grid of images with their caption
and the first hard negative in red; text-only samples show their texts. It uses Pillow's built-in font, which has Latin
script; other characters are drawn as boxes.
"""

import io
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.recoding import convert_to_rgb, decode_oriented_image
from pairwright.datasets.shards.content_counts import count_contents
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA
from pairwright.datasets.shards.sample_source import SampleSource, load_image, open_sample_source
from pairwright.datasets.shards.samples import Sample

CELL_WIDTH, IMAGE_AREA_HEIGHT, MAX_CAPTION_LINES = 260, 190, 4
_MARGIN, _FONT_SIZE = 10, 14
_LINE_HEIGHT = 18
_INK, _RED, _GROUND, _PAPER = "#1d1d1f", "#a3352b", "#efece6", "#ffffff"

_Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def summarize_dataset(path: Path) -> dict[str, Any]:
    """Return the contents of a dataset.

    Args:
        path: a build directory, a folder of shards, one tar or a brace pattern.

    Returns:
        The counts of `count_contents`, and ``shards`` (number of tars), ``bytes`` (of the tars), ``schema`` (the members
        of a sample's JSON).

    Raises:
        InputError: if there is no dataset at ``path``.
        StorageError: if one of its files is damaged.
    """
    source = open_sample_source(path)
    files = {"shards": len(source.shards), "bytes": sum(tar.stat().st_size for tar in source.shards)}
    return {**count_contents(_stored_samples(source)), **files, "schema": SAMPLE_SCHEMA}


def read_first_samples(path: Path, count: int) -> list[Sample]:
    """Return the first ``count`` samples at ``path`` with their images; arguments and errors as in `summarize_dataset`."""
    return [load_image(sample) for sample in islice(_stored_samples(open_sample_source(path)), count)]


def _stored_samples(source: SampleSource) -> Iterable[Sample]:
    """Return a source's samples from its shards, if it has any: the original images may no longer exist."""
    return chain.from_iterable(map(read_shard, source.shards)) if source.shards else source.samples()


def draw_contact_sheet(samples: Sequence[Sample], columns: int = 4) -> bytes:
    """Return a PNG with a cell per sample, in rows of ``columns``.

    Raises:
        InputError: if there is no sample.
    """
    if not samples:
        raise InputError("no sample to show", where="contact sheet", fix="Check the dataset with inspect.")
    font = ImageFont.load_default(_FONT_SIZE)
    columns = max(1, min(columns, len(samples)))
    pictures = IMAGE_AREA_HEIGHT if any(sample.image for sample in samples) else 0
    rows = [samples[start : start + columns] for start in range(0, len(samples), columns)]
    drawn = [_row(row, columns * CELL_WIDTH, pictures, font) for row in rows]
    sheet = Image.new("RGB", (columns * CELL_WIDTH, sum(row.height for row in drawn)), _PAPER)
    top = 0
    for row in drawn:
        sheet.paste(row, (0, top))
        top += row.height
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()


def _row(samples: Sequence[Sample], width: int, pictures: int, font: _Font) -> Image.Image:
    words = [_cell_text(sample, font) for sample in samples]
    height = pictures + _LINE_HEIGHT * max(map(len, words)) + 2 * _MARGIN
    row = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(row)
    for number, (sample, lines) in enumerate(zip(samples, words, strict=True)):
        x, y = number * CELL_WIDTH + _MARGIN, _MARGIN
        if pictures:
            row.paste(_thumbnail(sample, (CELL_WIDTH - 2 * _MARGIN, pictures - _MARGIN)), (x, y))
        for at, (line, colour) in enumerate(lines):
            draw.text((x, y + pictures + at * _LINE_HEIGHT), line, fill=colour, font=font)
    return row


def _cell_text(sample: Sample, font: _Font) -> list[tuple[str, str]]:
    negative = next((a.text for a in sample.annotations if a.kind == "hard_negative" and a.text), "")
    texts = ((sample.pair.caption, _INK), (f"not: {negative}" if negative else "", _RED))
    return [
        (line, colour)
        for text, colour in texts
        for line in wrap_text(text, font, CELL_WIDTH - 2 * _MARGIN, MAX_CAPTION_LINES)
    ]


def _thumbnail(sample: Sample, size: tuple[int, int]) -> Image.Image:
    ground = Image.new("RGB", size, _GROUND)
    if sample.image is not None:
        picture = convert_to_rgb(decode_oriented_image(sample.image, sample.pair.image))
        picture.thumbnail(size, Image.Resampling.LANCZOS)
        ground.paste(picture, ((size[0] - picture.width) // 2, (size[1] - picture.height) // 2))
    return ground


def wrap_text(text: str, font: _Font, width: int, lines: int) -> list[str]:
    """Return ``text`` in at most ``lines`` lines of ``width`` pixels; a truncated text ends in "..."."""
    done: list[str] = []
    rest = text.split()
    while rest and len(done) < lines:
        taken = max(1, next((n for n in range(len(rest), 0, -1) if font.getlength(" ".join(rest[:n])) <= width), 1))
        done.append(_truncate_line(" ".join(rest[:taken]), font, width))
        rest = rest[taken:]
    if rest:
        done[-1] = _truncate_line(done[-1] + " ...", font, width) if not done[-1].endswith("...") else done[-1]
    return done


def _truncate_line(line: str, font: _Font, width: int) -> str:
    if font.getlength(line) <= width:
        return line
    line = line.removesuffix(" ...")
    while line and font.getlength(line + "...") > width:
        line = line[:-1]
    return line.rstrip() + "..."
