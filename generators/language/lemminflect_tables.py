"""lemminflect's dictionaries, of which a line is read when its word is asked for.

lemminflect reads both whole when it is first asked: 120,000 lines, which takes each process half a second and some
hundred megabytes, though it asks for few words. The lines stand in the order of their words, so that those of a word are
found by bisection; what they mean, and what is not in them, is left to lemminflect.
"""

import gzip
from bisect import bisect_left
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Final

WordForms = dict[str, tuple[str, ...]]

_SORTED: Final = "0.2.3"  # the version whose tables are known to be in order; others are left as they are


class SortedFormTable:
    """Stands for a dictionary from words to their forms, as far as lemminflect asks for anything.

    Args:
        path: of a gzipped table, in the order of the words with which its lines begin.
        forms: of a line, by tag or part of speech.
        fixed: words whose forms do not come from the table.
    """

    def __init__(self, path: Path, forms: Callable[[str], WordForms], fixed: Mapping[str, WordForms]) -> None:
        self._lines = gzip.decompress(path.read_bytes()).decode().split("\n")
        self._lines.pop()  # what follows the last line's end
        self._forms, self._fixed = forms, fixed

    def get(self, word: str, default: WordForms) -> WordForms:
        """Return the forms of a word."""
        if word in self._fixed:
            return self._fixed[word]
        found: WordForms = {}
        for at in range(bisect_left(self._lines, word, key=_word), len(self._lines)):
            if _word(self._lines[at]) != word:
                break
            found.update(self._forms(self._lines[at]))
        return found or default


def _word(line: str) -> str:
    return line.partition(",")[0]


def load_tables_lazily(lemminflect: ModuleType) -> None:
    """Have lemminflect read from its tables what it is asked for."""
    if lemminflect.__version__ != _SORTED:
        return
    from lemminflect import config
    from lemminflect.codecs.InflectionLUCodec import InflectionLUCodec
    from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec
    from lemminflect.core.LexicalUtils import categoryToUPos

    def inflections(line: str) -> WordForms:
        return dict(InflectionLUCodec.fromString(line)[2])

    def lemmas(line: str) -> WordForms:
        _, category, forms = LemmaLUCodec.fromString(line)
        return {categoryToUPos(category): forms}

    auxiliaries = InflectionLUCodec.updateForAuxMod({})
    lemminflect.Inflections().infl_dict = SortedFormTable(Path(config.inflection_lu_fn), inflections, auxiliaries)
    lemminflect.Lemmatizer().lemma_dict = SortedFormTable(Path(config.lemma_lu_fn), lemmas, {})
