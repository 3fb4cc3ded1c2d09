"""Errors of requests without a response, with codes of a closed set.

A `RequestError` concerns one row unless it is *fatal*: then no request of the run can succeed, and the run stops. A
*transient* one may pass, so the request is retried. All others are the row's own fault; a retry would be billed in vain.

A complete response is no error here, even if it is a refusal or truncated: it was billed and is kept, and the
parser of answers decides about it.

    raise RequestError("rate_limited", "429: too many requests", status=429, retry_after=2.0)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pairwright.datasets.errors import PairwrightError

Kind = Literal["transient", "row", "fatal"]

MAX_DETAIL_CHARS = 300


@dataclass(frozen=True, slots=True)
class RequestErrorCode:
    """Meaning of a code (a clause), whom it concerns, and what to do (a sentence)."""

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
        "transient",
        "no complete answer came within the timeout",
        "Raise --timeout (in a config, `timeout` under llm), or lower the concurrency.",
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
        "transient", "the answer's JSON is not a chat completion", "Check that the server speaks the OpenAI chat API."
    ),
    "no_choices": RequestErrorCode(
        "transient", "the answer has no choices", "Run again; if it stays, look at the server's log."
    ),
    "bad_request": RequestErrorCode(
        "row", "the server calls the request invalid", "Correct the prompt, the parameters or the row."
    ),
    "bad_image": RequestErrorCode(
        "row", "an image of the request cannot be used", "Replace the image file, or remove the row."
    ),
    "unsupported": RequestErrorCode(
        "row", "the server does not support something in the request", "Remove that parameter or the schema."
    ),
    "schema_failed": RequestErrorCode(
        "row",
        "the model's output does not match the schema, and the server rejects it",
        "Show an example in the prompt, or request JSON in the prompt with --structured json.",
    ),
    "context_too_long": RequestErrorCode(
        "row",
        "the messages, or max_tokens, are longer than the model's context",
        "Shorten the row or the prompt, lower max_tokens, or start the server with more context.",
    ),
    "token_limit": RequestErrorCode(
        "row",
        "the model used all its tokens before the answer was whole, and the server rejects it",
        "Raise the token limit with --parameter max_tokens=N, or lower the reasoning effort.",
    ),
    "request_too_large": RequestErrorCode(
        "row", "the request is larger than the server accepts", "Shorten the row, or send smaller images."
    ),
    "content_filter": RequestErrorCode(
        "row", "the server's content filter stopped the request", "Remove the row, or reword it."
    ),
    "answer_too_large": RequestErrorCode("row", "the answer is larger than 32 MiB", "Set max_tokens."),
    "bad_key": RequestErrorCode(
        "fatal", "the server does not accept the key", "Set OPENAI_API_KEY to a key of this server."
    ),
    "forbidden": RequestErrorCode("fatal", "the key may not do this", "Ask for access, or use another key or model."),
    "unsupported_endpoint": RequestErrorCode(
        "fatal",
        "the server does not offer this model for chat completions",
        "Name a chat model with --model, or start the server with a chat template.",
    ),
    "no_image_input": RequestErrorCode(
        "fatal", "the model does not read images", "Name a model that does with --model, or do not send images."
    ),
    "unknown_model": RequestErrorCode(
        "fatal", "the server has no such model", "Name one with --model that the server has."
    ),
    "wrong_url": RequestErrorCode(
        "fatal",
        "the base URL is not a chat API",
        "Give the part before /chat/completions, for example http://localhost:8000/v1.",
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
        "fatal",
        "the server has stopped answering",
        "Start it or look at its log, then run again: answers are kept and not requested twice.",
    ),
    "repeated_refusals": RequestErrorCode(
        "fatal",
        "the server refused every request",
        "Lower the concurrency or the rate, or run again later: answers are kept and not requested twice.",
    ),
    "no_batches": RequestErrorCode(
        "fatal", "there is no Batch API at the base URL", "Run without --batch, or correct the base URL."
    ),
    "bad_batch": RequestErrorCode(
        "fatal",
        "the server refuses the batch",
        "Correct what it names, then run again: nothing of the batch was billed.",
    ),
    "batch_cancelled": RequestErrorCode(
        "fatal", "the batch was cancelled", "Run again to send what is left: answers are kept and not billed twice."
    ),
    "over_budget": RequestErrorCode(
        "fatal",
        "the budget allows no further request",
        "Raise --max-cost or --max-requests, then run again: answers are kept and not billed twice.",
    ),
    "interrupted": RequestErrorCode(
        "fatal", "the run was stopped", "Run again: answers are kept and not requested twice."
    ),
}


class RequestError(PairwrightError):
    """A request without a response. ``detail`` must not contain secrets.

    Attributes:
        code: key of `REQUEST_ERROR_CODES`.
        message: of the server or the network, on one line.
        detail: first 300 characters of the message.
        status: HTTP status; 0 if none.
        retry_after: seconds that the server asks to wait, or None.
        fix: what to do, as a sentence.
    """

    def __init__(
        self, code: str, detail: str = "", *, status: int = 0, retry_after: float | None = None, fix: str = ""
    ) -> None:
        """Create an error; ``fix`` replaces the one of the code."""
        entry = REQUEST_ERROR_CODES[code]
        message = " ".join(detail.split())
        detail = message if len(message) <= MAX_DETAIL_CHARS else message[:MAX_DETAIL_CHARS] + "…"
        self.fix = fix or entry.fix
        super().__init__(f"{entry.means}{f' ({detail})' if detail else ''}. {self.fix}")
        self.code, self.message, self.detail, self.status, self.retry_after = code, message, detail, status, retry_after

    @property
    def transient(self) -> bool:
        """Whether a retry may succeed."""
        return REQUEST_ERROR_CODES[self.code].kind == "transient"

    @property
    def fatal(self) -> bool:
        """Whether no request of the run can succeed."""
        return REQUEST_ERROR_CODES[self.code].kind == "fatal"

    def copy(self, *, fix: str = "") -> "RequestError":
        """Return an equal error to raise for another row: a shared one would collect every row's traceback.

        Args:
            fix: in place of this error's; empty: the same.
        """
        return RequestError(
            self.code, self.message, status=self.status, retry_after=self.retry_after, fix=fix or self.fix
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt from positional arguments when they come back from a worker process.
        made = partial(RequestError, status=self.status, retry_after=self.retry_after, fix=self.fix)
        return made, (self.code, self.message)
