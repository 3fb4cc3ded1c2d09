"""English tagger: tokens and Penn Treebank tags from spaCy, lemmas and universal tags from `lemmas`.

The pipeline is the named one (argument, or ``PAIRWRIGHT_SPACY_MODEL``); otherwise ``en_core_web_sm``, ``_md`` or
``_lg`` if installed; otherwise the small bundled one, trained on UD English EWT (accuracy in
``models/en_ewt_small/card.json``). Components other than the tagger are not loaded.

spaCy is imported when the first tagger is loaded, with the bundled pipeline when it first tags: a process that leaves
this to its workers never imports it. A tagger pickles by name, so each worker process loads its own; threads may share
one, since each call creates its own documents.
"""

import errno
import importlib.metadata
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import chain, compress, pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from pairwright.datasets.blas_threads import limit_blas_to_one_thread
from pairwright.datasets.captions.invisible_characters import OffsetMap, remove_invisible
from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.generators.language.distinct_windows import DistinctWindowTagger, distinct_window_tagger
from pairwright.generators.language.lemmas import build_tokens, is_common_noun
from pairwright.generators.language.spacy_import import import_spacy
from pairwright.generators.language.tokens import Tagger, Token

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

BUNDLED_PIPELINE: Final = Path(__file__).parent / "models" / "en_ewt_small"
_SIBLINGS: Final = ("en_core_web_sm", "en_core_web_md", "en_core_web_lg")
_SYSTEM_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})  # not caused by the pipeline
_UNUSED_COMPONENTS: Final = (
    "parser",
    "ner",
    "attribute_ruler",
    "lemmatizer",
    "morphologizer",
    "senter",
    "entity_ruler",
)
_BATCH: Final = 1024  # texts
_MAX_LENGTH: Final = 100_000_000  # characters; spaCy's lower default is for parsers
_MAX_INITIALISM_LETTERS: Final = 5  # up to here, capitals may be an initialism
_MIN_CAPITALS_SHARE: Final = 0.8  # of the letters
_NAMES_TO_NOUNS: Final = {"NNP": "NN", "NNPS": "NNS"}
_NAMES: Final = frozenset(_NAMES_TO_NOUNS)
_COMMON_OR_PROPER: Final = frozenset(("china", "turkey", "mac"))
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class SpacyTagger:
    """A `Tagger` with a spaCy pipeline; created by `load_tagger`."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lock = Lock()  # neither spaCy's vocabulary nor the limit of BLAS threads is made for several threads

    @property
    def name(self) -> str:
        """Name and version of the pipeline, such as ``en_ewt_small 1.0.0``."""
        meta = _bundled_meta() if self._source == str(BUNDLED_PIPELINE) else self.pipeline.meta
        return f"{meta['lang']}_{meta['name']} {meta['version']}"

    @cached_property
    def pipeline(self) -> "Language":
        """The loaded pipeline; errors as in `load_tagger`."""
        return _load_pipeline(self._source)

    @cached_property
    def _distinct(self) -> DistinctWindowTagger | None:
        return distinct_window_tagger(self.pipeline)

    def tag(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text; white space is no token."""
        with self._lock, limit_blas_to_one_thread():
            if len(texts) == 1:  # cheaper than `pipe`
                return [_tokens(texts[0], self.pipeline(_normalize_capitals(texts[0])))]
            distinct = dict.fromkeys(texts)  # a pool repeats captions, of an image or of the web
            known = dict(zip(distinct, self._tag_each(list(distinct)), strict=True))
            return [known[text].copy() for text in texts]

    def _tag_each(self, texts: Sequence[str]) -> Iterator[list[Token]]:
        written = map(_normalize_capitals, texts)
        if self._distinct is None:
            return map(_tokens, texts, self.pipeline.pipe(written, batch_size=_BATCH))
        made = [self.pipeline.make_doc(text) for text in written]
        batches = (made[start : start + _BATCH] for start in range(0, len(made), _BATCH))
        return map(_tokens, texts, made, chain.from_iterable(map(self._distinct.tags, batches)))

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return load_tagger, (self._source,)


def _normalize_capitals(text: str) -> str:
    """Return the visible text, in lower case if it is in capitals, which would be tagged as proper nouns."""
    # spaCy rejects lone surrogates, which occur in corrupt files; the replacement keeps the offsets.
    visible = text if text.isascii() else _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", remove_invisible(text))
    if visible[1:].islower() or not _is_all_capitals(visible):
        return visible
    lower = visible.lower()
    return lower if len(lower) == len(visible) else visible  # some letters become two in lower case


def _is_all_capitals(text: str) -> bool:
    """Return whether nearly all letters of several words are capitals."""
    capitals = sum(map(str.isupper, text))
    return (
        capitals > _MAX_INITIALISM_LETTERS
        and capitals >= _MIN_CAPITALS_SHARE * sum(map(str.isalpha, text))
        and " " in text.strip()
    )


def _tokens(source: str, doc: "Doc", given: Sequence[str] | None = None) -> list[Token]:
    """Return the tokens of a document, with the ``given`` tags or its own."""
    # Words are sliced: access by token, or an array of several attributes, takes three times as long.
    starts: list[int] = doc.to_array("IDX").tolist()
    visible = remove_invisible(source)
    words = [visible[start:end].rstrip() for start, end in pairwise([*starts, len(visible)])]  # white space is empty
    tags = list(compress([token.tag_ for token in doc] if given is None else given, words))
    starts, words = list(compress(starts, words)), list(filter(None, words))
    if len(visible) < len(source):
        places = OffsetMap(source)
        spans = [places.written(start, start + len(word)) for start, word in zip(starts, words, strict=True)]
        starts, words = [start for start, _ in spans], [source[start:end] for start, end in spans]
    return build_tokens(words, starts, _correct_proper_nouns(words, tags))


def _correct_proper_nouns(words: Sequence[str], tags: list[str]) -> list[str]:
    """Return the tags with lower-case nouns as common nouns ("a snow covered | slope"), if the text uses capitals."""
    if not _NAMES.isdisjoint(tags) and words[0][:1].isupper():
        return [
            _NAMES_TO_NOUNS[tag] if tag in _NAMES and word.islower() and _is_common_noun_word(word) else tag
            for word, tag in zip(words, tags, strict=True)
        ]
    return tags


def _is_common_noun_word(word: str) -> bool:
    return is_common_noun(word) and word not in _COMMON_OR_PROPER


def choose_pipeline(name: str = "") -> str:
    """Return the pipeline to load: a package or folder name, or the path of the bundled pipeline."""
    named = name or os.environ.get("PAIRWRIGHT_SPACY_MODEL", "")
    if named:
        return named
    return next((package for package in _SIBLINGS if importlib.util.find_spec(package)), str(BUNDLED_PIPELINE))


def load_tagger(name: str = "") -> Tagger:
    """Load a tagger; cached by pipeline.

    Args:
        name: a spaCy pipeline (package or folder); empty for the default (see the module).

    Raises:
        MissingResourceError: the named pipeline is not installed.
        UsageError: the pipeline has no tagger.
    """
    return _load(choose_pipeline(name))


@lru_cache(maxsize=4)
def _load(source: str) -> SpacyTagger:
    tagger = SpacyTagger(source)
    if source != str(BUNDLED_PIPELINE):
        tagger.pipeline  # noqa: B018 - reports errors of the user's pipeline
    return tagger


@lru_cache(maxsize=1)
def _bundled_meta() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BUNDLED_PIPELINE / "meta.json").read_text(encoding="utf-8"))
    return found


def _load_pipeline(source: str) -> "Language":
    spacy = import_spacy()
    if not (Path(source).is_dir() or importlib.util.find_spec(source)):
        raise MissingResourceError(
            f"The spaCy pipeline {source!r} is not installed: `python -m spacy download {source}`, or unset "
            "PAIRWRIGHT_SPACY_MODEL to use the tagger that comes with pairwright."
        )
    try:
        with _use_numpy_matmul():
            nlp: Language = spacy.load(source, exclude=_UNUSED_COMPONENTS)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _SYSTEM_ERRORS:
            raise
        raise MissingResourceError(
            f"The spaCy pipeline {source!r} cannot be loaded ({error}): reinstall it."
        ) from error
    if "tagger" not in nlp.pipe_names:
        raise UsageError(f"The spaCy pipeline {source!r} has no tagger: name one that gives Penn Treebank tags.")
    nlp.max_length = _MAX_LENGTH
    return nlp


@contextmanager
def _use_numpy_matmul() -> Iterator[None]:
    """Make models loaded in the context use NumPy for matrix products, three times as fast as thinc's BLIS."""
    from thinc.api import NumpyOps, get_current_ops, set_current_ops

    before = get_current_ops()
    if isinstance(before, NumpyOps):
        set_current_ops(NumpyOps(use_blis=False))
    try:
        yield
    finally:
        set_current_ops(before)


def tagger_status(name: str = "") -> tuple[bool, str]:
    """Return whether the tagger is installed, and one line about it, without importing spaCy."""
    source = choose_pipeline(name)
    if source == str(BUNDLED_PIPELINE):
        card = json.loads((BUNDLED_PIPELINE / "card.json").read_text(encoding="utf-8"))
        return (
            True,
            f"{card['name']} {card['version']} (bundled; {card['xpos_accuracy']:.1%} of tags right on {card['measured_on']})",
        )
    if Path(source).is_dir():
        return True, f"{source} (folder)"
    if importlib.util.find_spec(source) is None:
        return False, f"{source} is not installed: `python -m spacy download {source}`"
    return True, f"{source} {importlib.metadata.version(source)}"
