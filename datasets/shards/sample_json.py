"""The JSON of a sample as trainers need it: parsing, checks, and its outline (which texts there are, without the texts)."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from pairwright.datasets.rejects import RejectError

_TEXTS = {
    "hard_negatives": ("form", "target", "text"),
    "hard_positives": ("form", "target", "text"),
    "conversations": ("type",),
    "rationales": ("task", "input", "label", "rationale", "split"),
}
"""Members of a sample's JSON that collators read: lists of objects with these string members."""

_KEPT_IN_OUTLINE = frozenset({"type", "role", "task", "split"})


def parse_sample_json(data: bytes) -> dict[str, Any]:
    """Return the JSON object of a sample; an empty one without bytes.

    Raises:
        RejectError: broken_json: not a JSON object, or a member that collators read has another shape.
    """
    try:
        body = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError as error:
        raise RejectError("broken_json", str(error)) from None
    if not isinstance(body, dict):
        raise RejectError("broken_json", "not a JSON object")
    for name, texts in _TEXTS.items():
        _check_items(body.get(name, ()), name, texts)
    for number, conversation in enumerate(body.get("conversations", ())):
        _check_items(conversation.get("turns"), f"conversations[{number}].turns", ("role", "text"))
    return body


def outline(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of `parse_sample_json` with its lists of texts only, each text as ``x`` or empty.

    Types, roles, tasks and splits are kept: they and the number of texts tell whether a collator can use the sample.
    """
    made = {name: [_outline_item(item, texts) for item in body.get(name, ())] for name, texts in _TEXTS.items()}
    for outlined, conversation in zip(made["conversations"], body.get("conversations", ()), strict=True):
        outlined["turns"] = [_outline_item(turn, ("role", "text")) for turn in conversation["turns"]]
    return {name: items for name, items in made.items() if items}


def _outline_item(item: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    return {name: item[name] if name in _KEPT_IN_OUTLINE else "x" if item[name] else "" for name in texts}


def _check_items(items: Any, name: str, texts: Sequence[str]) -> None:
    """Raise RejectError unless ``items`` is a list of objects with these strings; other members are ignored."""
    if not isinstance(items, list | tuple):
        raise RejectError("broken_json", f"{name} is not a list")
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise RejectError("broken_json", f"{name}[{number}] is not an object")
        for text in texts:
            if not isinstance(item.get(text), str):
                raise RejectError("broken_json", f"{name}[{number}] has no string `{text}`")
