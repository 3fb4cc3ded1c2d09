"""Reader for Flickr30k's caption file: one ``IMAGE#NUMBER<tab>CAPTION`` per line."""

from pathlib import Path

from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator, Reader
from pairwright.datasets.rejects import make_reject


def read(path: Path) -> InputRowIterator:
    """Yield one row per line."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            place = f"{path}:{number}"
            image, tab, caption = line.rstrip("\n").partition("\t")
            if tab:
                yield InputRow(place, {"image": image.partition("#")[0], "caption": caption})
            else:
                yield make_reject(place, "missing_caption", "no tab between image and caption", line)


READER = Reader("flickr", "Flickr30k captions: IMAGE#NUMBER, a tab, the caption", read, suffixes=(".token",))
