"""Nearest captions of an index to texts, as documents for a model to read.

Excluded are the pair itself, captions equal to the text or to a closer one (ignoring case, spaces and a final full stop),
and pairs without a caption. A text gets fewer documents only if its nearest ``EXTRA_HITS * count`` captions have no more.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.documents import Document

if TYPE_CHECKING:
    from pairwright.indexes.building.open import IndexWithEncoder

EXTRA_HITS = 3  # times the count is retrieved, because of excluded captions


@dataclass(frozen=True)
class NearestCaptions:
    """Finds the nearest captions of texts.

    Attributes:
        opened: the index, with an encoder and with its pairs.
        count: documents per text, at least 1.
    """

    opened: "IndexWithEncoder"
    count: int

    @classmethod
    def open(cls, folder: Path, count: int) -> "NearestCaptions":
        """Open an index.

        Raises:
            UsageError: the count is less than 1, or the index keeps no pairs, or has no captions.
            StorageError: it cannot be read, or has no encoder.
            MissingResourceError: its encoder's packages or checkpoint are not there.
        """
        from pairwright.indexes.building.open import open_index_with_encoder  # imports all encoders

        if count < 1:
            raise UsageError(f"--context {count}: give the number of captions, 1 or more.")
        opened = open_index_with_encoder(folder)
        opened.query_encoder  # noqa: B018 - raises where there is none
        if not opened.index.info.pairs_files:
            raise UsageError(
                f"{folder}: keeps no pairs, so there are no captions to read. Build it without --no-pairs."
            )
        opened.index.pool("text")  # raises where there are no captions
        return cls(opened, count)

    @property
    def fingerprint(self) -> str:
        """Hash of index and count, for the identity of a run."""
        return blake2b(repr((sorted(self.opened.index.info.files.items()), self.count)).encode()).hexdigest()

    def near(self, texts: Sequence[str], keys: Sequence[str]) -> list[tuple[Document, ...]]:
        """Return for each text its documents, the nearest first.

        Args:
            texts: looked up.
            keys: of the pairs that the texts tell of, left out; "" for none.
        """
        if not texts:
            return []
        from pairwright.indexes.building.stored_pairs import map_captions_by_index

        index = self.opened.index
        hits = index.search(self.opened.query_encoder.encode_texts(texts), self.count * EXTRA_HITS + 1).frame()
        pairs = self.opened.pairs(hits["key"].unique(maintain_order=True).to_list())
        captions = map_captions_by_index(pairs) if pairs is not None else {}
        found: list[list[Document]] = [[] for _ in texts]
        for query, key, caption, score in hits.select("query", "key", "caption_index", "score").iter_rows():
            found[query].append(Document(key, captions.get((key, caption), ""), round(float(score), 6)))
        return [tuple(self._kept(*each)) for each in zip(texts, keys, found, strict=True)]

    def _kept(self, text: str, own: str, found: Sequence[Document]) -> Iterator[Document]:
        said, given = {_normalize(text), ""}, 0
        for document in found:
            plain = _normalize(document.text)
            if document.key == own or plain in said or given == self.count:
                continue
            said.add(plain)
            given += 1
            yield document


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(". ")
