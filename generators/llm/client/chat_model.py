"""Model behind an OpenAI-compatible server, over either transport."""

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pairwright.generators.llm.client.chat_completions import (
    build_payload_off_loop,
    parse_error,
    parse_model_names,
    parse_reply,
    remove_prompt,
)
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings

MAX_NAMED_MODELS = 5  # in the error about an unknown one
LISTING_TIMEOUT_S = 5.0  # for the names: an error does not wait long for its hint

HeaderListener = Callable[[Mapping[str, str]], None]
HTTPResponse = tuple[int, Mapping[str, str], bytes]  # status, headers by lower-case name, body
Send = Callable[[dict[str, Any] | None], Awaitable[HTTPResponse]]
"""Posts the body of a chat completion, or gets the list of models (None); raises `RequestError` without a response."""


class ChatModel:
    """Model that posts chat completions, without retries.

    Args:
        send: the transport.
        settings: of the client.
        heard: called with the headers of every chat completion.
    """

    def __init__(self, send: Send, settings: LLMSettings, heard: HeaderListener) -> None:
        self._send, self._hide, self._heard = send, settings.hide, heard
        # Azure lists base models, and a request names a deployment.
        self._lists_models = not settings.address.azure
        self._listing: asyncio.Future[list[str]] | None = None

    async def ask(self, request: Request) -> Reply:
        """Send one request.

        Raises:
            RequestError: no usable response.
        """
        status, headers, body = await self._send(await build_payload_off_loop(request))
        self._heard(headers)
        if 200 <= status < 300:
            return remove_prompt(parse_reply(body, hide=self._hide), request)
        failure = parse_error(status, headers, body, hide=self._hide)
        if failure.code == "unknown_model" and self._lists_models:
            failure = await self._with_model_names(failure, request.model)
        raise failure

    async def _with_model_names(self, failure: RequestError, model: str) -> RequestError:
        """Return the error about an unknown model with the names that the server has, which are requested once."""
        if self._listing is None:
            self._listing = asyncio.ensure_future(self._list_models())
        names = await asyncio.shield(self._listing)
        nearest = difflib.get_close_matches(model, names, n=MAX_NAMED_MODELS, cutoff=0.0)
        if not nearest:
            return failure
        which = f": {', '.join(nearest)}" if len(nearest) == len(names) else f", such as {', '.join(nearest)}"
        return failure.copy(fix=f"{failure.fix.removesuffix('.')}{which}.")

    async def _list_models(self) -> list[str]:
        """Return the names of the server's models; empty if it does not list them."""
        try:
            async with asyncio.timeout(LISTING_TIMEOUT_S):
                _, _, body = await self._send(None)
        except (RequestError, TimeoutError):
            return []
        return parse_model_names(body)
