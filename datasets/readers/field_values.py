"""Parsers of single row values: texts, identifiers, sizes, and values of `meta`.

Each takes a value as read from a file and raises `RejectError` if it is invalid; ``what`` names the part of the pair in
the message.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from pairwright.datasets.readers.text_files import json_type_name
from pairwright.datasets.rejects import RejectError, is_utf8_encodable

MAX_PIXEL_SIZE = 2**31 - 1  # width and height are 32-bit columns

_FIRST_ROUNDED = 2.0**64

_WHOLE_NUMBER = re.compile(r"\s*\d+(\.0)?\s*")  # pandas writes 17 as 17.0 if others are missing
_IN_BASE64 = re.compile(  # JPEG, PNG, WebP and GIF by their first bytes; a path ends with a dot and an ending
    r"data:image/[\w.+-]+;base64,|(?:/9j/|iVBORw0KGgo|UklGR|R0lGOD)[A-Za-z0-9+/\s]{100,}=*\s*$"
)
_JSON_SCALARS = frozenset({str, int, bool, type(None)})  # covers most values, in a third of the time of isinstance
# Tuples, as a union would be created for each value; dict comes before Mapping, which is slower.
_PLAIN, _OBJECT, _LIST = (str, bool, int), (dict, Mapping), (list, tuple)


def is_missing(value: Any) -> bool:
    """Return whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def parse_text_field(value: Any, what: str) -> str:
    """Return a text unchanged; empty for None and NaN, which pandas writes for missing texts."""
    if is_missing(value):
        return ""
    if not isinstance(value, str):
        raise RejectError("wrong_type", f"the {what} is {json_type_name(value)}, not a text")
    if not is_utf8_encodable(value):
        raise RejectError("not_utf8", f"the {what} holds bytes that are not UTF-8")
    return value


def parse_identifier(value: Any, what: str) -> str:
    """Return a text, or a whole number as text; pandas writes the id 73 as 73.0 if others are missing.

    A number of more than 64 bits is rejected: a parser of JSON has rounded it, so that several ids may have become one.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RejectError("not_finite", f"the {what} is {value}")
        if abs(value) >= _FIRST_ROUNDED:
            raise RejectError(
                "wrong_type", f"the {what} {value:g} has too many digits for a number: write it as a text"
            )
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return parse_text_field(value, what)


def parse_image_number(value: Any) -> str:
    """Return the text of a number, or of a list of one, which identifies an image and is no place of it; else empty."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return value if _WHOLE_NUMBER.fullmatch(value) else ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return parse_identifier(value, "image") if is_number else ""


def is_image_in_base64(text: str) -> bool:
    """Return whether a text is the bytes of an image, not its path."""
    return _IN_BASE64.match(text) is not None


def parse_pixel_size(value: Any, what: str) -> int:
    """Return a whole number of pixels, from a number or its text; 0 for None and empty text."""
    if value is None or value == "":
        return 0
    if isinstance(value, str):
        try:
            value = float(value)  # pandas writes 640 as 640.0 if others are missing
        except ValueError:
            raise RejectError("wrong_type", f"the {what} {value[:20]!r} is not a whole number") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise RejectError("not_finite", f"the {what} is {value}")
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise RejectError("wrong_type", f"the {what} is {json_type_name(value)}, not a whole number")
    if not 0 <= value <= MAX_PIXEL_SIZE:
        raise RejectError("wrong_type", f"the {what} is {value}, not between 0 and {MAX_PIXEL_SIZE}")
    return int(value)


def to_json_value(value: Any) -> Any:
    """Return a value as JSON: NaN and infinities as null, bytes dropped, all else as text."""
    if type(value) in _JSON_SCALARS or isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, _OBJECT):
        return {str(name): item if type(item) in _JSON_SCALARS else to_json_value(item) for name, item in value.items()}
    if isinstance(value, _LIST):
        return [item if type(item) in _JSON_SCALARS else to_json_value(item) for item in value]
    return "<bytes>" if isinstance(value, bytes | bytearray) else str(value)
