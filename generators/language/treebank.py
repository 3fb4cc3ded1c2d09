"""Reader for CoNLL-U treebanks, on which the bundled tagger is trained and evaluated.

Multi-word tokens ("don't" = "do" + "n't") are returned as their words; empty nodes of the enhanced layer are skipped.
Only the columns FORM, XPOS and MISC are read. Format: universaldependencies.org/format.html.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pairwright.datasets.errors import InputError, MissingResourceError

_ID, _FORM, _XPOS, _MISC, _COLUMNS = 0, 1, 4, 9, 10


@dataclass(frozen=True, slots=True)
class TreebankSentence:
    """A tagged sentence: words, Penn Treebank tags, and whether a space follows each word."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spaces: tuple[bool, ...]

    @property
    def text(self) -> str:
        """The sentence as written."""
        return "".join(w + " " * s for w, s in zip(self.words, self.spaces, strict=True)).rstrip()


def read_treebank(path: Path) -> list[TreebankSentence]:
    """Return the sentences of a CoNLL-U file.

    Raises:
        MissingResourceError: the file does not exist.
        InputError: a line does not have ten columns.
    """
    if not path.is_file():
        raise MissingResourceError(
            f"{path} does not exist: pass a folder with train.conllu and dev.conllu of UD English EWT."
        )
    sentences = (_sentence(lines) for lines in _blocks(path))
    return [sentence for sentence in sentences if sentence.words]


def _blocks(path: Path) -> Iterator[list[list[str]]]:
    rows: list[list[str]] = []
    with path.open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if line.startswith("#"):
                continue
            if not line.strip():
                yield rows
                rows = []
                continue
            columns = line.rstrip("\n").split("\t")
            if len(columns) != _COLUMNS:
                raise InputError(
                    f"{len(columns)} columns, not {_COLUMNS}", where=f"{path}:{number}", fix="Is it a CoNLL-U file?"
                )
            rows.append(columns)
    yield rows


def _sentence(rows: list[list[str]]) -> TreebankSentence:
    words, tags, spaces = [], [], []
    inside_until, range_spaced = 0, True  # last word of the current multi-word token, and whether a space follows it
    for row in rows:
        if "-" in row[_ID]:
            inside_until, range_spaced = int(row[_ID].split("-")[1]), _spaced(row)
        elif "." not in row[_ID]:
            number = int(row[_ID])
            words.append(row[_FORM])
            tags.append(row[_XPOS])
            spaces.append(_spaced(row) if number > inside_until else number == inside_until and range_spaced)
    return TreebankSentence(tuple(words), tuple(tags), tuple(spaces))


def _spaced(row: list[str]) -> bool:
    return "SpaceAfter=No" not in row[_MISC]
