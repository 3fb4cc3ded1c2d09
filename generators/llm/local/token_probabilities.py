"""Log-probabilities of the tokens that a local model writes, in the form of OpenAI's API.

They are those of the model itself, before temperature and top_p. Beside the likeliest tokens, all tokens that stand for
given words are returned (``logprob_words``), however unlikely: the probability of an answer is then exact, where a server
gives the 20 likeliest tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.output.log_probabilities import token_word

PARAMETERS: Final = ("logprobs", "top_logprobs", "logprob_words")
MAX_TOP: Final = 20  # as of OpenAI's API


@dataclass(frozen=True, slots=True)
class TokenProbabilityRequest:
    """Which log-probabilities are returned for each token of an answer.

    Attributes:
        top: number of likeliest tokens.
        words: lower case; all tokens that stand for one are returned.
    """

    top: int
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenProbabilities:
    """A token of an answer with its natural log-probability, and (token, log-probability) of others, likeliest first."""

    token: str
    value: float
    others: tuple[tuple[str, float], ...]

    def described(self) -> dict[str, Any]:
        """Return an entry of ``logprobs.content`` of a chat completion."""
        others = [{"token": token, "logprob": value} for token, value in self.others]
        return {"token": self.token, "logprob": self.value, "top_logprobs": others}


def parse_request(parameters: Mapping[str, Any]) -> TokenProbabilityRequest | None:
    """Return what the parameters of a request ask for; None: no log-probabilities.

    Raises:
        UsageError: a value is invalid.
    """
    top, words = parameters.get("top_logprobs") or 0, parameters.get("logprob_words") or ()
    if isinstance(top, bool) or not isinstance(top, int) or not 0 <= top <= MAX_TOP:
        raise UsageError(f"top_logprobs {top!r}: expected an integer from 0 to {MAX_TOP}.")
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"logprob_words {words!r}: expected a list of words.")
    return TokenProbabilityRequest(top, tuple(map(token_word, words))) if parameters.get("logprobs") else None


class TokenProbabilityReader:
    """Reads log-probabilities off logits.

    Args:
        tokenizer: of the model.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._tokens: dict[tuple[str, ...], list[int]] = {}

    def read(self, likely: Any, token: int, wanted: TokenProbabilityRequest) -> TokenProbabilities:
        """Return what is wanted of a position.

        Args:
            likely: log-probabilities (vocabulary,).
            token: the one that was written.
            wanted: what to return.
        """
        import torch

        top = torch.topk(likely, min(wanted.top, len(likely))).indices.tolist()
        ids = dict.fromkeys([*top, *self._of_words(wanted.words)])
        values = sorted(((likely[each].item(), each) for each in ids), key=lambda found: (-found[0], found[1]))
        return TokenProbabilities(
            self._text(token), likely[token].item(), tuple((self._text(each), value) for value, each in values)
        )

    def _of_words(self, words: tuple[str, ...]) -> Sequence[int]:
        if words and words not in self._tokens:
            texts = self._tokenizer.batch_decode([[token] for token in range(len(self._tokenizer))])
            self._tokens[words] = [token for token, text in enumerate(texts) if token_word(text) in words]
        return self._tokens.get(words, ())

    def _text(self, token: int) -> str:
        return str(self._tokenizer.decode([token]))
