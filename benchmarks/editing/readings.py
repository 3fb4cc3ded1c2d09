"""Sheets on which readers judge edits blind, and tables of what two readers marked.

    python -m benchmarks.editing.run CAPTIONS.jsonl --half odd --readings FOLDER [--per-type 60] [--untouched 60]
    python -m benchmarks.editing.readings FOLDER/key.json FIRST.txt SECOND.txt

The first command writes to FOLDER:

- ``naturalness-1.txt``, ...: numbered texts, edits of all types and untouched captions shuffled, without type or
  status; beneath each the other captions of its image, never the caption that was edited. One image, one text.
- ``truth-1.txt``, ...: the same edits under the same numbers beside *all* captions of the image, to be handed out after
  the other sheets, as an edit can be recognised there.
- ``key.json``: what each number is. Not for readers.

A reader writes lines ``NUMBER MARKS``, such as ``17 n`` or ``17 n f``; anything after ``#`` is a remark. Marks: n natural,
o odd, u ungrammatical; f false of the image, p possibly true, - does not apply.
The second command prints naturalness and truth by type beside those of the untouched captions, and the agreement.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.editing.report import percent, table

UNTOUCHED = "untouched"
SHEET_ITEMS = 80
NATURALNESS, TRUTH = "nou", "fp-"
_NATURALNESS_HEAD = """\
Judge each text as a caption of a photograph, as if nothing else was known; the lines beneath it are other captions of
the same image, for context only. Write one line per number: the number and one letter.
  n  natural: somebody could have written it
  o  odd: grammatical, but nobody would write it: of a scene that cannot be, or in words that do not go together
  u  ungrammatical
Clumsy wording or spelling that people write themselves is natural. Judge the text, not whether it is true.
"""
_TRUTH_HEAD = """\
Judge whether each text can be true of the image that the captions beneath it describe; people wrote all of them.
Write one line per number: the number and one sign.
  f  false: if the captions are right, the text is not
  p  possibly true: both can hold of one image, or the text says the same in other words
  -  does not apply: the text makes no sense
"""

Item = dict[str, Any]


def write_readings(folder: Path, items: Sequence[Item]) -> None:
    """Write the sheets and the key.

    Args:
        folder: created if missing.
        items: of `sample_items`.
    """
    edits = [(number, item) for number, item in enumerate(items, 1) if item["type"] != UNTOUCHED]
    folder.mkdir(parents=True, exist_ok=True)
    _write_sheets(folder, "naturalness", _NATURALNESS_HEAD, list(enumerate(items, 1)), _other_captions)
    _write_sheets(folder, "truth", _TRUTH_HEAD, edits, lambda item: item["captions"])
    key = {str(number): item for number, item in enumerate(items, 1)}
    (folder / "key.json").write_text(json.dumps(key, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(edits)} edits and {len(items) - len(edits)} untouched captions in {folder}")


def sample_items(
    rows: Sequence[Item], images: Sequence[Item], per_type: int, untouched: int, rng: random.Random
) -> list[Item]:
    """Return edits of each type and untouched captions in random order, each of an image of its own.

    Args:
        rows: kept candidate rows with their ``type``.
        images: objects with ``image_id`` and ``captions``.
        per_type: edits of each type; fewer if there are fewer.
        untouched: captions that nobody edited.
        rng: of the sample and the order.
    """
    captions = {str(image["image_id"]): image["captions"] for image in images}
    candidates = defaultdict(list)
    for row in rows:
        candidates[row["type"]].append((row["image"], row["caption"], row["negative"]))
    wanted = dict.fromkeys(sorted(candidates, key=lambda kind: (len(candidates[kind]), kind)), per_type)
    candidates[UNTOUCHED] = [(image, text, text) for image, texts in captions.items() for text in texts]
    used: set[str] = set()
    items = []
    # Rare types come first, as each image is used once.
    for kind, number in (wanted | {UNTOUCHED: untouched}).items():
        found = rng.sample(candidates[kind], len(candidates[kind]))
        unused = {image: (caption, text) for image, caption, text in found if image not in used}
        for image, (caption, text) in islice(unused.items(), number):
            used.add(image)
            texts = rng.sample(captions[image], len(captions[image]))
            items.append({"type": kind, "image": image, "caption": caption, "text": text, "captions": texts})
    rng.shuffle(items)
    return items


def _other_captions(item: Item) -> list[str]:
    return [text for text in item["captions"] if text != item["caption"]]


def _write_sheets(
    folder: Path, name: str, head: str, items: Sequence[tuple[int, Item]], context: Callable[[Item], Iterable[str]]
) -> None:
    for start in range(0, len(items), SHEET_ITEMS):
        texts = [
            "\n".join([f"{number}. {item['text'].strip()}", *(f"      | {text.strip()}" for text in context(item))])
            for number, item in items[start : start + SHEET_ITEMS]
        ]
        sheet = folder / f"{name}-{start // SHEET_ITEMS + 1}.txt"
        sheet.write_text("\n\n".join([head, *texts]) + "\n", encoding="utf-8")


def read_marks(path: Path) -> dict[int, str]:
    """Return the marks of each number that a reader wrote down.

    Raises:
        SystemExit: a line has another form, or an unknown mark.
    """
    marks: dict[int, str] = defaultdict(str)
    for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        number, *given = line.partition("#")[0].split()[:3] or [""]
        if not number:
            continue
        if not number.rstrip(".").isdigit() or not given or any(mark not in [*NATURALNESS, *TRUTH] for mark in given):
            raise SystemExit(f"{path}:{at}: expected a number and marks of {NATURALNESS}, {TRUTH}: {line!r}")
        marks[int(number.rstrip("."))] += "".join(given)
    return dict(marks)


def score_readings(key: Mapping[str, Item], readers: Sequence[Mapping[int, str]]) -> str:
    """Return Markdown tables of two or more readings: naturalness and truth by type, and the agreement."""
    kinds = sorted({item["type"] for item in key.values()}, key=lambda kind: (kind == UNTOUCHED, kind))
    numbers = {kind: [int(number) for number, item in key.items() if item["type"] == kind] for kind in kinds}
    edits = {kind: found for kind, found in numbers.items() if kind != UNTOUCHED}
    parts = [
        _by_type(readers, numbers, {"n": "natural", "o": "odd", "u": "ungrammatical"}, "n"),
        _by_type(readers, edits, {"f": "false", "p": "possibly true", "-": "does not apply"}, "p"),
        _agreement(readers),
    ]
    return "\n".join(parts)


def _by_type(
    readers: Sequence[Mapping[int, str]],
    numbers: Mapping[str, Sequence[int]],
    names: Mapping[str, str],
    first: str,
) -> str:
    # The mark `first` as the mean of the readers and where all agree, then each mark by reader.
    rows = []
    for kind, found in numbers.items():
        marked = [[_mark(reader, number, names) for number in found] for reader in readers]
        shares = {mark: [_share(marks, mark) for marks in marked] for mark in names}
        agreed = _share([set(marks) == {first} for marks in zip(*marked, strict=True) if all(marks)], True)
        cells = [fmean(shares[first]), agreed, *(share for each in shares.values() for share in each)]
        rows.append([kind, len(found), *map(percent, cells)])
    columns = [f"{name} {number}" for name in names.values() for number in range(1, len(readers) + 1)]
    return table(["type", "texts", f"{names[first]}, mean", f"{names[first]}, all readers", *columns], rows)


def _agreement(readers: Sequence[Mapping[int, str]]) -> str:
    rows = []
    for name, marks in (("naturalness", NATURALNESS), ("truth", TRUTH)):
        pairs = [
            (one, other)
            for number in readers[0]
            if (one := _mark(readers[0], number, marks)) and (other := _mark(readers[1], number, marks))
        ]
        observed = _share([one == other for one, other in pairs], True)
        expected = sum(
            _share([one for one, _ in pairs], mark) * _share([two for _, two in pairs], mark) for mark in marks
        )
        kappa = (observed - expected) / (1 - expected) if expected < 1 else 1.0
        rows.append([name, len(pairs), percent(observed), f"{kappa:.2f}"])
    return table(["readers 1 and 2", "texts", "agree", "Cohen's kappa"], rows)


def _mark(reader: Mapping[int, str], number: int, marks: Iterable[str]) -> str:
    known = set(marks)
    return next((mark for mark in reader.get(number, "") if mark in known), "")


def _share(marks: Sequence[object], wanted: object) -> float:
    given = [mark for mark in marks if mark != ""]
    return sum(mark == wanted for mark in given) / max(len(given), 1)


def main() -> None:
    """Print the tables of readings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("key", type=Path)
    parser.add_argument("readings", type=Path, nargs="+", help="one file per reader, at least two")
    asked = parser.parse_args()
    if len(asked.readings) < 2:
        parser.error("two readings are required")
    print(
        score_readings(json.loads(asked.key.read_text(encoding="utf-8")), [read_marks(path) for path in asked.readings])
    )


if __name__ == "__main__":
    main()
