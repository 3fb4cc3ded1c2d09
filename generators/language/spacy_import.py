"""Imports spaCy without what tagging does not need, which takes three quarters of the time that the import takes.

``spacy/__init__.py`` imports one name from ``spacy.cli.info``, and with it all commands, an HTTP client and a
project manager. While spaCy is imported a stand-in module answers for that name; then it is taken away, so that whoever
imports ``spacy.cli`` later gets the real one.

thinc, on which spaCy stands, imports PyTorch where it is installed, for pipelines with transformers: two seconds, and a
fifth of a gigabyte in each process. Where nothing is installed that makes such pipelines run, and nobody has imported
PyTorch before, it is told that there is none. PyTorch itself can be imported afterwards as ever.

lemminflect imports spaCy too, to give its tokens two methods that nothing here uses. So that words can be inflected
where none are tagged, it is told that there is no spaCy, unless somebody has imported it before; and its dictionaries are
read as they are asked (`form_tables.py`).
"""

import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from pairwright.generators.language.lemminflect_tables import load_tables_lazily

_COMMANDS, _INFO = "spacy.cli", "spacy.cli.info"
_ASK_TORCH: Final = ("spacy_transformers", "spacy_curated_transformers")


def import_spacy() -> Any:
    """Return the module ``spacy``."""
    if "spacy" in sys.modules:
        return sys.modules["spacy"]
    commands, info = ModuleType(_COMMANDS), ModuleType(_INFO)
    commands.__path__ = []
    info.info = _lazy_info  # type: ignore[attr-defined]
    sys.modules[_COMMANDS], sys.modules[_INFO] = commands, info
    try:
        with _block_torch():
            spacy = importlib.import_module("spacy")
    finally:
        del sys.modules[_COMMANDS], sys.modules[_INFO]
    if getattr(spacy, "cli", None) is commands:
        del spacy.cli
    return spacy


@cache
def import_lemminflect() -> Any:
    """Return the module ``lemminflect``."""
    with _block_import("spacy"):
        lemminflect = importlib.import_module("lemminflect")
    load_tables_lazily(lemminflect)
    return lemminflect


def _lazy_info(*arguments: Any, **named: Any) -> Any:
    """Stand for ``spacy.info``: the real one, imported when it is called."""
    return importlib.import_module(_INFO).info(*arguments, **named)


class _BlockedImport(MetaPathFinder):
    """Finds no package of a name for the thread that made it; others may be importing it meanwhile."""

    def __init__(self, package: str) -> None:
        self._package, self._thread = package, threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002 - the protocol's
        if name == self._package and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def _block_import(package: str) -> Iterator[None]:
    """Hide a package that nobody has imported yet."""
    if package in sys.modules:
        yield
        return
    hidden = _BlockedImport(package)
    sys.meta_path.insert(0, hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(hidden)


@contextmanager
def _block_torch() -> Iterator[None]:
    if any(map(find_spec, _ASK_TORCH)):
        yield
        return
    with _block_import("torch"):
        yield
