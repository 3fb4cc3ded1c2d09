"""Captions of an image from its colours: the stand-in looks at the pixels that it was sent.

    "A red block and a yellow block in front of a blue wall."

The wall has the colour of the edges of the image, the blocks have the other colours that fill at least `MIN_SHARE` of it. An
image that is not sent as data (a web address), or that cannot be decoded, is a gray wall.
"""

import base64
from collections import Counter
from collections.abc import Sequence

from pairwright.datasets.images.loading import UnusableImageError, decode_image
from pairwright.datasets.images.recoding import convert_to_rgb

MIN_SHARE = 0.02
MAX_BLOCKS = 3
_SIDE = 32  # pixels at which an image is looked at
_COLOURS = {
    "red": (220, 30, 30), "orange": (250, 140, 20), "yellow": (240, 220, 40), "green": (60, 170, 60), "blue": (50, 90, 220),
    "purple": (130, 50, 150), "pink": (250, 170, 190), "brown": (120, 75, 40), "black": (15, 15, 15), "gray": (128, 128, 128),
    "white": (250, 250, 250), "beige": (240, 235, 215), "light blue": (135, 206, 235), "light green": (145, 235, 145),
}  # fmt: skip


def captions_of_image(url: str, forms: Sequence[str], count: int) -> list[dict[str, str]]:
    """Return ``count`` captions of each form for an image.

    Args:
        url: ``data:`` URL of the image.
        forms: of short, long and tags.
        count: captions of each form, which name the blocks in another order.
    """
    wall, *blocks = _colours(url)
    captions = []
    for form in forms:
        for at in range(count):
            turned = blocks[at % len(blocks) :] + blocks[: at % len(blocks)] if blocks else []
            captions.append({"form": form, "caption": _WRITERS[form](wall, turned, at)})
    return captions


def _colours(url: str) -> list[str]:
    """Return the colour of the edges of an image, then the others by their share."""
    try:
        data = base64.b64decode(url.partition(";base64,")[2])
        picture = convert_to_rgb(decode_image(data)).resize((_SIDE, _SIDE), resample=0)  # no mixed colours
    except (ValueError, UnusableImageError):
        return ["gray"]
    raw = picture.tobytes()
    names = [_name(raw[at], raw[at + 1], raw[at + 2]) for at in range(0, len(raw), 3)]
    edges = Counter(names[:_SIDE] + names[-_SIDE:] + names[::_SIDE] + names[_SIDE - 1 :: _SIDE])
    [(wall, _)] = edges.most_common(1)
    shares = Counter(name for name in names if name != wall)
    return [wall, *(name for name, number in shares.most_common(MAX_BLOCKS) if number >= MIN_SHARE * len(names))]


def _name(red: int, green: int, blue: int) -> str:
    def distance(name: str) -> int:
        return sum((one - other) ** 2 for one, other in zip((red, green, blue), _COLOURS[name], strict=True))

    return min(_COLOURS, key=distance)


def _short(wall: str, blocks: Sequence[str], at: int) -> str:
    what = " and ".join(f"a {block} block" for block in blocks)
    place = ("in front of", "before", "against", "close to")[at % 4]
    text = f"{what} {place} a {wall} wall." if what else f"an empty {wall} wall {'with' if at else 'and'} a gray floor."
    return (text[:1].upper() + text[1:]).replace("A orange", "An orange").replace(" a orange", " an orange")


def _long(wall: str, blocks: Sequence[str], at: int) -> str:
    parts = [f"A {block} block stands on the floor, and its sides are flat and even." for block in blocks]
    ending = f"Behind them rises a {wall} wall that fills the rest of the room from one side to the other."
    return " ".join([_short(wall, blocks, at), *parts, ending]).replace("A orange", "An orange")


def _tags(wall: str, blocks: Sequence[str], at: int) -> str:
    return ", ".join([*(f"{block} block" for block in blocks), f"{wall} wall", *(["floor"] if at else [])])


_WRITERS = {"short": _short, "long": _long, "tags": _tags}
