"""Why a request got no answer, in words of a closed set.

A `Failure` is one row's, unless it is *fatal*: then no request of the run can fare better, and the run stops with
its one line. A *transient* one may pass by itself, so the request is sent again. Everything else is the row's own
fault, and sending it again would be paid for in vain.

An answer that came whole is no failure here, even when it is a refusal or breaks off: it was paid for and is kept.
What to make of it is for the reader of answers to say.

    from pairwright.generators.llm.client.request_errors import Failure

    raise Failure("rate_limited", "429: too many requests", status=429, retry_after=2.0)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pairwright.datasets.errors import PairwrightError

Kind = Literal["transient", "row", "fatal"]

MAX_DETAIL_CHARS = 300  # letters of detail


@dataclass(frozen=True, slots=True)
class RequestErrorCode:
    """What a word means (a clause), whom it concerns, and how to mend it (a sentence)."""

    kind: Kind
    means: str
    fix: str


REQUEST_ERROR_CODES: Mapping[str, RequestErrorCode] = {
    "rate_limited": RequestErrorCode(
        "transient",
        "the server refuses more requests for now",
        "Lower the concurrency or the rate, or run again later.",
    ),
    "overloaded": RequestErrorCode(
        "transient", "the server is overloaded", "Lower the concurrency, or run again later."
    ),
    "server_error": RequestErrorCode(
        "transient", "the server had an error", "Run again; if it stays, look at the server's log."
    ),
    "timeout": RequestErrorCode(
        "transient", "no whole answer came in time", "Raise the timeout, or lower the concurrency."
    ),
    "unreachable": RequestErrorCode(
        "transient", "no connection could be made", "Check the base URL, and that the server runs."
    ),
    "connection_lost": RequestErrorCode("transient", "the connection broke before an answer", "Run again."),
    "cut_off": RequestErrorCode("transient", "the answer ended before it was whole", "Run again."),
    "not_json": RequestErrorCode(
        "transient", "the answer is not JSON", "Check that the base URL is that of the API and not of a page."
    ),
    "wrong_shape": RequestErrorCode(
        "transient", "the answer's JSON is no chat completion", "Check that the server speaks the OpenAI chat API."
    ),
    "no_choices": RequestErrorCode(
        "transient", "the answer holds no choice", "Run again; if it stays, look at the server's log."
    ),
    "bad_request": RequestErrorCode(
        "row", "the server calls the request invalid", "Mend the prompt, the parameters or the row."
    ),
    "bad_image": RequestErrorCode(
        "row", "an image of the request cannot be used", "Replace the image file, or leave the row out."
    ),
    "unsupported": RequestErrorCode(
        "row", "the server does not support something in the request", "Leave that parameter or the schema out."
    ),
    "schema_failed": RequestErrorCode(
        "row",
        "the model wrote nothing that fits the schema, and the server does not pass on anything else",
        "Show an example in the prompt, or ask for JSON in words with --structured json.",
    ),
    "context_too_long": RequestErrorCode(
        "row", "the messages are longer than the model's context", "Shorten the row or the prompt, or lower max_tokens."
    ),
    "request_too_large": RequestErrorCode(
        "row", "the request is larger than the server ever takes", "Shorten the row, or send smaller images."
    ),
    "content_filter": RequestErrorCode(
        "row", "the server's content filter stopped the request", "Leave the row out, or reword it."
    ),
    "answer_too_large": RequestErrorCode("row", "the answer is larger than any that is read", "Set max_tokens."),
    "bad_key": RequestErrorCode(
        "fatal", "the server does not accept the key", "Set OPENAI_API_KEY to a key of this server."
    ),
    "forbidden": RequestErrorCode("fatal", "the key may not do this", "Ask for access, or use another key or model."),
    "unsupported_endpoint": RequestErrorCode(
        "fatal",
        "the server does not offer this model for chat completions",
        "Name a chat model with --model, or start the server with a chat template.",
    ),
    "unknown_model": RequestErrorCode(
        "fatal", "the server has no such model", "Name one with --model that the server has."
    ),
    "wrong_url": RequestErrorCode(
        "fatal",
        "the base URL leads to no chat API",
        "Give the part that stands before /chat/completions, for example http://localhost:8000/v1.",
    ),
    "no_quota": RequestErrorCode(
        "fatal", "the account has no quota left", "Raise the account's limit or wait, then run again: answers are kept."
    ),
    "bad_certificate": RequestErrorCode(
        "fatal", "the server's certificate is not trusted", "Point SSL_CERT_FILE at the authority's certificates."
    ),
    "no_server": RequestErrorCode(
        "fatal",
        "no server answers at the base URL",
        "Start the server first, or correct --base-url or OPENAI_BASE_URL.",
    ),
    "server_down": RequestErrorCode(
        "fatal", "the server stayed away", "Start it, then run again: answers are kept and not asked for twice."
    ),
    "repeated_refusals": RequestErrorCode(
        "fatal",
        "the server refused every request",
        "Lower the concurrency or the rate, or run again later: answers are kept and not asked for twice.",
    ),
    "bad_batch": RequestErrorCode(
        "fatal", "the server refuses the batch", "Mend what it names, then run again: nothing of the batch was paid."
    ),
    "batch_cancelled": RequestErrorCode(
        "fatal", "the batch was cancelled", "Run again to send what is left: answers are kept and not paid twice."
    ),
    "over_budget": RequestErrorCode(
        "fatal", "the budget is spent", "Raise it, then run again: answers are kept and not paid twice."
    ),
    "interrupted": RequestErrorCode(
        "fatal", "the run was stopped", "Run again: answers are kept and not asked for twice."
    ),
}


class RequestError(PairwrightError):
    """A request that got no answer. ``detail`` is safe to show: whoever makes it has taken secrets out.

    Attributes:
        word: one of `REQUEST_ERROR_CODES`.
        said: what the server or the network said, on one line.
        detail: its first 300 letters.
        status: the HTTP status; 0 where there was none.
        retry_after: seconds that the server asks to wait; None where it did not say.
    """

    def __init__(self, word: str, detail: str = "", *, status: int = 0, retry_after: float | None = None) -> None:
        entry = REQUEST_ERROR_CODES[word]
        said = " ".join(detail.split())
        detail = said if len(said) <= MAX_DETAIL_CHARS else said[:MAX_DETAIL_CHARS] + "…"
        super().__init__(f"{entry.means}{f' ({detail})' if detail else ''}. {entry.fix}")
        self.word, self.said, self.detail, self.status, self.retry_after = word, said, detail, status, retry_after

    @property
    def transient(self) -> bool:
        """Whether the same request may fare better later."""
        return REQUEST_ERROR_CODES[self.word].kind == "transient"

    @property
    def fatal(self) -> bool:
        """Whether no request of this run can fare better."""
        return REQUEST_ERROR_CODES[self.word].kind == "fatal"

    @property
    def of_row(self) -> bool:
        """Whether this request itself is the cause."""
        return REQUEST_ERROR_CODES[self.word].kind == "row"

    @property
    def fix(self) -> str:
        """What to do, in a sentence."""
        return REQUEST_ERROR_CODES[self.word].fix

    def again(self) -> "RequestError":
        """Return the same failure, to be raised for another row: a shared one would gather every row's traceback."""
        return _unpickle_error(self.word, self.said, self.status, self.retry_after)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt from positional arguments when they come back from a worker process.
        return _unpickle_error, (self.word, self.said, self.status, self.retry_after)


def _unpickle_error(word: str, detail: str, status: int, retry_after: float | None) -> RequestError:
    return RequestError(word, detail, status=status, retry_after=retry_after)
