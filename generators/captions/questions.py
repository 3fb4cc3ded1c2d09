"""Detection of captions that are questions ("What is the man holding?").

A question states nothing, so its edits are neither true nor false. Detected by the first word and a final question
mark: "a bus by the curb??" is an uncertain statement, and 'a sign says "Why?"' quotes. One of a few thousand captions
is one.
"""

import re

_ASKS = re.compile(
    r"(?:and|but|so|now|exactly|just)?\s*"
    r"(?:(?:what|who|whom|whose|which|where|when|why|how|is|are|was|were|do|does|did|has|have|had|would|could|should"
    r"|(?:is|are|was|were|do|does|did|has|have|had|would|could|should|can|wo)n['’]t)\b"
    r"|(?:can|will|may|must)\s+(?:i|you|he|she|it|we|they|the|this|that|these|those|an?|any\w+|some\w+)\b)",
    re.IGNORECASE,
)
_BEFORE = " \t\r\n\"'“‘(¿"
_BEHIND = " \t\r\n!.)"


def is_question(caption: str) -> bool:
    """Return whether a caption is a question."""
    return "?" in caption and caption.rstrip(_BEHIND).endswith("?") and bool(_ASKS.match(caption.lstrip(_BEFORE)))
