"""Questions over several documents, one of which answers them: NaturalQuestions' and SynthWiki's files (000, B.1).

- *.jsonl, .jsonl.gz*, as "Lost in the middle" (Liu et al. 2023) gives NaturalQuestions: ``question``, ``answers`` (a list
  of texts), ``ctxs`` (a list of ``title``, ``text``, ``isgold``). Distractors stand in the file's order, the most relevant
  first.
- *.csv, .tsv*, as SynthWiki: ``question``, ``answer``, and the passage in ``context``, ``wiki``, ``document`` or ``text``.
  Distractors are other rows' passages that do not hold the answer, drawn anew for each question.

A document is its title, when it has one, and its text.
"""

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.jsonl import read_jsonl
from pairwright.datasets.rejects import Reject
from pairwright.datasets.rng import make_rng

PASSAGE_KEYS = ("context", "wiki", "document", "text")


@dataclass(frozen=True, slots=True)
class MultiDocumentQuestion:
    """A question and what can be read for it.

    Attributes:
        text: what is asked.
        answers: any of which is right.
        gold: the document that answers it.
        distractors: documents that do not, in the order in which they are to stand.
    """

    text: str
    answers: tuple[str, ...]
    gold: str
    distractors: tuple[str, ...]

    def documents(self, count: int, position: int) -> list[str]:
        """Return ``count`` documents, the gold one at ``position``, from 0."""
        others = list(self.distractors[: count - 1])
        return [*others[:position], self.gold, *others[position:]]


def read_questions(
    path: Path, documents: int, *, limit: int = 0, seed: int = 0
) -> tuple[list[MultiDocumentQuestion], int]:
    """Return the questions of a file that have enough documents, and how many have not.

    Args:
        path: see the module.
        documents: that a prompt is to hold, 2 at least.
        limit: questions at most, drawn by ``seed``; 0: all.
        seed: of what is drawn.

    Raises:
        UsageError: for another ending, or when no question has enough documents.
        InputError: when the file cannot be read or a row lacks something, naming the row.
    """
    if documents < 2:
        raise UsageError(f"{documents} documents: at least 2, one of which answers the question.")
    name = path.name.lower().removesuffix(".gz")
    if not name.endswith((".jsonl", ".csv", ".tsv")):
        raise UsageError(f"{path}: questions are in .jsonl, .jsonl.gz, .csv or .tsv files.")
    if not path.is_file():
        raise InputError("no such file", where=str(path), fix="Give the file of questions.")
    if name.endswith(".jsonl"):
        found = [_natural_question(row.fields, row.place) for row in _rows(path)]
    else:
        found = _synthwiki_questions(path, documents, seed)
    if not found:
        raise InputError("no question in it", where=str(path), fix="Give the file of questions.")
    enough = [one for one in found if len(one.distractors) >= documents - 1]
    if not enough:
        raise UsageError(f"{path}: no question has {documents} documents. Ask for fewer.")
    if limit and limit < len(enough):
        places = sorted(make_rng("questions", seed).sample(range(len(enough)), limit))
        enough = [enough[place] for place in places]
    return enough, len(found) - sum(len(one.distractors) >= documents - 1 for one in found)


def contains_answer(said: str, answers: Sequence[str]) -> bool:
    """Tell whether an answer stands in the first line of what was said (best-subspan accuracy, Liu et al. 2023).

    Both are lowered, and lose punctuation and articles.
    """
    line = _normalize(said.strip().partition("\n")[0])
    return any(_normalize(answer) in line for answer in answers if _normalize(answer))


def _normalize(text: str) -> str:
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def _rows(path: Path) -> Iterator[InputRow]:
    try:
        for row in read_jsonl(path):
            if isinstance(row, Reject):
                raise InputError(row.detail, where=row.place, fix="Mend or leave out this line.")
            yield row
    except OSError as error:
        raise InputError(f"cannot be read ({error})", where=str(path), fix="Check the path.") from None


def _natural_question(values: dict[str, Any], where: str) -> MultiDocumentQuestion:
    try:
        documents = [(_document(one), bool(one.get("isgold"))) for one in values["ctxs"]]
        answers, question = values["answers"], values["question"]
    except (KeyError, TypeError, AttributeError) as error:
        fix = "A row has question, answers and ctxs with title, text and isgold."
        raise InputError(f"no question over documents ({error})", where=where, fix=fix) from None
    gold = [text for text, is_gold in documents if is_gold]
    if len(gold) != 1:
        raise InputError(f"{len(gold)} gold documents", where=where, fix="Mark exactly one of ctxs by isgold.")
    if not (isinstance(question, str) and question.strip()):
        raise InputError("no question", where=where, fix="Write it as a text, or leave out this row.")
    if not (isinstance(answers, list) and any(_is_answer(answer) for answer in answers)):
        fix = 'Write them as a list of texts, as ["Anna"]: each is looked for in what the model says.'
        raise InputError(f"answers {str(answers)[:40]!r}", where=where, fix=fix)
    if blank := [number for number, (text, _) in enumerate(documents, 1) if not text]:
        raise InputError(f"document {blank[0]} has no text", where=where, fix="Leave it out of ctxs, or write it.")
    return MultiDocumentQuestion(
        question, tuple(filter(_is_answer, answers)), gold[0], tuple(text for text, is_gold in documents if not is_gold)
    )


def _is_answer(answer: object) -> bool:
    """Tell whether an answer is a text in which something is left to look for."""
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
        fix = "Check that each row has as many cells as the head, and texts with separators stand in quotes."
        raise InputError(f"cannot be read ({first})", where=str(path), fix=fix) from None
    passage = next((name for name in PASSAGE_KEYS if name in table.columns), None)
    if passage is None or not {"question", "answer"} <= set(table.columns):
        fix = f"Its columns are question, answer and one of {', '.join(PASSAGE_KEYS)}."
        raise InputError("no table of questions", where=str(path), fix=fix)
    rows = table.select("question", "answer", passage).rows()
    for number, cells in enumerate(rows, 1):
        if not all(cell and cell.strip() for cell in cells) or not _is_answer(cells[1]):
            fix = f"Fill in question, answer and {passage}, or leave out this row."
            raise InputError(f"row {number} under the head lacks a cell", where=str(path), fix=fix)
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
    unfit = _normalize(answer)
    found: list[str] = []
    for place in order.sample(range(len(passages)), len(passages)):
        if len(found) == count:
            break
        if passages[place] != gold and unfit not in _normalize(passages[place]):
            found.append(passages[place])
    return tuple(found)
