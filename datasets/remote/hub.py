"""The Hugging Face Hub as a place for datasets: ``hf://OWNER/NAME``; its errors as ours."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pairwright.datasets.errors import MissingResourceError, PairwrightError, StorageError, UsageError
from pairwright.datasets.redaction import redact

_URL = re.compile(r"hf://(?:datasets/)?(?!.*(?:--|\.\.))(\b[\w.-]+\b/\b[\w.-]{1,96}\b)/?")  # as the Hub has it


def is_hub(url: str) -> bool:
    """Return whether a URL is one of the Hub."""
    return url.lower().startswith("hf:")


def dataset_of(url: str) -> str:
    """Return owner and name of a dataset of the Hub.

    Raises:
        UsageError: for another URL.
    """
    found = _URL.fullmatch(url)
    if not found:
        raise UsageError(f"{url}: give hf://OWNER/NAME, a dataset of the Hugging Face Hub.")
    return found[1]


def check_hub(url: str) -> None:
    """Check that the Hub can be reached and knows the user, before a build.

    Raises:
        MissingResourceError: if huggingface_hub is not installed.
        StorageError: if the Hub refuses.
    """
    api = open_hub()
    with translate_hub_errors(dataset_of(url)):
        api.whoami()


def open_hub() -> Any:
    """Return huggingface_hub's `HfApi`.

    Raises:
        MissingResourceError: if huggingface_hub is not installed.
    """
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingResourceError("hf:// needs huggingface_hub. Run: pip install 'pairwright[hub]'") from None
    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"), library_name="pairwright")


@contextmanager
def translate_hub_errors(name: str) -> Iterator[None]:
    """Raise errors of huggingface_hub as `StorageError`; ``name`` is the dataset's."""
    try:
        yield
    except PairwrightError:
        raise
    except Exception as error:  # noqa: BLE001 - huggingface_hub passes on errors of its transports
        reason = redact(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
        fix = "Log in with `hf auth login`, or set HF_TOKEN to a token that may write; then run it again."
        raise StorageError(f"hf://{name}: {reason}. {fix}") from None
