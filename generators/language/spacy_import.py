"""Fast imports of spaCy and lemminflect, without the parts that tagging and inflection do not need.

``spacy/__init__.py`` imports one name from ``spacy.cli.info``, and with it all commands, an HTTP client and a project
manager, which take three quarters of the import time. During the import a stand-in module provides that name; it is
removed afterwards, so that later imports of ``spacy.cli`` get the real module.

thinc, on which spaCy is based, imports PyTorch if installed, for transformer pipelines: two seconds and 200 MB in each
process. Unless a package for such pipelines is installed or PyTorch is already imported, it is hidden from thinc.
PyTorch can still be imported afterwards.

lemminflect imports spaCy to add two unused methods to its tokens. Unless spaCy is already imported, it is hidden from
lemminflect, so that inflection does not load it; and its dictionaries are read lazily (`lemminflect_tables`).
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
_TRANSFORMER_PACKAGES: Final = ("spacy_transformers", "spacy_curated_transformers")


def import_spacy() -> Any:
    """Import and return the module ``spacy``."""
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
    """Import and return the module ``lemminflect``."""
    with _block_import("spacy"):
        lemminflect = importlib.import_module("lemminflect")
    load_tables_lazily(lemminflect)
    return lemminflect


def _lazy_info(*arguments: Any, **named: Any) -> Any:
    """Stand-in for ``spacy.info`` that imports the real one when called."""
    return importlib.import_module(_INFO).info(*arguments, **named)


class _BlockedImport(MetaPathFinder):
    """Import hook that hides a package from the thread that created the hook."""

    def __init__(self, package: str) -> None:
        self._package, self._thread = package, threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:  # noqa: ARG002 - the protocol's
        if name == self._package and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def _block_import(package: str) -> Iterator[None]:
    """Hide a package from this thread, unless it is already imported."""
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
    if any(map(find_spec, _TRANSFORMER_PACKAGES)):
        yield
        return
    with _block_import("torch"):
        yield
