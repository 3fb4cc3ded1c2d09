"""Rows that are given context: for each the captions of an index nearest to it, which a model reads with whatever it is asked.

Which ones they were is written beside the output, one line of JSON a row, in order:

    {"row": "...", "query": "...", "documents": [{"key": "...", "rank": 1, "score": 0.83}, ...]}

``row`` is the row's name: a pair's key, or for rationales the hash of the row's fields. Retrieval goes by batches, as rows
are begun.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.records import compact_json
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.document_steps import with_documents_in_step
from pairwright.generators.llm.documents import Document
from pairwright.generators.llm.nearest_captions import NearestCaptions
from pairwright.generators.llm.runner import LLMRow

T = TypeVar("T")

BATCH = 256  # rows that are looked up at a time


@dataclass(frozen=True)
class Context:
    """What rows are given to read.

    Attributes:
        index: folder of the index.
        count: captions a row.
        record: file that tells which; None: nobody asks, as in a plan.
    """

    index: Path
    count: int
    record: Path | None = None

    @cached_property
    def captions(self) -> NearestCaptions:
        """The open index.

        Raises:
            PairwrightError: it cannot be used.
        """
        return NearestCaptions.open(self.index, self.count)


class ContextProvider:
    """Gives rows their documents, for one pass over them, and writes the record when its ``with`` ends well.

    Args:
        context: where documents come from; None: rows are as they are.
    """

    def __init__(self, context: Context | None) -> None:
        self._context, self._stack = context, ExitStack()
        self._write: Callable[[str], object] = lambda _: None

    def __enter__(self) -> Self:
        """Open the index and the record.

        Raises:
            PairwrightError: the index cannot be used.
        """
        if self._context is not None:
            self._context.captions  # noqa: B018 - opened before anything is asked
            if self._context.record is not None:
                temporary = self._stack.enter_context(replace_atomically(self._context.record))
                self._write = self._stack.enter_context(temporary.open("w", encoding="utf-8")).write
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Put the record in place, or remove it."""
        self._stack.__exit__(kind, error, at)

    def rows(self, rows: Iterable[tuple[LLMRow[T], str, str]]) -> Iterator[LLMRow[T]]:
        """Yield the rows with their documents, of rows, texts by which to look them up, and keys of their pairs."""
        if self._context is None:
            yield from (row for row, _, _ in rows)
            return
        waiting = iter(rows)
        while batch := list(islice(waiting, BATCH)):
            found = self._context.captions.near([text for _, text, _ in batch], [key for _, _, key in batch])
            for (row, text, _), documents in zip(batch, found, strict=True):
                told = [{"key": each.key, "rank": rank, "score": each.score} for rank, each in enumerate(documents, 1)]
                self._write(compact_json({"row": row.name, "query": text, "documents": told}) + "\n")
                yield replace(row, talk=partial(_with_documents, row.talk, documents))


def _with_documents(talk: Callable[[int], LLMStep[T]], documents: Sequence[Document], attempt: int) -> LLMStep[T]:
    return with_documents_in_step(talk(attempt), documents)


def context_record_path(out: Path) -> Path:
    """Return where OUT's rows tell what they were given to read."""
    return out.with_suffix(".context.jsonl")
