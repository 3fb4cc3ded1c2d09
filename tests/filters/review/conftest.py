"""A small set under review: six negatives of three images, and a folder with two of the images."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

ROWS: list[dict[str, Any]] = [
    {"id": "a", "image": "1.png", "caption": "a red bus", "negative": "a blue bus", "form": "replace", "target": "attribute"},
    {"id": "b", "image": "1.png", "caption": "a bus by a tree", "negative": "a car by a tree", "form": "replace", "target": "object"},
    {"id": "c", "image": "2.png", "caption": "two dogs play", "negative": "two cats play", "form": "replace", "target": "object"},
    {"id": "d", "image": "2.png", "caption": "a dog on grass", "negative": "a dog on sand", "form": "replace", "target": "object"},
    {"id": "e", "image": "3.png", "caption": "a man on a horse", "negative": "a horse on a man", "form": "swap", "target": "object"},
    {"id": "f", "image": "", "caption": "a green <b>cup</b>", "negative": "a white <b>cup</b>", "form": "replace", "target": "attribute"},
    {"id": "g", "image": "1.png", "caption": "a red bus", "negative": "a bus", "status": "rejected", "reason": "left_out"},
]  # fmt: skip


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    """The rows as JSON Lines; image 3 is named and not there, and one row came in rejected."""
    for number, colour in enumerate(("red", "green"), 1):
        Image.new("RGB", (20, 10), colour).save(tmp_path / f"{number}.png")
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path
