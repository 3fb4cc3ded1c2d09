"""The English tagger: spaCy's tokens and Penn Treebank tags, lemmas and universal tags from `lemmas.py`.

Which pipeline: the one named (argument, else ``PAIRWRIGHT_SPACY_MODEL``); else ``en_core_web_sm``, ``_md`` or
``_lg`` when installed; else the small one that comes with pairwright, trained on UD English EWT
(``models/en_ewt_small/card.json`` tells how well it does). What a pipeline has beside its tagger is not loaded.

spaCy is imported when the first tagger is loaded. A tagger pickles by name, so each worker process loads its
own; within a process threads may share it, since each call makes its own documents.
"""

import errno
import importlib.metadata
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.generators.language.invisible_characters import OffsetMap, has_invisible, remove_invisible
from pairwright.generators.language.lemmas import build_tokens, is_common_noun
from pairwright.generators.language.spacy_import import import_spacy
from pairwright.generators.language.tokens import Tagger, Token

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

BUNDLED_PIPELINE: Final = Path(__file__).parent / "models" / "en_ewt_small"
_SIBLINGS: Final = ("en_core_web_sm", "en_core_web_md", "en_core_web_lg")
_SYSTEM_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})  # no flaw of the pipeline
_UNUSED_COMPONENTS: Final = (
    "parser",
    "ner",
    "attribute_ruler",
    "lemmatizer",
    "morphologizer",
    "senter",
    "entity_ruler",
)
_BATCH: Final = 256
_MAX_LENGTH: Final = 100_000_000  # spaCy's limit is for parsers, which need more memory a character
_FEW: Final = 5  # letters
_CAPITALS_SHARE: Final = 0.8  # share of the letters in capitals
_NAMES_TO_NOUNS: Final = {"NNP": "NN", "NNPS": "NNS"}
_NAMES: Final = frozenset(_NAMES_TO_NOUNS)
_NAMES_AS_WELL: Final = frozenset(("china", "turkey", "mac"))
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class SpacyTagger:
    """A `Tagger` over a spaCy pipeline; built by `load_tagger`."""

    def __init__(self, source: str, nlp: "Language") -> None:
        self._source, self._nlp = source, nlp

    @property
    def name(self) -> str:
        """Name and version of the pipeline, as ``en_ewt_small 1.0.0``."""
        return f"{self._nlp.meta['lang']}_{self._nlp.meta['name']} {self._nlp.meta['version']}"

    def tag(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text, in order; spaces are not tokens."""
        with limit_blas_to_one_thread():
            if len(texts) == 1:  # setting up a pipe costs more than the tagging
                return [_tokens(texts[0], self._nlp(_normalize_capitals(texts[0])))]
            docs = self._nlp.pipe((_normalize_capitals(text) for text in texts), batch_size=_BATCH)
            return [_tokens(text, doc) for text, doc in zip(texts, docs, strict=True)]

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return load_tagger, (self._source,)


def _normalize_capitals(text: str) -> str:
    """Return what one sees of a text, in the same length, as the tagger knows texts: CAPITALS seem names to it."""
    # Half a surrogate pair, which torn files hold, is no text to spaCy; another sign stands in, at the same place.
    whole = text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", remove_invisible(text))
    if whole[1:].islower() or not _is_all_capitals(whole):
        return whole
    lower = whole.lower()
    return lower if len(lower) == len(whole) else whole  # a few letters are two in lower case


def _is_all_capitals(text: str) -> bool:
    """Whether nearly all letters of several words are capitals."""
    capitals = sum(map(str.isupper, text))
    return capitals > _FEW and capitals >= _CAPITALS_SHARE * sum(map(str.isalpha, text)) and " " in text.strip()


def _tokens(source: str, doc: "Doc") -> list[Token]:
    # One array of all attributes is much faster than asking token by token.
    strings = doc.vocab.strings
    rows = doc.to_array(["IDX", "LENGTH", "TAG", "IS_SPACE"]).tolist()
    found = [row for row in rows if not row[3]]
    spans = [(row[0], row[0] + row[1]) for row in found]
    if has_invisible(source):
        places = OffsetMap(source)
        spans = [places.written(*span) for span in spans]
    words = [source[start:end] for start, end in spans]
    tags = [strings[row[2]] for row in found]
    return build_tokens(words, [start for start, _ in spans], _correct_proper_nouns(words, tags))


def _correct_proper_nouns(words: Sequence[str], tags: list[str]) -> list[str]:
    """Return tags by which no noun in lower case is a name ("a snow covered | slope"), where a text writes capitals."""
    if not _NAMES.isdisjoint(tags) and words[0][:1].isupper():
        return [
            _NAMES_TO_NOUNS[tag] if tag in _NAMES and word.islower() and _is_common_noun_word(word) else tag
            for word, tag in zip(words, tags, strict=True)
        ]
    return tags


def _is_common_noun_word(word: str) -> bool:
    return is_common_noun(word) and word not in _NAMES_AS_WELL


def choose_pipeline(name: str = "") -> str:
    """Return what will be loaded: a package or folder name, or the path of the carried pipeline; loads nothing."""
    named = name or os.environ.get("PAIRWRIGHT_SPACY_MODEL", "")
    if named:
        return named
    return next((package for package in _SIBLINGS if importlib.util.find_spec(package)), str(BUNDLED_PIPELINE))


def load_tagger(name: str = "") -> Tagger:
    """Return the tagger; later calls with the same choice share it.

    Args:
        name: a spaCy pipeline (package or folder); empty for the order that the module tells.

    Raises:
        MissingResource: the named pipeline is not installed.
        UsageError: the pipeline has no tagger.
    """
    return _load(choose_pipeline(name))


@lru_cache(maxsize=4)
def _load(source: str) -> SpacyTagger:
    spacy = import_spacy()
    if not (Path(source).is_dir() or importlib.util.find_spec(source)):
        raise MissingResourceError(
            f"The spaCy pipeline {source!r} is not installed: `python -m spacy download {source}`, or unset "
            "PAIRWRIGHT_SPACY_MODEL to use the tagger that comes with pairwright."
        )
    try:
        with _use_numpy_matmul():
            nlp = spacy.load(source, exclude=_UNUSED_COMPONENTS)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _SYSTEM_ERRORS:
            raise
        raise MissingResourceError(
            f"The spaCy pipeline {source!r} does not load ({error}): install it again."
        ) from error
    if "tagger" not in nlp.pipe_names:
        raise UsageError(f"The spaCy pipeline {source!r} has no tagger: name one that gives Penn Treebank tags.")
    nlp.max_length = _MAX_LENGTH
    return SpacyTagger(source, nlp)


@contextmanager
def _use_numpy_matmul() -> Iterator[None]:
    """Let models that are loaded meanwhile multiply by NumPy, which is three times as fast as thinc's BLIS."""
    from thinc.api import NumpyOps, get_current_ops, set_current_ops

    before = get_current_ops()
    if isinstance(before, NumpyOps):
        set_current_ops(NumpyOps(use_blis=False))
    try:
        yield
    finally:
        set_current_ops(before)


def tagger_status(name: str = "") -> tuple[bool, str]:
    """Return whether the tagger that would be used is there, and one line about it; loads no spaCy."""
    source = choose_pipeline(name)
    if source == str(BUNDLED_PIPELINE):
        card = json.loads((BUNDLED_PIPELINE / "card.json").read_text(encoding="utf-8"))
        return (
            True,
            f"{card['name']} {card['version']} (carried; {card['xpos_accuracy']:.1%} of tags right on {card['measured_on']})",
        )
    if Path(source).is_dir():
        return True, f"{source} (folder)"
    if importlib.util.find_spec(source) is None:
        return False, f"{source} is not installed: `python -m spacy download {source}`"
    return True, f"{source} {importlib.metadata.version(source)}"
