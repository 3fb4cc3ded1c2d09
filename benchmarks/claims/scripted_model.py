"""A scripted stand-in for a language model that edits captions, served by the project's own test server.

How it writes follows what was measured on 8,794 negatives that a language model wrote for COCO captions (SugarCrepe
before its refinement; replaced objects, replaced attributes, added objects). No text of them is used here:

    starts with a capital and ends with a full stop    1.00 and 1.00 of its texts; 0.85 and 0.75 of the captions
    for one replaced word: its favourite, first three  0.54 and 0.73 of the new words
    new words that no caption has                      0.20 to 0.27
    rewords a second place                             0.12 to 0.31 of the texts
    an added object                                    3.4 words more than the caption

So nothing is planted: what text alone gives away is that a few words are preferred, that some are of another
vocabulary, that additions are longer, and that the writing is tidier than that of people.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import orjson

from benchmarks.claims.commands import pairwright
from benchmarks.claims.pictures import Edited
from pairwright.datasets.records import compact_json
from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.grouping import split_items
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest, content_text
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.plausible_model.prompt_recognition import PromptRecognizer, RecognizedPrompt

MODEL = "scripted"
TYPES = ("replace-object", "replace-attribute", "add-object")
CAPITAL, FULL_STOP = 0.85, 0.75  # shares of the captions that people wrote
_REWORDED = 0.18
_PREFERENCE = 1.5  # exponent of Zipf's law: 0.52 of the first, 0.80 of the first three of eight

# What comes to its mind first for a word; a fifth to a quarter of what it writes is in no caption.
_THINGS: Mapping[str, Sequence[str]] = {
    "circle": ("square", "triangle", "oval", "star", "heart", "ring", "hexagon", "cross"),
    "square": ("circle", "triangle", "star", "pentagon", "heart", "oval", "hexagon", "cross"),
    "triangle": ("square", "circle", "pyramid", "star", "heart", "hexagon", "oval", "cross"),
    "star": ("heart", "circle", "moon", "square", "triangle", "sun", "cross", "flower"),
    "heart": ("star", "circle", "flower", "square", "triangle", "moon", "cross", "oval"),
    "cross": ("star", "circle", "arrow", "square", "heart", "triangle", "ring", "hexagon"),
}
_QUALITIES: Mapping[str, Sequence[str]] = {
    "red": ("blue", "green", "silver", "yellow", "purple", "black", "golden", "orange"),
    "orange": ("purple", "blue", "teal", "green", "red", "yellow", "silver", "black"),
    "yellow": ("purple", "blue", "red", "silver", "green", "black", "orange", "pink"),
    "green": ("purple", "red", "golden", "yellow", "blue", "orange", "black", "silver"),
    "blue": ("red", "green", "golden", "yellow", "purple", "orange", "silver", "black"),
    "purple": ("yellow", "green", "golden", "blue", "red", "orange", "black", "white"),
    "brown": ("white", "green", "blue", "black", "red", "yellow", "golden", "purple"),
    "black": ("white", "red", "blue", "silver", "yellow", "green", "golden", "purple"),
}
_ADDED = ("star", "triangle", "circle", "flower", "heart", "balloon", "cross", "arrow")
_ADDITIONS = (" next to a {}", ", along with a {}", " beside a small {}")
_REWORDINGS = (" alongside ", " next to ", " as well as ")


class ScriptedModel:
    """Answers the prompt for negatives in one call; other requests get the test server's default answer."""

    def __init__(self) -> None:
        self._recognizer = PromptRecognizer()

    def __call__(self, request: ChatRequest) -> ServerAnswer | None:
        """Return the answer to a request about one caption or several ones."""
        *messages, (role, last) = [
            (str(one.get("role")), content_text(one.get("content"))) for one in request.messages()
        ]
        items = split_items(last)
        answers = [self._answer([*messages, (role, text)]) for _, text in items or [(0, last)]]
        if any(answer is None for answer in answers):
            return None
        entries = [{"id": own, **answer} for (own, _), answer in zip(items, answers, strict=False) if answer]
        return ServerAnswer(orjson.dumps({"answers": entries} if items else answers[0]).decode())

    def _answer(self, messages: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
        prompt = self._recognizer.read(messages)
        return _negatives(prompt) if prompt is not None and prompt.name == "negatives-at-once" else None


def _negatives(prompt: RecognizedPrompt) -> dict[str, Any]:
    caption = prompt.text("caption")
    rng = make_rng(0, "claims", "scripted model", caption)
    made = [(kind, *write(kind, caption, rng)) for kind in prompt.texts("types") or TYPES if kind in TYPES]
    return {"negatives": [{"type": kind, "from": old, "to": new, "caption": text} for kind, old, new, text in made]}


def write(kind: str, caption: str, rng: Random) -> tuple[str, str, str]:
    """Return the replaced word (empty for an addition), the new words, and the edited caption.

    Args:
        kind: of `TYPES`.
        caption: of coloured shapes.
        rng: of the place, the word and the wording.
    """
    text = caption.strip()
    if kind == "add-object":
        old, new = "", rng.choice(_ADDITIONS).format(_prefer([one for one in _ADDED if one not in text], rng))
        place = rng.choice([match.end() for match in re.finditer("|".join(_THINGS), text)])
        text = text[:place] + new + text[place:]
    else:
        known = _THINGS if kind == "replace-object" else _QUALITIES
        found = rng.choice(list(re.finditer("|".join(known), text)))
        old = found[0]
        new = _prefer([one for one in known[old] if one not in text], rng)
        text = text[: found.start()] + new + text[found.end() :]
    if rng.random() < _REWORDED:
        text = text.replace(" and ", rng.choice(_REWORDINGS), 1)
    return old, new.strip(" ,"), _tidy(text)


def _prefer(words: Sequence[str], rng: Random) -> str:
    return rng.choices(words, [1 / rank**_PREFERENCE for rank in range(1, len(words) + 1)])[0]


def _tidy(text: str) -> str:
    """Return a text with the articles that its words take, a capital and a full stop."""
    text = re.sub(r"\b([Aa])n?(?= [aeio])", r"\1n", text)
    text = re.sub(r"\b([Aa])n(?= [^aeio])", r"\1", text)
    return text[0].upper() + text[1:].rstrip(".") + "."


def as_people_write(caption: str, rng: Random) -> str:
    """Return a caption with a capital and a full stop in the shares that captions by people have."""
    capital, stop = rng.random() < CAPITAL, rng.random() < FULL_STOP
    return (caption[0].upper() if capital else caption[0]) + caption[1:] + ("." if stop else "")


def edit_captions(captions: Mapping[str, str], folder: Path) -> dict[str, list[Edited]]:
    """Return what `pairwright generate negatives --method llm` keeps of the model's answers, by name.

    Args:
        captions: by name.
        folder: of inputs, outputs and cache; exists.
    """
    rows = [compact_json({"image": name, "caption": caption}) for name, caption in captions.items()]
    source, out = folder / "captions.jsonl", folder / "negatives.jsonl"
    source.write_text("\n".join(rows) + "\n", encoding="utf-8")
    with serve_in_thread(ServerApp(answer=ScriptedModel())) as server:
        where = ("--method", "llm", "--model", MODEL, "--base-url", server.url, "--endpoint", MODEL)
        pairwright("generate", "negatives", source, "--out", out, "--types", ",".join(TYPES), *where, "--workers", 1)
    kept: dict[str, list[Edited]] = {name: [] for name in captions}
    for row in map(orjson.loads, out.read_bytes().splitlines()):
        if row["status"] == "kept":
            kept[Path(row["image"]).name].append(Edited(row["negative"], row["form"], row["target"]))
    return kept
