"""Removal of HTML and hashtags from captions, and detection of captions without content.

Web captions often contain HTML entities and tags ("a &quot;throne&quot; &amp; a dog") and end with hashtags ("a dog #cute
#dog"), whose words are no part of the sentence. A pair's caption stays as written; questions and answers use the cleaned
text. Captions without content are placeholders for an empty field, the URL of the image, or its file name.
"""

import re
from html import unescape

from pairwright.generators.language.invisible_characters import remove_invisible

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_BREAK = re.compile(r"</?(?:br|p|div|li|ul|ol|tr|td|h[1-6])(?:\s[^<>]*)?/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:a|b|i|u|em|strong|span|font|small|big|mark|sub|sup|img)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_URL_OR_FILE = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://|www\.)\S+|\S+\.(?:jpe?g|png|gif|webp|bmp|tiff?|heic|avif)", re.IGNORECASE
)
_PLACEHOLDERS = frozenset(
    {"null", "none", "nil", "nan", "n/a", "na", "undefined", "untitled", "no caption", "no description"}
)
_HASHTAGS = re.compile(r"(?<=\S)(?:\s+#[^\W\d]\w*)+\s*$")  # at the end; "bus #42" is no hashtag


def clean_caption(caption: str) -> str:
    """Return a caption for questions and answers: `strip_html`, without the hashtags at its end."""
    return _HASHTAGS.sub("", strip_html(caption))


def strip_html(caption: str) -> str:
    """Return a caption with HTML entities decoded and without HTML tags and invisible characters."""
    text = remove_invisible(caption)
    if "&" not in text and "<" not in text:
        return text
    for _ in range(2):  # "&amp;quot;" occurs
        text = _ENTITY.sub(lambda found: unescape(found[0]), text)
    text = remove_invisible(_TAG.sub("", _BREAK.sub(" ", text)))
    return caption if text == caption else " ".join(text.split())


def has_content(text: str) -> bool:
    """Return whether a text has letters and is not a placeholder, a URL or a file name."""
    text = text.strip()
    if not any(map(str.isalpha, text)) or _URL_OR_FILE.fullmatch(text):
        return False
    return text.lower().strip(" .!?-_<>[]()\"'") not in _PLACEHOLDERS
