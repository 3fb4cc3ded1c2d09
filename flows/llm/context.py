"""Context of rows: the nearest captions of an index, which the model reads with each request.

They are recorded in a file next to the output, one line of JSON per row, in order:

    {"row": "...", "query": "...", "documents": [{"key": "...", "rank": 1, "score": 0.83}, ...]}

``row`` is the name of the row: the key of a pair, or for rationales the hash of the row's fields. Captions are retrieved
in batches, as rows are started.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.records import compact_json
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.documents import Document, with_documents_in_step
from pairwright.generators.llm.nearest_captions import NearestCaptions

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH = 256  # rows per lookup


class ModelRow(NamedTuple, Generic[Item, Result]):
    """A row to ask a model about: one step about one or more items.

    Attributes:
        names: name of each item, unique in a run; names it in the file of failed rows. The first one names the row in
            messages.
        items: what the row is about.
        step: returns a new step for the attempt of each item (from 0), which returns a result for each.
        text: query for the nearest captions.
        key: key of the row's own pair, which is no context.
    """

    names: Sequence[str]
    items: Sequence[Item]
    step: Callable[[Sequence[int]], LLMStep[Sequence[Result]]]
    text: str
    key: str

    @property
    def name(self) -> str:
        """Name of the first item."""
        return self.names[0]


@dataclass(frozen=True)
class Context:
    """Where the context of rows comes from.

    Attributes:
        index: folder of the index.
        count: captions per row.
        record: file to record them in; None: not recorded, as in an estimate.
    """

    index: Path
    count: int
    record: Path | None = None

    @cached_property
    def captions(self) -> NearestCaptions:
        """The open index.

        Raises:
            PairwrightError: the index cannot be used.
        """
        return NearestCaptions.open(self.index, self.count)


class ContextProvider:
    """Adds context to the rows of one pass, and commits the record when its ``with`` ends without an error.

    Args:
        context: where it comes from; None: rows stay as they are.
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
            self._context.captions  # noqa: B018 - opened before any request
            if self._context.record is not None:
                temporary = self._stack.enter_context(replace_atomically(self._context.record))
                self._write = self._stack.enter_context(temporary.open("w", encoding="utf-8")).write
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Commit the record, or remove it after an error."""
        self._stack.__exit__(kind, error, at)

    def rows(self, rows: Iterable[ModelRow[Item, Result]]) -> Iterable[ModelRow[Item, Result]]:
        """Return the rows with their context."""
        return rows if self._context is None else self._with_context(self._context.captions, rows)

    def _with_context(
        self, captions: NearestCaptions, rows: Iterable[ModelRow[Item, Result]]
    ) -> Iterator[ModelRow[Item, Result]]:
        waiting = iter(rows)
        while batch := list(islice(waiting, BATCH)):
            found = captions.near([row.text for row in batch], [row.key for row in batch])
            for row, documents in zip(batch, found, strict=True):
                hits = [{"key": hit.key, "rank": rank, "score": hit.score} for rank, hit in enumerate(documents, 1)]
                self._write(compact_json({"row": row.name, "query": row.text, "documents": hits}) + "\n")
                yield row._replace(step=partial(_with_documents, row.step, documents))


def _with_documents(
    step: Callable[[Sequence[int]], LLMStep[Sequence[Result]]], documents: Sequence[Document], attempts: Sequence[int]
) -> LLMStep[Sequence[Result]]:
    return with_documents_in_step(step(attempts), documents)


def context_record_path(out: Path) -> Path:
    """Return the path of the file that records the context of the rows of ``out``."""
    return out.with_suffix(".context.jsonl")
