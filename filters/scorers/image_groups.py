"""Groups of texts that belong to one image, so that rows under test never train a scorer.

A *group* is a name shared by all captions of an image. COCO writes the id of an image in several ways
(``COCO_val2014_000000549674.jpg``, ``000000549674.jpg``, the number 549674): all of them are one group here, so
captions of a corpus can be matched with candidate rows from elsewhere. A file named by the key of a pair, as in shards, is
one group too, also if each row of a table embeds it. Any other name is its own group.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from pairwright.datasets.records import Pair
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.generators.language.vocabulary import normalize_text

_IDENTIFIER = re.compile(r"(?:COCO_(?:train|val|test)\d{4}_)?0*(\d+)|([0-9a-f]{32})")


def image_group(image: str) -> str:
    """Return the group of an image: its number or key when its file name is one (see above), else ``image``."""
    found = _IDENTIFIER.fullmatch(PurePosixPath(image.rpartition("::")[2].replace("\\", "/")).stem)
    return found[1] or found[2] if found else image


def text_group(image: str, key: str, caption: str) -> str:
    """Return the group of a row: its image, else the key of its pair, else its caption."""
    return image_group(image) if image else key or normalize_text(caption)


def pair_group(pair: Pair) -> str:
    """Return the group of a pair: its image, else the user's id, else its key."""
    return text_group(pair.image or pair.source_id, pair.key, pair.caption)


def build_corpus(pairs: Iterable[Pair]) -> CaptionCorpus:
    """Return all captions of ``pairs``, each once per image, with their groups."""
    rows: dict[tuple[str, str], None] = {}
    for pair in pairs:
        group = pair_group(pair)
        rows.update(dict.fromkeys((group, caption) for caption in (pair.caption, *pair.captions)))
    return CaptionCorpus([caption for _, caption in rows], [group for group, _ in rows])
