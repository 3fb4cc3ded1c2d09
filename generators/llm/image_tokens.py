"""Tokens that models count for an image, and the size at which it is sent.

    rule = find_family_rule("Qwen/Qwen2.5-VL-7B-Instruct")
    rule.tokens(1008, 756)      # 974: a token for each 28 x 28 pixels, and two around the image

Rules, with their sources:

- *Tiles* (OpenAI: gpt-4o, gpt-4.1, gpt-5): the image is scaled to fit into 2048 x 2048, then to a shorter edge of 768; a
  base and an amount per tile of 512 pixels. With ``detail: low`` the base alone.
  https://platform.openai.com/docs/guides/images-vision
- *Patches* (OpenAI: the mini and nano models from gpt-4.1 on): a factor per patch of 32 pixels, up to 1,536 patches. Same page.
- *Side*: a token for a square of pixels, the last ones padded (Claude, Pixtral).
- *Squares* (Qwen-VL): a token for a square of pixels, after both edges are rounded to multiples of its side and a small
  image is enlarged (`smart_resize` in https://github.com/QwenLM/Qwen2.5-VL).
- *Crops* (Gemini): up to 384 x 384 one crop, else squares of two thirds of the shorter edge, 256 to 768 pixels.
- *Fixed*: models that resize every image to one size.

`vision_models.tsv` names the rule of each family. Names may have a provider before them (``openai/gpt-4o``) or a version
behind them.
"""

import csv
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("vision_models.tsv")
DEFAULT_EDGE = 1024
LOW_DETAIL_EDGE = 512
_TILE_EDGE, _TILE_SHORT_EDGE = 2048, 768


@dataclass(frozen=True, slots=True)
class ImageRule:
    """How a model counts the tokens of an image; see the module. With no rule of its own, `side` counts.

    Attributes:
        tiles: base, and tokens per tile of 512 pixels.
        patches: tokens per patch of 32 pixels, and the maximum number of patches.
        crops: tokens per crop of up to 768 pixels; 0: another rule.
        fixed: tokens of any image; 0: another rule.
        squares: pixels of the side of a square that a token covers, and the minimum number of tokens.
        side: pixels of the square that a token covers; two tokens enclose the image.
        edge: pixels of the longer edge at which images are sent, if the user does not say.
    """

    tiles: tuple[float, float] | None = None
    patches: tuple[float, int] | None = None
    crops: int = 0
    fixed: int = 0
    squares: tuple[int, int] | None = None
    side: int = 28
    edge: int = DEFAULT_EDGE

    @property
    def short_edge(self) -> int:
        """Pixels of the shorter edge beyond which the model scales an image down; 0: no such limit."""
        return _TILE_SHORT_EDGE if self.tiles is not None else 0

    def tokens(self, width: int, height: int, *, low: bool = False) -> int:
        """Return the tokens of an image by its size in pixels; ``low``: sent with ``detail: low``."""
        if self.tiles is not None:
            shrink = min(1.0, _TILE_EDGE / max(width, height))
            shrink *= min(1.0, _TILE_SHORT_EDGE / (min(width, height) * shrink))
            across, down = (math.ceil(round(edge * shrink, 6) / 512) for edge in (width, height))
            return math.ceil(self.tiles[0] + (0 if low else self.tiles[1] * across * down))
        if self.patches is not None:
            return math.ceil(self.patches[0] * min(math.ceil(width / 32) * math.ceil(height / 32), self.patches[1]))
        if self.crops:
            if max(width, height) <= 384:
                return self.crops
            crop = min(768, max(256, int(min(width, height) / 1.5)))
            return self.crops * math.ceil(width / crop) * math.ceil(height / crop)
        if self.squares is not None:
            return _squares(width, height, *self.squares) + 2
        return self.fixed or math.ceil(width / self.side) * math.ceil(height / self.side) + 2

    def most(self, edge: int, *, low: bool = False) -> int:
        """Return the maximum tokens of an image whose longer edge has at most ``edge`` pixels."""
        return _most(self, edge, low)


def _squares(width: int, height: int, side: int, least: int) -> int:
    """Return the squares of an image that is rounded to whole ones, and enlarged if these are fewer than ``least``."""
    across, down = round(width / side), round(height / side)
    if across * down >= least:
        return across * down
    grow = math.sqrt(least * side * side / (width * height))
    return math.ceil(width * grow / side) * math.ceil(height * grow / side)


@lru_cache(maxsize=256)
def _most(rule: ImageRule, edge: int, low: bool) -> int:  # noqa: FBT001 - cached, so positional
    # Not only squares: a narrow image has more tiles or crops, as its shorter edge is not scaled down.
    sides = {edge, *range(1, edge, 8), *(side for side in (384, 385, 512, 513, 768) if side < edge)}
    return max(rule.tokens(edge, side, low=low) for side in sides)


@lru_cache(maxsize=256)
def find_family_rule(model: str) -> ImageRule:
    """Return the rule of a model's family by its name; of an unknown one, a token for 28 x 28 pixels."""
    return next((rule for pattern, rule in _families() if pattern.search(model.lower())), ImageRule())


@lru_cache(maxsize=1)
def _families() -> tuple[tuple[re.Pattern[str], ImageRule], ...]:
    return tuple((re.compile(row["pattern"]), _rule(row)) for row in read_families())


def read_families() -> list[dict[str, str]]:
    """Return the rows of the table of families: ``pattern``, ``rule``, ``edge``, ``source``."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))


def _rule(row: dict[str, str]) -> ImageRule:
    name, *numbers = row["rule"].split()
    values = tuple(float(number) if "." in number else int(number) for number in numbers)
    own: dict[str, Any] = {name: values if len(values) > 1 else values[0]}
    return ImageRule(edge=int(row["edge"]), **own)
