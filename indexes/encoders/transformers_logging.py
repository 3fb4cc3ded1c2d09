"""Loads models without their libraries' progress bars and load reports: what is wrong with a load is raised instead."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Let transformers print nothing below an error within the block."""
    logging: Any = import_module("transformers.utils.logging")  # its functions are untyped
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
