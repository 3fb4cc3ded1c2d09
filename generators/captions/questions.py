"""Captions that ask ("What is the man holding?"): they state nothing, so no edit of them is true or false of the image.

Known by their first word and the mark at their end: "a bus by the curb??" states in doubt, and 'a sign says "Why?"'
states what is written there. One of a few thousand captions asks.
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


def asks(caption: str) -> bool:
    """Whether a caption is a question."""
    return "?" in caption and caption.rstrip(_BEHIND).endswith("?") and bool(_ASKS.match(caption.lstrip(_BEFORE)))
