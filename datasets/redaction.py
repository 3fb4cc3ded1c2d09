"""Redaction of values for publication: secrets, local paths, and credentials in URLs.

A dataset is published with its card and manifest. Its config may contain keys and passwords, its paths reveal who made
it and where, and image URLs may contain a password or a signature that opens a private bucket. `redact` handles a JSON
value (a config, the options of a generator), `redact_url` one URL.

- Members named like a secret (``api_key``, ``token``, ``password``, ``authorization``, ...) become ``(left out)``.
- Absolute paths, of POSIX and of Windows, and ``file:`` URLs keep only their last component.
- Other URLs, anywhere in a text, lose user, password, query and fragment.

Limits: a secret under a harmless name, or in the path of a URL, is not recognised.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

REDACTED = "(left out)"

_SECRET = re.compile(
    r"((api|access|account|private|secret|subscription)[_-]?keys?|token|secrets?|passw(or)?ds?|passphrase"
    r"|credentials?|authorization|cookies?)$",  # not "tokens": max_tokens counts words
    re.IGNORECASE,
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[^\s\"'<>]*|\bfile:/[^\s\"'<>]*", re.IGNORECASE)
_WHOLE_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+:)//(?P<authority>[^/\\?#]*)(?P<path>[^?#]*)", re.DOTALL)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(:\d*)?")


def redact(value: Any) -> Any:
    """Return a JSON value without anything that should not be published; see the module.

    Args:
        value: mappings, lists, tuples, strings, numbers, None; anything else (a path, a date) as its text.

    Returns:
        A new value of dicts, lists, strings, numbers and None. Empty secrets stay, as they reveal nothing.
    """
    if isinstance(value, Mapping):
        return {
            str(name): REDACTED if inner and _SECRET.search(str(name)) else redact(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    if isinstance(value, int | float) or value is None:
        return value
    return _redact_text(str(value))


def _redact_text(text: str) -> str:
    for path in (PurePosixPath(text), PureWindowsPath(text)):
        if path.is_absolute():
            return f".../{path.name}"
    return _URL.sub(lambda found: redact_url(found[0]), text)


def is_file_url(locator: str) -> bool:
    """Return whether a locator is a ``file:`` URL, which names a local path."""
    return locator[:6].lower() == "file:/"


def redact_url(url: str) -> str:
    """Return a URL without user, password, query and fragment; for a ``file:`` URL ``.../`` and its last component.

    If the host cannot be separated from a password, scheme and ``(left out)`` remain. Other texts are unchanged.
    """
    if is_file_url(url):
        return ".../" + re.split(r"[?#]", url, maxsplit=1)[0].rpartition("/")[2]
    parts = _WHOLE_URL.match(url)
    if parts is None:
        return url
    host = parts["authority"].rpartition("@")[2]
    if not _HOST.fullmatch(host):
        return f"{parts['scheme']}//{REDACTED}"
    return f"{parts['scheme']}//{host}{parts['path']}"
