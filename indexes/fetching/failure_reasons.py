"""What went wrong with a download, in one countable word, and whether it may pass.

img2dataset tells a failure as the text of an exception. Texts of our own opener begin with a reason
(`Refusal`); the others are Python's and the operating system's, and are known by their words.

A *passing* failure (timeout, busy server, lost connection, name server out) may succeed when it is tried again; a
missing page will not.
"""

import re

LOST_MESSAGE = "the downloader died before it told the outcome"

_OPENER_MESSAGE = re.compile(r"(?:<urlopen error )?\[(?P<reason>[a-z_]+)\] (?P<detail>.*?)>?", re.DOTALL)

# First match counts.
_MESSAGE_PATTERNS: tuple[tuple[str, str, bool], ...] = (
    ("X-Robots-Tag", "opted_out", False),
    ("is not allowed", "blocked_address", False),  # a redirect to file: or the like
    (r"HTTP Error (404|410)\b", "not_found", False),
    (r"HTTP Error (401|402|403|406|407|451)\b", "refused_by_server", False),
    (r"HTTP Error (408|425|429|5\d\d)\b", "server_busy", True),
    ("HTTP Error", "download_failed", False),
    ("CERTIFICATE_VERIFY_FAILED", "bad_certificate", False),
    ("timed out", "timed_out", True),
    (r"Errno -\d|Name or service|name resolution|nodename|getaddrinfo", "unknown_host", True),
    ("decoding error|OpenCV|cannot identify", "bad_image", False),
    ("too large", "image_too_large", False),
    (
        "refused|reset|unreachable|No route|Remote end closed|IncompleteRead|Broken pipe|EOF occurred|" + LOST_MESSAGE,
        "download_failed",
        True,
    ),
)
_COMPILED_PATTERNS = tuple(
    (re.compile(words, re.IGNORECASE), reason, passing) for words, reason, passing in _MESSAGE_PATTERNS
)
_TRANSIENT_REASONS = frozenset({"server_busy", "timed_out", "unknown_host", "download_failed"})


class DownloadError(OSError):
    """A download that our opener ends; its text says the reason in front, in brackets."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"[{reason}] {detail}")


def classify_failure(message: str, status: str = "failed_to_download") -> tuple[str, str, bool]:
    """Return (reason, detail, passing) of a failure that img2dataset tells.

    Args:
        message: its text.
        status: ``failed_to_download``, or ``failed_to_resize`` when the bytes came and were no use.

    Returns:
        A word of `rejects.REASONS`, the message, and whether trying again may help.
    """
    text = " ".join(message.split())
    if ours := _OPENER_MESSAGE.fullmatch(text):
        reason = ours["reason"]
        return reason, ours["detail"], reason in _TRANSIENT_REASONS
    for words, reason, passing in _COMPILED_PATTERNS:
        if words.search(text):
            return reason, text, passing
    return "bad_image" if status == "failed_to_resize" else "download_failed", text or "no message", False
