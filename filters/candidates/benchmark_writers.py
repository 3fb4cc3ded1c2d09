"""Writers of the layouts of published benchmarks: the way back from candidate rows (`benchmark_readers.py`).

What a reader renamed gets its name back; all other fields are as read. Rows of one question or group are one row again;
`complete_questions` removes those that lost a row, as a question with fewer options has another chance level.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl

from pairwright.datasets.atomic_files import write_bytes, write_text
from pairwright.datasets.errors import UsageError
from pairwright.filters.candidates.benchmark_readers import MMVP, UNTEMPLATED, whatsup_qa_image
from pairwright.filters.candidates.rows import candidate_rows

_GROUP_ROWS: Final = 2
_NEGBENCH: Final = ("image_path", "caption_0", "caption_1", "correct_answer", "correct_answer_template")
_OURS: Final = frozenset({"question"})  # fields that no benchmark has

FoundRow = tuple[dict[str, Any], dict[str, Any]]
"""A candidate row, and its other fields."""


def _written_rows(frame: pl.DataFrame) -> Iterator[FoundRow]:
    for extra, row in zip(frame["extra"], candidate_rows(frame), strict=True):
        yield row, orjson.loads(extra)


def _plain(more: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in more.items() if name not in _OURS}


def _question(more: Mapping[str, Any]) -> Mapping[str, Any]:
    found = more.get("question")
    return found if isinstance(found, Mapping) else {}


def _by_question(rows: Iterable[FoundRow], name: str) -> dict[str, list[FoundRow]]:
    """Return the rows of each question, by its ``choice`` or ``group``, in order; rows without one are left out."""
    found: dict[str, list[FoundRow]] = {}
    for row, more in rows:
        if name in _question(more):
            found.setdefault(str(_question(more)[name]), []).append((row, more))
    return found


def complete_questions(frame: pl.DataFrame) -> pl.Series:
    """Return which rows belong to a question or group that has all of its rows, bool (n,)."""
    rows = list(_written_rows(frame))
    whole: set[str] = set()
    for found in _by_question(rows, "group").values():
        whole |= {row["id"] for row, _ in found if len(found) == _GROUP_ROWS}
    for found in _by_question(rows, "choice").values():
        whole |= {row["id"] for row, more in found if len(found) + 1 == _question(more).get("options")}
    return frame["id"].is_in(sorted(whole))


def _dump(path: Path, rows: Any) -> None:
    write_bytes(path, orjson.dumps(rows, option=orjson.OPT_INDENT_2) + b"\n")


def write_plus_plus(frame: pl.DataFrame, path: Path) -> None:
    """Write rows with two true texts as SugarCrepe++: a list."""
    _dump(
        path,
        [
            {
                "id": row["id"],
                "filename": row["image"],
                "caption": row["caption"],
                "caption2": row["positive"],
                "negative_caption": row["negative"],
                **more,
            }
            for row, more in _written_rows(frame)
            if row["positive"]
        ],
    )


def write_valse(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as VALSE: an object by id."""
    _dump(
        path,
        {
            row["id"]: {
                "image_file": row["image"],
                "caption": row["caption"],
                "foil": row["negative"],
                "linguistic_phenomena": row["form"],
                **more,
            }
            for row, more in _written_rows(frame)
        },
    )


def write_aro(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as ARO's VG-Relation and VG-Attribution: a list."""
    _dump(
        path,
        [
            {
                "image_path": row["image"],
                "true_caption": row["caption"],
                "false_caption": row["negative"],
                **_plain(more),
            }
            for row, more in _written_rows(frame)
        ],
    )


def write_two_by_two(frame: pl.DataFrame, path: Path) -> None:
    """Write groups of two images and two captions as Winoground: a list."""
    _dump(
        path,
        [
            {
                "id": id_,
                "image_0": one["image"],
                "caption_0": one["caption"],
                "image_1": two["image"],
                "caption_1": two["caption"],
                "type": one["form"],
                **_plain(more),
            }
            for id_, ((one, more), (two, _)) in _by_question(_written_rows(frame), "group").items()
        ],
    )


def write_mmvp(frame: pl.DataFrame, path: Path) -> None:
    """Write groups as MMVP-VLM's Questions.csv, two lines each; images are ``TYPE/QUESTION ID.jpg``.

    Raises:
        UsageError: an image has another name.
    """
    lines: list[dict[str, Any]] = []
    for found in _by_question(_written_rows(frame), "group").values():
        for row, _ in found:
            image = Path(row["image"])
            if f"{row['form']}/{image.stem}.jpg" != row["image"]:
                raise UsageError(
                    f"{path}: MMVP-VLM's images are named by type and number, such as Color/7.jpg, and not {row['image']}. "
                    "Write .json (Winoground)."
                )
            lines.append(dict(zip(MMVP, (image.stem, row["form"], row["caption"]), strict=True)))
    _write_csv(path, MMVP, lines)


def _options(found: Sequence[FoundRow]) -> tuple[list[str], int]:
    """Return the texts of a question in their order, and the position of the right one."""
    wrong: dict[int, str] = {int(_question(more)["option"]): row["negative"] for row, more in found}
    right = next(at for at in range(len(wrong) + 1) if at not in wrong)
    caption: str = found[0][0]["caption"]
    return [wrong.get(at, caption) for at in range(len(wrong) + 1)], right


def write_whatsup(frame: pl.DataFrame, path: Path) -> None:
    """Write questions as What'sUp: a list, the right option first."""
    questions = _by_question(_written_rows(frame), "choice").values()
    _dump(
        path,
        [
            {"image_path": row["image"], "caption_options": _options(found)[0], **_plain(more)}
            for found in questions
            for row, more in found[:1]
        ],
    )


def write_whatsup_qa(frame: pl.DataFrame, path: Path) -> None:
    """Write rows as What'sUp's COCO-QA or VG-QA: a list of ``[image id, caption, negative]``.

    Raises:
        UsageError: an image is not named by its number as in this set.
    """
    rows: list[list[Any]] = []
    for row, _ in _written_rows(frame):
        number = re.sub(r"^0+(?=.)", "", Path(row["image"]).stem)
        given = int(number) if number.isdecimal() else number
        if whatsup_qa_image(given, path.name) != row["image"]:
            raise UsageError(
                f"{path}: {row['image']} is not named as the images of this set. Name a file of Visual Genome "
                "vg_qa_..., any other one otherwise."
            )
        rows.append([given, row["caption"], row["negative"]])
    _dump(path, rows)


def write_negbench(frame: pl.DataFrame, path: Path) -> None:
    """Write questions as NegBench's table of multiple choice."""
    lines: list[dict[str, Any]] = []
    for found in _by_question(_written_rows(frame), "choice").values():
        (row, more), (options, right) = found[0], _options(found)
        texts = {f"caption_{number}": text for number, text in enumerate(options)}
        form = "" if row["form"] == UNTEMPLATED else row["form"]
        answer = {"correct_answer": right, "correct_answer_template": form}
        lines.append({"image_path": row["image"], **texts, **answer, **_plain(more)})
    names = sorted({*_NEGBENCH, *(name for line in lines for name in line)}, key=_column_order)
    _write_csv(path, names, lines)


def _column_order(name: str) -> tuple[int, int, str]:
    """Return the sort key of a column: image, captions by number, answers, all others."""
    number = re.fullmatch(r"caption_(\d+)", name)
    known = {"image_path": 0, "correct_answer": 2, "correct_answer_template": 3}
    return (1, int(number[1]), "") if number else (known.get(name, 4), 0, name)


def _write_csv(path: Path, names: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> None:
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, names, restval="", lineterminator="\r\n")
    table.writeheader()
    table.writerows(lines)
    write_text(path, text.getvalue())
