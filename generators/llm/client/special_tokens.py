r"""Special tokens of chat templates in texts that are sent.

Servers turn ``<|image_pad|>``, ``<image>`` or ``[INST]`` in a message into the token of that name, whoever wrote it: one in a
caption ends a turn, or makes a server look for an image and answer with an error. Written as ``\u003c|image_pad|>``
they are plain text, which within JSON still means the same.
"""

import re

_BEGIN = re.compile(r"<(?=[|｜]|/?[A-Za-z_][\w-]{0,40}>)|\[(?=/?[A-Z][A-Z_]{0,40}\])")


def escape_special_tokens(text: str) -> str:
    """Return the text with the first character of each special token written as a JSON escape."""
    return _BEGIN.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if "<" in text or "[" in text else text
