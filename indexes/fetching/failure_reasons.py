"""Classification of download failures: reason code, and whether the failure is transient.

img2dataset reports a failure as the text of an exception. Texts of `http_opener` begin with a reason (`DownloadError`);
those of Python and the operating system are recognised by patterns.

A *transient* failure (timeout, busy server, lost connection, name server down) may succeed on retry; a missing page
will not.
"""

import re

LOST_MESSAGE = "the downloader died before it reported the outcome"

_OPENER_MESSAGE = re.compile(r"(?:<urlopen error )?\[(?P<reason>[a-z_]+)\] (?P<detail>.*?)>?", re.DOTALL)

# (pattern, reason, transient); the first match counts.
_MESSAGE_PATTERNS: tuple[tuple[str, str, bool], ...] = (
    ("X-Robots-Tag", "opted_out", False),
    ("is not allowed", "blocked_address", False),  # such as a redirect to file:
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
    (re.compile(pattern, re.IGNORECASE), reason, transient) for pattern, reason, transient in _MESSAGE_PATTERNS
)
_TRANSIENT_REASONS = frozenset({"server_busy", "timed_out", "unknown_host", "download_failed"})


class DownloadError(OSError):
    """A download ended by `http_opener`; its text begins with the reason in brackets."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"[{reason}] {detail}")


def classify_failure(message: str, status: str = "failed_to_download") -> tuple[str, str, bool]:
    """Classify a failure reported by img2dataset.

    Args:
        message: error text.
        status: ``failed_to_download``, or ``failed_to_resize`` if the downloaded bytes are not usable.

    Returns:
        Reason code of `rejects.REASONS`, message, and whether the failure is transient.
    """
    text = " ".join(message.split())
    if ours := _OPENER_MESSAGE.fullmatch(text):
        reason = ours["reason"]
        return reason, ours["detail"], reason in _TRANSIENT_REASONS
    for pattern, reason, transient in _COMPILED_PATTERNS:
        if pattern.search(text):
            return reason, text, transient
    return "bad_image" if status == "failed_to_resize" else "download_failed", text or "no message", False
