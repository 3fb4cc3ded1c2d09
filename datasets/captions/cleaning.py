"""Removal of what is no part of the sentence from captions of the web, and detection of captions without content.

Alternative texts of web pages have HTML entities and tags ("a &quot;throne&quot; &amp; a dog"), addresses, @mentions, emoji,
hashtags at the end ("a dog #cute #dog") and the notes of agencies and shops ("stock photo - image 12345", "| Etsy"). An edit
of such a caption is a sentence with the same remains, and a reader that sees `stock` learns nothing of the image.

Two uses. Questions and answers are always made of `clean_caption`, which removes HTML and hashtags. With the option
`clean_captions` of the reader, a pair's caption itself is `clean_web_caption`, which removes all of the above; without
it, a caption stays as written. Captions without content are placeholders for an empty field, the URL of the image, or its
file name.

Limits: English notes. Words of shops inside the sentence ("Buy ...", "wallpaper 1920x1080") stay.
"""

import re
from html import unescape

from pairwright.datasets.captions.invisible_characters import remove_invisible

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_BREAK = re.compile(r"</?(?:br|p|div|li|ul|ol|tr|td|h[1-6])(?:\s[^<>]*)?/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:a|b|i|u|em|strong|span|font|small|big|mark|sub|sup|img)(?:\s[^<>]*)?/?>", re.IGNORECASE)
_URL_OR_FILE = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://|www\.)\S+|\S+\.(?:jpe?g|png|gif|webp|bmp|tiff?|heic|avif)", re.IGNORECASE
)
_PLACEHOLDERS = frozenset(
    {"null", "none", "nil", "nan", "n/a", "na", "undefined", "untitled", "no caption", "no description"}
)
_FINAL_HASHTAG = re.compile(r"#[^\W\d]\w*")  # "bus #42" is no hashtag

_ADDRESS = re.compile(r"(?:\b(?:via|at|from|see)\s+)?(?:\bhttps?://|\bftp://|\bwww\.)\S+", re.IGNORECASE)
_MENTION = re.compile(r"(?:\bRT\s+)?(?<![\w.+-])@\w[\w.]*\w:?|\((?:photo|image|pic)?\s*(?:by|via)?\s*@\w+\)")
_HASHTAG = re.compile(r"(?<!\w)#(?=[^\W\d]\w*)")  # inside the sentence, where its word is part of it: "a #dog runs"
# Pictographs with their modifiers and joiners, flags, and dingbats; (c), (R) and TM are no emoji.
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa]"
    "[\ufe0f\u200d\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
)
_SITES = (
    r"shutterstock|alamy|getty\s?images|istock(?:photo)?|dreamstime|depositphotos|123rf|adobe\s?stock|fotolia|bigstock|"
    r"etsy|ebay|amazon|aliexpress|walmart|pinterest|flickr|unsplash|pexels|pixabay|freepik|wikipedia|facebook|instagram|"
    r"twitter|youtube|tumblr|redbubble|zazzle"
)
_KINDS = r"(?:photo(?:graph|graphy|s)?|images?|pictures?|illustrations?|vectors?|vector\s+art|clip\s?art|footage)"
_STOCK_NOTE = rf"(?:royalty[\s-]free(?:\s+stock)?|stock)\s+{_KINDS}"
_OFFER = r"download\s+image\s+now|free\s+download|buy\s+now"
_NUMBER_NOTE = rf"(?:{_KINDS}|id)\s*(?:no\.?|number)?\s*[#:-]?\s*\d{{4,}}"
# At the end, repeatedly: "..., royalty free stock photo - image 45231234". A stock note needs no mark before it.
_NOTE = re.compile(
    rf"(?:(?:\s*[-–—,:;(\[|/]\s*|\s+){_STOCK_NOTE}(?:\s*[#:-]?\s*\d{{3,}})?"
    rf"|\s*[-–—,:;(\[|/]\s*(?:{_NUMBER_NOTE}|{_OFFER}|(?:by\s+|on\s+|from\s+|at\s+|©\s*)?(?:{_SITES})(?:\.com)?))\s*[)\].]*\s*$",
    re.IGNORECASE,
)
_SIGN = re.compile(rf"[^ -~]|[&<@#|]|://|www\.|\d\d\d|stock|royalty|download|buy now|(?:{_SITES})", re.ASCII)
"""What a text in lower case with anything to remove has; the other patterns take ten times as long."""
_SITE_SEPARATOR = " | "  # before the names of sites and shelves; no sentence has it
_MIN_WORDS = 3  # before a separator, of which the title may come last
_LEFT_OVER = " \t-–—,:;|/"


def clean_caption(caption: str) -> str:
    """Return a caption for questions and answers: `strip_html`, without the hashtags at its end."""
    return _without_final_hashtags(strip_html(caption))


def clean_web_caption(caption: str) -> str:
    """Return a caption without HTML, addresses, mentions, hashtags, emoji and the notes of agencies and shops.

    A caption without any of them is returned unchanged, and one of which nothing is left is empty.
    """
    if not _SIGN.search(caption.lower()):
        return caption
    written = " ".join(caption.split())  # patterns take the square of the length of a gap
    text = strip_html(written)
    text = _ADDRESS.sub(" ", text) if "://" in text or "www." in text.lower() else text
    text = _MENTION.sub(" ", text) if "@" in text else text
    text = _HASHTAG.sub("", _without_final_hashtags(text)) if "#" in text else text
    text = text if text.isascii() else _EMOJI.sub(" ", text)
    text = _without_notes(text)
    return caption if text == written else " ".join(text.split()).strip(_LEFT_OVER)


def _without_final_hashtags(text: str) -> str:
    """Return a text without the hashtags at its end; one of hashtags alone keeps the first."""
    rest = text
    while len(words := rest.rsplit(None, 1)) > 1 and _FINAL_HASHTAG.fullmatch(words[1]):
        rest = words[0]
    return rest


def _without_notes(text: str) -> str:
    first, separator, _ = text.lstrip(_LEFT_OVER).partition(_SITE_SEPARATOR)
    text = first if separator and len(first.split()) >= _MIN_WORDS else text
    while found := _NOTE.search(text.rstrip(_LEFT_OVER)):
        text = text[: found.start()]
    return text


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
