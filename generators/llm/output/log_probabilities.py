"""Log-probabilities of tokens in chat completions: the top tokens of a position, and the word of a token."""

from typing import Any

import orjson

from pairwright.generators.llm.client.messages import Reply

_AROUND = " \t\n\"'.,!*▁Ġ"  # spaces as tokenizers write them, and marks


def token_word(token: str) -> str:
    """Return the word of a token in lower case, without spaces and marks around it."""
    return token.strip(_AROUND).lower()


def first_top_tokens(reply: Reply) -> list[tuple[str, float]]:
    """Return (token, natural log-probability) of the likeliest tokens at the first position; empty without."""
    try:
        first: Any = orjson.loads(reply.raw)["choices"][0]["logprobs"]["content"][0]
        return [(str(each["token"]), float(each["logprob"])) for each in first["top_logprobs"]]
    except (ValueError, LookupError, TypeError):
        return []
