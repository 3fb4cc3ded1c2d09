"""Lazy lookup in lemminflect's dictionaries.

lemminflect parses both dictionaries completely at first use: 120,000 lines, which costs each process half a second and
about 100 MB, although few words are looked up. Here the lines are sorted, so that the lines of a word are found by
bisection; lemminflect parses them and handles unknown words. For an unknown word a network of lemminflect chooses the
style of its forms; most nouns have the same plural in each style, so they do not need it.
"""

import gzip
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final

WordForms = dict[str, tuple[str, ...]]

# Ends of nouns whose Greek or Latin plural is not the regular one.
_GREEK_OR_LATIN: Final = ("us", "ma", "a", "um", "on", "is", "men", "ex", "x")
_KNOWN: Final = "0.2.3"  # the version whose tables have this format; other versions are not changed


class SortedFormTable:
    """Replacement for the dict of word forms that lemminflect uses; implements only ``get``.

    Args:
        path: a gzipped table of lines whose first field is the word, followed by a comma.
        forms: parses a line to forms by tag or part of speech.
        fixed: words whose forms do not come from the table.
    """

    def __init__(self, path: Path, forms: Callable[[str], WordForms], fixed: Mapping[str, WordForms]) -> None:
        # As lines, not by word: bisection compares whole lines, without a key for each.
        self._lines = sorted(gzip.decompress(path.read_bytes()).decode().splitlines())
        self._forms, self._fixed = forms, fixed

    def get(self, word: str, default: WordForms) -> WordForms:
        """Return the forms of a word."""
        if word in self._fixed:
            return self._fixed[word]
        found: WordForms = {}
        for at in range(bisect_left(self._lines, f"{word},"), len(self._lines)):
            if self._lines[at].partition(",")[0] != word:
                break
            found.update(self._forms(self._lines[at]))
        return found or default


class InflectionStyles:
    """Replacement for the network that chooses the style of an unknown word's forms; implements only ``getStyle``.

    Args:
        load: loads the network.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    @cached_property
    def _network(self) -> Any:
        return self._load()

    def getStyle(self, word: str, pos: str) -> str | None:  # noqa: N802 - lemminflect's name
        """Return the style of a word with a universal tag: "reg" if it does not matter."""
        if pos in {"NOUN", "PROPN"} and not word.lower().endswith(_GREEK_OR_LATIN):
            return "reg"
        found: str | None = self._network.getStyle(word, pos)
        return found


def load_tables_lazily(lemminflect: ModuleType) -> None:
    """Replace lemminflect's dictionaries by lazy tables."""
    if lemminflect.__version__ != _KNOWN:
        return
    from lemminflect import config
    from lemminflect.codecs.InflectionLUCodec import InflectionLUCodec
    from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec
    from lemminflect.core.InflectionRules import MorphologyStyleModel
    from lemminflect.core.LexicalUtils import categoryToUPos

    def inflections(line: str) -> WordForms:
        return dict(InflectionLUCodec.fromString(line)[2])

    def lemmas(line: str) -> WordForms:
        _, category, forms = LemmaLUCodec.fromString(line)
        return {categoryToUPos(category): forms}

    auxiliaries = InflectionLUCodec.updateForAuxMod({})
    lemminflect.Inflections().morph_style_model = InflectionStyles(MorphologyStyleModel)
    lemminflect.Inflections().infl_dict = SortedFormTable(Path(config.inflection_lu_fn), inflections, auxiliaries)
    lemminflect.Lemmatizer().lemma_dict = SortedFormTable(Path(config.lemma_lu_fn), lemmas, {})
