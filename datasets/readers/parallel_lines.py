"""Reader of a folder with two text files whose lines belong together: images, and their captions.

SBU Captions is published so (``..._urls.txt`` and ``..._captions.txt``). The file whose first line is a URL or the name of
an image has the images; the other one of as many lines has the captions. Other ``.txt`` files, such as a README, are
ignored.

Limits: `MAX_LINE` bytes per line.
"""

from itertools import islice
from pathlib import Path

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.csv_tsv import is_image_name
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import MAX_LINE, NO_TRANSCODING, Transcoder, iter_lines, parse_text
from pairwright.datasets.rejects import RejectError, make_reject

_SUFFIX = ".txt"
_SHOWN_FILES = 5


def find_parallel_files(folder: Path) -> tuple[Path, Path] | None:
    """Return the file of the images and that of their captions; None if a folder has no such pair, or several.

    Raises:
        InputError: if a file cannot be read.
    """
    found = _count_lines_beside_images(folder)
    if found is None:
        return None
    images, lines, others = found
    captions = [file for file, number in others.items() if number == lines]
    return (images, captions[0]) if len(captions) == 1 else None


def unequal_files_error(folder: Path) -> InputError | None:
    """Return the error for a file of images beside which no file has as many lines; None for another folder."""
    found = _count_lines_beside_images(folder)
    if found is None or found[1] in found[2].values():
        return None
    images, lines, others = found
    shown = ", ".join(f"{file.name} {number:,}" for file, number in islice(others.items(), _SHOWN_FILES))
    what = f"{images.name} names images in {count_phrase(lines, 'line')}, and no other .txt has as many ({shown})"
    return InputError(what, where=str(folder), fix="Add the lines that are missing: line N is the caption of image N.")


def _count_lines_beside_images(folder: Path) -> tuple[Path, int, dict[Path, int]] | None:
    """Return the only file of images with its number of lines, and those of the files beside it; None without them."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix.lower() == _SUFFIX and path.name[0] != "."]
    images = [file for file in files if is_image_name(_first_line(file))]
    if len(images) != 1 or len(files) < 2:
        return None
    return images[0], _count_lines(images[0]), {file: _count_lines(file) for file in files if file != images[0]}


def read_parallel_lines(path: Path, transcoder: Transcoder = NO_TRANSCODING) -> InputRowIterator:
    """Yield a row per line; places are ``captions file:line``. Lines that are blank in both files are skipped.

    Args:
        path: of the folder.
        transcoder: of lines that are not UTF-8.

    Raises:
        InputError: the folder has no such files, or one cannot be read.
    """
    found = find_parallel_files(path)
    if found is None:
        if unequal := unequal_files_error(path):
            raise unequal
        fix = "Give a folder with one file of images (URLs or file names) and one of captions, of as many lines."
        raise InputError("no two .txt files with images and captions, line by line", where=str(path), fix=fix)
    images, captions = found
    for (number, image), (_, caption) in zip(iter_lines(images), iter_lines(captions), strict=True):
        place = f"{captions}:{number}"
        if max(len(image), len(caption)) > MAX_LINE:
            yield make_reject(place, "field_too_long", f"the line is longer than {MAX_LINE} bytes", caption[:2000])
            continue
        try:
            fields = {"image": _text(image, transcoder).strip(), "caption": _text(caption, transcoder)}
        except RejectError as flaw:
            yield make_reject(place, flaw.reason, flaw.detail, caption[:2000])
            continue
        if fields["image"]:
            yield InputRow(place, fields)
        elif fields["caption"].strip():
            yield make_reject(place, "missing_image", f"line {number} of {images.name} is blank", fields)


def _text(line: bytes, transcoder: Transcoder) -> str:
    return parse_text(transcoder.convert(line)).rstrip("\r\n")


def _first_line(file: Path) -> str:
    _, line = next(iter_lines(file), (0, b""))
    return line[:MAX_LINE].decode("utf-8", "replace").strip()


def _count_lines(file: Path) -> int:
    return sum(1 for _ in iter_lines(file))
