"""Boxes of input rows, converted to corners as fractions.

A box is ``{"category" | "label" | "name", "bbox": [x1, y1, x2, y2]}`` or ``{"label", "x1", "y1", "x2", "y2"}``.
The unit is chosen per row: fractions if no coordinate is above 1 (`ROUNDING_TOLERANCE` allows for rounding), pixels if
one is 2 or more and the image's width and height are known. Values in between are rejected, and so are pixels without
a size. `box_unit` sets the unit explicitly.

Limits: rows of detection datasets on Hugging Face, ``{"bbox": [[...], ...], "category": [...]}``, are rejected: in some
``bbox`` is corners, in others x, y, width and height, and most categories are numbers without names. Pixel boxes may exceed the image by one pixel and are clipped; boxes with zero area are allowed.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal

from pairwright.datasets.readers.text_files import json_type_name, parse_json
from pairwright.datasets.records import Box
from pairwright.datasets.rejects import RejectError

CROWD = "crowd"
"""The entry of a pair's `meta` with the regions of many things that have one box."""

BoxUnit = Literal["guess", "fraction", "pixel"]
Corners = tuple[float, float, float, float]

ROUNDING_TOLERANCE = 1e-3


def read_boxes(value: Any, width: int, height: int, unit: BoxUnit) -> tuple[Box, ...]:
    """Return the boxes of a row.

    Args:
        value: a list of boxes, its JSON text, or None.
        width: of the image in pixels, 0 if unknown.
        height: of the image in pixels, 0 if unknown.
        unit: of the coordinates.

    Raises:
        RejectError: bad_box, wrong_type or not_finite.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        value = parse_json(value)
    if not isinstance(value, list):
        why = "; it does not say whether bbox is corners or x, y, width, height" if isinstance(value, dict) else ""
        raise RejectError("wrong_type", f"boxes are {json_type_name(value)}, not a list of boxes{why}")
    if not value:
        return ()  # which needs no size of the image
    raw = [_parse_box(box) for box in value]
    scale_x, scale_y, slack_x, slack_y = _scale((corners for _, corners in raw), (width, height), unit)
    return tuple(Box(label, *_to_fractions(corners, (scale_x, scale_y), (slack_x, slack_y))) for label, corners in raw)


def _parse_box(box: Any) -> tuple[str, Corners]:
    if not isinstance(box, dict):
        raise RejectError("wrong_type", f"a box is {json_type_name(box)}, not an object with a label and corners")
    label = next((box[name] for name in ("category", "label", "name") if name in box), None)
    if not isinstance(label, str) or not label.strip():
        raise RejectError("bad_box", "a box has no label (category, label or name)")
    corners = box["bbox"] if "bbox" in box else [box.get(name) for name in ("x1", "y1", "x2", "y2")]
    if not isinstance(corners, list) or len(corners) != 4:
        raise RejectError("bad_box", f"the box {label!r} is not four numbers")
    for number in corners:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise RejectError("wrong_type", f"a corner of the box {label!r} is {json_type_name(number)}, not a number")
        if not math.isfinite(number):
            raise RejectError("not_finite", f"a corner of the box {label!r} is {number}")
    x1, y1, x2, y2 = map(float, corners)
    if x1 > x2 or y1 > y2:
        raise RejectError("bad_box", f"the box {label!r} is inverted: {x1:g}, {y1:g}, {x2:g}, {y2:g}")
    return label, (x1, y1, x2, y2)


def _scale(boxes: Iterable[Corners], size: tuple[int, int], unit: BoxUnit) -> tuple[float, float, float, float]:
    """Return the divisor of the coordinates, and how far they may exceed the image, as fractions."""
    largest = max((max(corners) for corners in boxes), default=0.0)
    if unit == "fraction" or (unit == "guess" and largest <= 1 + ROUNDING_TOLERANCE):
        return 1.0, 1.0, ROUNDING_TOLERANCE, ROUNDING_TOLERANCE
    if unit == "guess" and largest < 2:
        raise RejectError("bad_box", f"a coordinate is {largest:g}: neither in 0-1 nor clearly pixels")
    width, height = size
    if not (width and height):
        raise RejectError("bad_box", "boxes in pixels, and the image's width and height are unknown")
    return float(width), float(height), 1 / width, 1 / height


def _to_fractions(corners: Corners, scale: tuple[float, float], slack: tuple[float, float]) -> Corners:
    x1, y1, x2, y2 = corners[0] / scale[0], corners[1] / scale[1], corners[2] / scale[0], corners[3] / scale[1]
    for value, margin in ((x1, slack[0]), (y1, slack[1]), (x2, slack[0]), (y2, slack[1])):
        if not -margin <= value <= 1 + margin:
            shown = ", ".join(f"{corner:g}" for corner in corners)
            raise RejectError("bad_box", f"the box {shown} leaves the image")
    return _clip_to_unit(x1), _clip_to_unit(y1), _clip_to_unit(x2), _clip_to_unit(y2)


def _clip_to_unit(value: float) -> float:
    return min(1.0, max(0.0, value))
