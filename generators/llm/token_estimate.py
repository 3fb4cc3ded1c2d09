"""About how many tokens a text, an image, a request take, without the model's own vocabulary.

Vocabularies of today's models (100,000 to 200,000 entries) hold nearly every common English word whole, with the space
before it. So a text is counted by what it is made of: words by their length, digits by threes, runs of punctuation,
line ends and indents, and what is not ASCII by its bytes in UTF-8. `TOKENS_BY_WORD_LENGTH` was measured on English captions, questions
and web text with a vocabulary of 30,000 English word pieces, the rest with byte-level BPE of 60,000 entries that splits
as OpenAI's tokenizers do. Against the two together the sums are off by 0-8 % on captions, questions, rationales and JSON
of English, single texts by 1-7 % (median); letters / 4 is off by up to 32 % (docs/concepts/costs-and-cache.md). Other languages: 0.35
tokens a byte, which may be off by half.

- A chat costs `TOKENS_PER_MESSAGE` tokens a message and `TOKENS_PER_CHAT` tokens once, as OpenAI's documentation of the chat format counts.
- A schema is counted as its JSON.
- An image is counted by its size and its model's rule (`prices.ImageRule`), as large as it is sent.

`max_prompt_tokens` is no estimate but a bound: a token of a byte-level vocabulary stands for at least one byte.
"""

import base64
import io
import re
from functools import lru_cache

from pairwright.generators.llm.client.messages import Image, Reply, Request, Usage
from pairwright.generators.llm.prices import ImageRule

TOKENS_PER_MESSAGE, TOKENS_PER_CHAT = 4, 3  # tokens that the chat's form adds: a message, and once
DEFAULT_ANSWER_TOKENS = 200  # tokens of an answer of which nothing at all is known
DEFAULT_IMAGE_EDGE = 1024  # pixels, of an image that says nothing about its size

# A template may put a system prompt of its own in front (Qwen's has 20 tokens), and marks around each message.
MAX_CHAT_OVERHEAD, MAX_MESSAGE_OVERHEAD = 256, 16

# Tokens of an English word by its letters; measured, see above.
TOKENS_BY_WORD_LENGTH = (0.0, 1.0, 1.0, 1.03, 1.02, 1.03, 1.07, 1.15, 1.2, 1.3, 1.32, 1.55, 1.7, 1.9, 2.2, 2.7)
_LONG = 0.28  # tokens of each letter from there on
_BYTE = 0.35  # tokens of a byte of what is not ASCII

_WORDS = re.compile(r"[A-Za-z]+")
_DIGITS = re.compile(r"[0-9]{1,3}| (?=[0-9])")  # a number does not take the space before it
_MARKS = re.compile(r"[!-/:-@\[-`{-~]+")
_LINES = re.compile(r"(?<=[A-Za-z0-9\s])[\r\n]+")  # behind a mark they are a part of its token
_INDENTS = re.compile(r"[ \t]{2,}")
_EDGE = re.compile(r"\bedge=(\d+)\b")


def estimate_tokens(text: str) -> float:
    """Return about how many tokens a text takes."""
    return _tokens(text) if len(text) > 200 else _counted(text)


@lru_cache(maxsize=2048)  # system texts and demonstrations come with every request
def _tokens(text: str) -> float:
    return _counted(text)


def _counted(text: str) -> float:
    last = len(TOKENS_BY_WORD_LENGTH) - 1
    tokens = 0.0
    for size in map(len, _WORDS.findall(text)):
        tokens += TOKENS_BY_WORD_LENGTH[size] if size <= last else TOKENS_BY_WORD_LENGTH[last] + _LONG * (size - last)
    tokens += len(_DIGITS.findall(text)) + len(_LINES.findall(text)) + len(_INDENTS.findall(text))
    for size in map(len, _MARKS.findall(text)):
        tokens += 1 if size <= 2 else (size + 1) // 2
    if not text.isascii():
        tokens += _BYTE * (len(text.encode("utf-8", "surrogatepass")) - sum(map(str.isascii, text)))
    return tokens


def estimate_prompt_tokens(request: Request, rule: ImageRule, *, measure: bool = False) -> int:
    """Return about how many tokens the server counts before its answer.

    Args:
        request: as it is sent.
        rule: how the model counts images.
        measure: whether images are encoded to learn their size; else each is taken to be as large as its form allows.

    Raises:
        Failure: ``bad_request`` when the pixels of an image that is measured cannot be decoded.
    """
    tokens = float(TOKENS_PER_CHAT)
    for message in request.messages:
        tokens += TOKENS_PER_MESSAGE + estimate_tokens(message.text)
        for image in message.images:
            tokens += rule.tokens(*_size(image)) if measure else rule.most(_edge(image))
    if request.schema is not None:
        tokens += estimate_tokens(request.schema.shape.decode())
    return round(tokens)


def estimate_answer_tokens(request: Request) -> int:
    """Return about how many tokens the answer to a request takes: as many as the one that it expects."""
    tokens = round(estimate_tokens(request.expects)) + 1 if request.expects else DEFAULT_ANSWER_TOKENS
    most = max_answer_tokens(request)
    return tokens if most is None else min(tokens, most)


def max_answer_tokens(request: Request) -> int | None:
    """Return the tokens that the request lets its answer take at most; None: it sets no limit."""
    most = request.parameters.get("max_completion_tokens") or request.parameters.get("max_tokens")
    return most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None


def max_prompt_tokens(request: Request, rule: ImageRule) -> int:
    """Return how many tokens a server may count before its answer, at most: no fewer than there are bytes."""
    tokens = MAX_CHAT_OVERHEAD
    for message in request.messages:
        tokens += MAX_MESSAGE_OVERHEAD + _bytes(message.text)
        for image in message.images:
            tokens += rule.most(_edge(image))
    if request.schema is not None:
        tokens += 2 * len(request.schema.shape)  # written out as an instruction it is indented
    return tokens


def estimate_usage(request: Request, reply: Reply, rule: ImageRule) -> tuple[Usage, bool]:
    """Return the tokens of an answer, and whether any of them had to be estimated since the server does not count."""
    usage = reply.usage
    if usage.prompt_tokens and (usage.completion_tokens or not (reply.text or reply.refusal)):
        return usage, False
    prompt = usage.prompt_tokens or estimate_prompt_tokens(request, rule)
    said = usage.completion_tokens or round(estimate_tokens(reply.text or reply.refusal))
    return Usage(prompt, said, usage.cached_tokens), True


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _edge(image: Image) -> int:
    found = _EDGE.search(image.form)
    return int(found[1]) if found else DEFAULT_IMAGE_EDGE


def _size(image: Image) -> tuple[int, int]:
    import PIL.Image

    with PIL.Image.open(io.BytesIO(base64.b64decode(image.data_url().partition(",")[2]))) as picture:
        return picture.size
