"""Estimates of the tokens of a text, an image, a request, without the vocabulary of the model.

Current vocabularies (100,000 to 200,000 entries) contain nearly every common English word with the space before it. So a
text is estimated by its parts: words by length, digits by threes, runs of punctuation, line ends and indents, and non-ASCII
characters by their UTF-8 bytes. `TOKENS_BY_WORD_LENGTH` was measured on English captions, questions and web text with a
vocabulary of 30,000 English word pieces, the rest with byte-level BPE of 60,000 entries that splits like OpenAI's
tokenizers. Compared with both, sums differ by 0-8 % on captions, questions, rationales and JSON of English, single texts by
1-7 % (median); characters / 4 differs by up to 32 % (docs/concepts/costs-and-cache.md). Other languages: 0.35 tokens per byte, with an error
of up to half.

- A chat has `TOKENS_PER_MESSAGE` tokens per message and `TOKENS_PER_CHAT` once, as in OpenAI's documentation.
- A schema is counted as its JSON.
- An image is counted by its size as sent and the rule of the model (`image_tokens`).

`max_prompt_tokens` is not an estimate but a bound: a token of a byte-level vocabulary covers at least one byte.
"""

import re
from functools import lru_cache

from pairwright.generators.llm.client.messages import Image, Reply, Request, Usage
from pairwright.generators.llm.image_tokens import DEFAULT_EDGE, ImageRule

TOKENS_PER_MESSAGE, TOKENS_PER_CHAT = 4, 3  # tokens of the chat format: per message, and once
DEFAULT_ANSWER_TOKENS = 200  # tokens of an answer without any information

# A chat template may add a system prompt (Qwen's has 20 tokens) and marks around each message.
MAX_CHAT_OVERHEAD, MAX_MESSAGE_OVERHEAD = 256, 16

# Tokens of an English word by its length; measured, see above.
TOKENS_BY_WORD_LENGTH = (0.0, 1.0, 1.0, 1.03, 1.02, 1.03, 1.07, 1.15, 1.2, 1.3, 1.32, 1.55, 1.7, 1.9, 2.2, 2.7)
_LONG = 0.28  # tokens of each further letter
_BYTE = 0.35  # tokens per byte of non-ASCII text

_WORDS = re.compile(r"[A-Za-z]+")
_DIGITS = re.compile(r"[0-9]{1,3}| (?=[0-9])")  # the token of a number does not include the space before it
_MARKS = re.compile(r"[!-/:-@\[-`{-~]+")
_LINES = re.compile(r"(?<=[A-Za-z0-9\s])[\r\n]+")  # after punctuation they are part of its token
_INDENTS = re.compile(r"[ \t]{2,}")
_EDGE = re.compile(r"\bedge=(\d+)\b")


@lru_cache(maxsize=2048)  # system texts and demonstrations come with every request
def estimate_tokens(text: str) -> float:
    """Return the estimated tokens of a text."""
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


def estimate_prompt_tokens(request: Request, rule: ImageRule) -> int:
    """Return the estimated tokens of the prompt of a request, images included, by the rule of the model for these."""
    tokens = float(TOKENS_PER_CHAT)
    for message in request.messages:
        tokens += TOKENS_PER_MESSAGE + estimate_tokens(message.text)
    if request.schema is not None:
        tokens += estimate_tokens(request.schema.shape.decode())
    return round(tokens) + estimate_image_tokens(request, rule)


def estimate_image_tokens(request: Request, rule: ImageRule) -> int:
    """Return the estimated tokens of the images of a request, by their sizes; an unknown size counts as the largest."""
    return sum(
        rule.tokens(image.width, image.height, low=image.detail == "low") if image.width else _most(image, rule)
        for message in request.messages
        for image in message.images
    )


def estimate_answer_tokens(request: Request) -> int:
    """Return the estimated tokens of the answer to a request: those of the expected answer."""
    tokens = round(estimate_tokens(request.expects)) + 1 if request.expects else DEFAULT_ANSWER_TOKENS
    most = max_answer_tokens(request)
    return tokens if most is None else min(tokens, most)


def max_answer_tokens(request: Request) -> int | None:
    """Return the maximum tokens of an answer that the request sets; None: unlimited."""
    most = request.parameters.get("max_completion_tokens") or request.parameters.get("max_tokens")
    return most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None


def max_prompt_tokens(request: Request, rule: ImageRule) -> int:
    """Return the maximum tokens of the prompt of a request: its bytes and an overhead."""
    tokens = MAX_CHAT_OVERHEAD
    for message in request.messages:
        tokens += MAX_MESSAGE_OVERHEAD + _bytes(message.text)
        for image in message.images:
            tokens += _most(image, rule)
    if request.schema is not None:
        tokens += 2 * len(request.schema.shape)  # as an instruction in the prompt it is indented
    return tokens


def estimate_usage(request: Request, reply: Reply, rule: ImageRule) -> tuple[Usage, bool]:
    """Return the tokens of an answer, and whether any of them is estimated because the server does not count."""
    usage = reply.usage
    if usage.prompt_tokens and (usage.completion_tokens or not (reply.text or reply.refusal)):
        return usage, False
    prompt = usage.prompt_tokens or estimate_prompt_tokens(request, rule)
    said = usage.completion_tokens or round(estimate_tokens(reply.text or reply.refusal))
    return Usage(prompt, said, usage.cached_tokens), True


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _most(image: Image, rule: ImageRule) -> int:
    found = _EDGE.search(image.form)
    return rule.most(int(found[1]) if found else DEFAULT_EDGE, low=image.detail == "low")
