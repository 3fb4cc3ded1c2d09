"""Model behind an OpenAI-compatible server, over either transport."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pairwright.generators.llm.client.chat_completions import (
    build_payload_off_loop,
    parse_error,
    parse_reply,
    remove_prompt,
)
from pairwright.generators.llm.client.messages import Reply, Request
from pairwright.generators.llm.client.settings import LLMSettings

HeaderListener = Callable[[Mapping[str, str]], None]
HTTPResponse = tuple[int, Mapping[str, str], bytes]  # status, headers by lower-case name, body
Post = Callable[[dict[str, Any]], Awaitable[HTTPResponse]]
"""Posts the body of a request; raises `RequestError` without a response."""


class ChatModel:
    """Model that posts chat completions, without retries.

    Args:
        post: the transport.
        settings: of the client.
        heard: called with the headers of every response.
    """

    def __init__(self, post: Post, settings: LLMSettings, heard: HeaderListener) -> None:
        self._post, self._hide, self._heard = post, settings.hide, heard

    async def ask(self, request: Request) -> Reply:
        """Send one request.

        Raises:
            RequestError: no usable response.
        """
        status, headers, body = await self._post(await build_payload_off_loop(request))
        self._heard(headers)
        if 200 <= status < 300:
            return remove_prompt(parse_reply(body, hide=self._hide), request)
        raise parse_error(status, headers, body, hide=self._hide)
