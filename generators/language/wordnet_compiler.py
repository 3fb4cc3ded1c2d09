"""Compiler from WordNet's files, read with NLTK, to the table of `wordnet_table`.

Synsets are numbered by part of speech and offset, lemmas by their bytes, and every row without an order in WordNet is
sorted, so the output is deterministic. Instances (named people and places) are excluded: "crane" is not a writer. Takes
about 15 seconds.
"""

import io
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.generators.language.wordnet_table import LEXICAL_DOMAINS, POS, TABLE_VERSION

_WORDNET_POS: Final = ("n", "v", "a", "r")  # in the order of POS; "s", a satellite adjective, counts as "a"


@dataclass(frozen=True, slots=True)
class _Graph:
    """NLTK synset objects, numbered by part of speech and offset, and lemma numbers."""

    synsets: list[Any]
    number: dict[tuple[str, int], int]
    words: dict[str, int]

    def numbers(self, synsets: Iterable[Any]) -> list[int]:
        return sorted(self.number[_identity(synset)] for synset in synsets)  # NLTK's order is that of a set


def _identity(synset: Any) -> tuple[str, int]:
    return synset.pos().replace("s", "a"), synset.offset()


def _spelling(lemma: Any) -> str:
    return str(lemma.name()).replace("_", " ").lower()


def compile_table(root: Any, path: Path) -> None:
    """Read WordNet from ``root`` (an NLTK path pointer) and write the table to ``path``."""
    reader = _reader(root)
    synsets = sorted(
        reader.all_synsets(), key=lambda synset: (_WORDNET_POS.index(_identity(synset)[0]), synset.offset())
    )
    spelled = sorted({_spelling(lemma) for synset in synsets for lemma in synset.lemmas()}, key=str.encode)
    graph = _Graph(
        synsets,
        {_identity(synset): at for at, synset in enumerate(synsets)},
        {word: at for at, word in enumerate(spelled)},
    )
    arrays = {"version": np.array(TABLE_VERSION)} | _lemma_arrays(spelled) | _sense_arrays(reader, graph)
    arrays |= _synset_arrays(graph) | _antonym_arrays(graph)
    with replace_atomically(path) as temporary, temporary.open("wb") as handle:
        np.savez(handle, allow_pickle=False, **arrays)


def _reader(root: Any) -> Any:
    """Return NLTK's reader for English only, with files in memory, since NLTK's own streams are slow."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class EnglishReader(WordNetCorpusReader):  # type: ignore[misc]
        def open(self, file: str) -> io.StringIO:
            with root.join(file).open() as handle:
                return io.StringIO(
                    handle.read().decode("latin-1")
                )  # one character for each byte keeps the file offsets

        def map_wn(self, version: str = "wordnet") -> None:
            """Skip the mapping to other versions, needed only for other languages."""

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about missing other languages
        return EnglishReader(root, None)


def _rows(name: str, rows: list[list[int]]) -> dict[str, NDArray[Any]]:
    """Return rows of unequal length as one flat array and the start of each row."""
    lengths = np.cumsum([0, *(len(row) for row in rows)], dtype=np.uint32)
    return {f"{name}_at": lengths, name: np.array([value for row in rows for value in row], dtype=np.uint32)}


def _lemma_arrays(words: list[str]) -> dict[str, NDArray[Any]]:
    encoded = [word.encode() for word in words]
    at = np.cumsum([0, *(len(word) for word in encoded)], dtype=np.uint32)
    return {"lemma_bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8), "lemma_at": at}


def _sense_arrays(reader: Any, graph: _Graph) -> dict[str, NDArray[Any]]:
    """Return the senses of each (lemma, part of speech) in WordNet's order, with their frequency counts."""
    with reader.open("cntlist.rev") as handle:
        counted = {fields[0]: int(fields[2]) for fields in (line.split() for line in handle)}
    senses: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    with reader.open("index.sense") as handle:
        for key, offset, rank, _ in (line.split() for line in handle):
            lemma, _, rest = key.partition("%")
            pos = (*_WORDNET_POS, "a")[int(rest[0]) - 1]
            word = graph.words[lemma.replace("_", " ").lower()]
            slot = word * len(POS) + _WORDNET_POS.index(pos)
            if graph.synsets[graph.number[pos, int(offset)]].instance_hypernyms():
                continue  # an instance
            senses[slot].append((int(rank), graph.number[pos, int(offset)], counted.get(key, 0)))
    rows = [sorted(senses.get(slot, ())) for slot in range(len(graph.words) * len(POS))]
    table = _rows("sense", [[synset for _, synset, _ in row] for row in rows])
    counts = np.array([count for row in rows for _, _, count in row], dtype=np.uint32)
    return {"sense_at": table["sense_at"], "sense_synset": table["sense"], "sense_count": counts}


def _synset_arrays(graph: _Graph) -> dict[str, NDArray[Any]]:
    up = [graph.numbers(synset.hypernyms()) for synset in graph.synsets]
    down: list[list[int]] = [[] for _ in graph.synsets]
    for synset, parents in enumerate(up):
        for parent in parents:
            down[parent].append(synset)
    domains = [LEXICAL_DOMAINS.index(synset.lexname()) for synset in graph.synsets]
    members = [[graph.words[_spelling(lemma)] for lemma in synset.lemmas()] for synset in graph.synsets]
    # `similar` is not read any more: it goes when the version of the table changes next.
    similar = [graph.numbers(synset.similar_tos() + synset.verb_groups()) for synset in graph.synsets]
    arrays = _rows("up", up) | _rows("down", down) | _rows("similar", similar) | _rows("member", members)
    return arrays | {"domain": np.array(domains, dtype=np.uint8)}


def _antonym_arrays(graph: _Graph) -> dict[str, NDArray[Any]]:
    """Return the antonyms of each lemma as (its synset, other lemma, synset of the other lemma)."""
    rows: list[list[tuple[int, int, int]]] = [[] for _ in graph.words]
    for number, synset in enumerate(graph.synsets):
        for lemma in synset.lemmas():
            for other in lemma.antonyms():
                target = graph.number[_identity(other.synset())]
                rows[graph.words[_spelling(lemma)]].append((number, graph.words[_spelling(other)], target))
    columns = [_rows("antonym", [[entry[column] for entry in sorted(row)] for row in rows]) for column in range(3)]
    return {"antonym_at": columns[0]["antonym_at"]} | {
        name: column["antonym"]
        for name, column in zip(("antonym_from", "antonym_to", "antonym_sense"), columns, strict=True)
    }
