"""Imports spaCy without its command line, which takes 40% of the time that the import takes.

``spacy/__init__.py`` imports one name from ``spacy.cli.info``, and with it all commands, an HTTP client and a
project manager. While spaCy is imported a stand-in module answers for that name; then it is taken away, so that whoever
imports ``spacy.cli`` later gets the real one.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_COMMANDS, _INFO = "spacy.cli", "spacy.cli.info"


def import_spacy() -> Any:
    """Return the module ``spacy``."""
    if "spacy" in sys.modules:
        return sys.modules["spacy"]
    commands, info = ModuleType(_COMMANDS), ModuleType(_INFO)
    commands.__path__ = []
    info.info = _later  # type: ignore[attr-defined]
    sys.modules[_COMMANDS], sys.modules[_INFO] = commands, info
    try:
        spacy = importlib.import_module("spacy")
    finally:
        del sys.modules[_COMMANDS], sys.modules[_INFO]
    if getattr(spacy, "cli", None) is commands:
        del spacy.cli
    return spacy


def _later(*arguments: Any, **named: Any) -> Any:
    """Stand for ``spacy.info``: the real one, imported when it is called."""
    return importlib.import_module(_INFO).info(*arguments, **named)
