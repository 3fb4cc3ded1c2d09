"""A caption as one reads it on its page: signs for HTML's entities, its tags gone.

Captions from the web often stand as their page's source wrote them ("a &quot;throne&quot; &amp; a dog"). A pair's
caption stays as written; what questions and answers take from it is read here. And some are no caption at all but what
a table writes for an empty field, the address of the picture, or the name of its file.
"""

import re
from html import unescape

from pairwright.generators.language.invisible_characters import remove_invisible

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_BREAK = re.compile(r"</?(?:br|p|div|li|ul|ol|tr|td|h[1-6])(?:\s[^<>]*)?/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:a|b|i|u|em|strong|span|font|small|big|mark|sub|sup|img)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://|www\.)\S+|\S+\.(?:jpe?g|png|gif|webp|bmp|tiff?|heic|avif)", re.IGNORECASE
)
_NOTHING = frozenset(
    {"null", "none", "nil", "nan", "n/a", "na", "undefined", "untitled", "no caption", "no description"}
)


def strip_html(caption: str) -> str:
    """Return a caption without HTML's entities and tags and what nobody sees; one that has none, as it is."""
    text = remove_invisible(caption)
    if "&" not in text and "<" not in text:
        return text
    for _ in range(2):  # pages hold "&amp;quot;" too
        text = _ENTITY.sub(lambda found: unescape(found[0]), text)
    text = remove_invisible(_TAG.sub("", _BREAK.sub(" ", text)))
    return caption if text == caption else " ".join(text.split())


def has_content(text: str) -> bool:
    """Whether a text has words, and is more than a mark of an empty field, an address or the name of a file."""
    said = text.strip()
    if not any(map(str.isalpha, said)) or _ADDRESS.fullmatch(said):
        return False
    return said.lower().strip(" .!?-_<>[]()\"'") not in _NOTHING
