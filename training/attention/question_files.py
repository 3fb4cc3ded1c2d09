"""Readers for questions over several documents: NaturalQuestions' and SynthWiki's files (000, B.1).

Both may be compressed.

- *.jsonl*, as NaturalQuestions in "Lost in the middle" (Liu et al. 2023): ``question``, ``answers`` (a list of
  texts), ``ctxs`` (a list of ``title``, ``text``, ``isgold``). Distractors keep the file's order, most relevant first.
- *.csv, .tsv*, as SynthWiki: ``question``, ``answer``, and the passage in ``context``, ``wiki``, ``document`` or ``text``.
  Distractors are passages of other rows without the answer, drawn for each question.

A document is its title, if any, and its text.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.jsonl import read_jsonl
from pairwright.datasets.readers.text_files import strip_compression
from pairwright.datasets.rejects import Reject
from pairwright.datasets.rng import make_rng

PASSAGE_KEYS = ("context", "wiki", "document", "text")


@dataclass(frozen=True, slots=True)
class MultiDocumentQuestion:
    """A question with its documents."""

    text: str  # the question
    answers: tuple[str, ...]  # acceptable answers
    gold: str  # the document with the answer
    distractors: tuple[str, ...]  # documents without it, in order

    def documents(self, count: int, position: int) -> list[str]:
        """Return ``count`` documents, the gold one at ``position``, from 0."""
        others = list(self.distractors[: count - 1])
        return [*others[:position], self.gold, *others[position:]]


def read_questions(
    path: Path, documents: int, *, limit: int = 0, seed: int = 0
) -> tuple[list[MultiDocumentQuestion], int]:
    """Return the questions of a file that have enough documents, and the number of the others.

    ``limit`` is the maximum number of questions, sampled by ``seed``; 0: all.
    """
    if documents < 2:
        raise UsageError(f"{documents} documents: must be at least 2.")
    name = strip_compression(path.name.lower())
    if not name.endswith((".jsonl", ".csv", ".tsv")):
        raise UsageError(
            f"{path}: unsupported extension. Use .jsonl, .csv or .tsv, which may be compressed (.gz, .bz2, .xz, .zst)."
        )
    if not path.is_file():
        raise InputError("no such file", where=str(path), fix="Check the path.")
    if name.endswith(".jsonl"):
        found = [_natural_question(row) for row in read_jsonl(path)]
    else:
        found = _synthwiki_questions(path, documents, seed)
    if not found:
        raise InputError("no questions", where=str(path), fix="Pass a file of questions.")
    enough = [one for one in found if len(one.distractors) >= documents - 1]
    if not enough:
        raise UsageError(f"{path}: no question has {documents} documents. Set fewer --documents.")
    if limit and limit < len(enough):
        places = sorted(make_rng("questions", seed).sample(range(len(enough)), limit))
        enough = [enough[place] for place in places]
    return enough, len(found) - sum(len(one.distractors) >= documents - 1 for one in found)


def contains_answer(said: str, answers: Sequence[str]) -> bool:
    """Return whether the first line contains an answer, without case, punctuation and articles (best-subspan)."""
    line = _normalize(said.strip().partition("\n")[0])
    return any(_normalize(answer) in line for answer in answers if _normalize(answer))


def _normalize(text: str) -> str:
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def _natural_question(row: InputRow | Reject) -> MultiDocumentQuestion:
    if isinstance(row, Reject):
        raise InputError(row.detail, where=row.place, fix="Fix or remove this line.")
    values, where = row.fields, row.place
    try:
        documents = [(_document(one), bool(one.get("isgold"))) for one in values["ctxs"]]
        answers, question = values["answers"], values["question"]
    except (KeyError, TypeError, AttributeError) as error:
        fix = "A row needs question, answers and ctxs with title, text and isgold."
        raise InputError(f"invalid question ({error})", where=where, fix=fix) from None
    gold = [text for text, is_gold in documents if is_gold]
    if len(gold) != 1:
        raise InputError(f"{len(gold)} gold documents", where=where, fix="Mark exactly one of ctxs by isgold.")
    if not (isinstance(question, str) and question.strip()):
        raise InputError("no question", where=where, fix="Add it as a string, or remove this row.")
    if not (isinstance(answers, list) and any(_is_answer(answer) for answer in answers)):
        fix = 'Set a list of strings, such as ["Anna"].'
        raise InputError(f"invalid answers {str(answers)[:40]!r}", where=where, fix=fix)
    if blank := [number for number, (text, _) in enumerate(documents, 1) if not text]:
        raise InputError(
            f"document {blank[0]} has no text", where=where, fix="Add it, or remove the document from ctxs."
        )
    return MultiDocumentQuestion(
        question, tuple(filter(_is_answer, answers)), gold[0], tuple(text for text, is_gold in documents if not is_gold)
    )


def _is_answer(answer: object) -> bool:
    """Return whether an answer is a string that is not empty after normalization."""
    return isinstance(answer, str) and _normalize(answer) != ""


def _document(values: dict[str, Any]) -> str:
    title, text = str(values.get("title") or "").strip(), str(values["text"] or "").strip()
    return f"(Title: {title}) {text}" if title else text


def _synthwiki_questions(path: Path, documents: int, seed: int) -> list[MultiDocumentQuestion]:
    import polars as pl

    try:
        table = pl.read_csv(path, separator="\t" if ".tsv" in path.name.lower() else ",", infer_schema=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        first = str(error).strip().partition("\n")[0]
        fix = "Check that each row has as many cells as the header, and that texts with separators are quoted."
        raise InputError(f"cannot be read ({first})", where=str(path), fix=fix) from None
    passage = next((name for name in PASSAGE_KEYS if name in table.columns), None)
    if passage is None or not {"question", "answer"} <= set(table.columns):
        fix = f"It needs the columns question, answer and one of {', '.join(PASSAGE_KEYS)}."
        raise InputError("missing columns", where=str(path), fix=fix)
    rows = table.select("question", "answer", passage).rows()
    for number, cells in enumerate(rows, 1):
        if not all(cell and cell.strip() for cell in cells) or not _is_answer(cells[1]):
            fix = f"Fill in question, answer and {passage}, or remove this row."
            raise InputError(f"row {number} has an empty cell", where=str(path), fix=fix)
    passages = sorted({text for _, _, text in rows})
    return [
        MultiDocumentQuestion(
            question, (answer,), gold, _distractors(passages, gold, answer, documents - 1, ("distractors", seed, place))
        )
        for place, (question, answer, gold) in enumerate(rows)
    ]


def _distractors(
    passages: Sequence[str], gold: str, answer: str, count: int, names: tuple[str | int, ...]
) -> tuple[str, ...]:
    order = make_rng(*names)
    unwanted = _normalize(answer)
    found: list[str] = []
    for place in order.sample(range(len(passages)), len(passages)):
        if len(found) == count:
            break
        if passages[place] != gold and unwanted not in _normalize(passages[place]):
            found.append(passages[place])
    return tuple(found)
