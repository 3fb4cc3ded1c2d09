"""Reader of a folder with two text files whose lines belong together: images, and their captions.

SBU Captions is published so (``..._urls.txt`` and ``..._captions.txt``). The file whose first line is a URL or the name of
an image has the images; the other one of as many lines has the captions. Other ``.txt`` files, such as a README, are
ignored.

Limits: `MAX_LINE` bytes per line.
"""

from pathlib import Path

from pairwright.datasets.errors import InputError
from pairwright.datasets.readers.csv_tsv import is_image_name
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator
from pairwright.datasets.readers.text_files import MAX_LINE, NO_TRANSCODING, Transcoder, iter_lines, parse_text
from pairwright.datasets.rejects import RejectError, make_reject

_SUFFIX = ".txt"


def find_parallel_files(folder: Path) -> tuple[Path, Path] | None:
    """Return the file of the images and that of their captions; None if a folder has no such pair, or several.

    Raises:
        InputError: if a file cannot be read.
    """
    files = [path for path in sorted(folder.iterdir()) if path.suffix.lower() == _SUFFIX and path.name[0] != "."]
    images = [file for file in files if is_image_name(_first_line(file))]
    if len(images) != 1 or len(files) < 2:
        return None
    lines = _count_lines(images[0])
    captions = [file for file in files if file != images[0] and _count_lines(file) == lines]
    return (images[0], captions[0]) if len(captions) == 1 else None


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
