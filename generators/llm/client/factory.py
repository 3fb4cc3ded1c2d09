"""Client factory: a transport with rate limits and retries.

    settings = LLMSettings.from_env(model="small")

    async def main() -> str:
        async with open_model(settings) as model:
            return (await model.ask(request)).text

    text = asyncio.Runner(loop_factory=new_event_loop).run(main())

Sessions add cache and budget.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.chat_model import ChatModel, HeaderListener
from pairwright.generators.llm.client.rate_limits import LimitedModel, Limiter
from pairwright.generators.llm.client.retrying import RetryingModel
from pairwright.generators.llm.client.settings import LLMSettings

_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_transport(settings: LLMSettings, heard: HeaderListener) -> AsyncIterator[ChatModel]:
    """Yield a model over the transport of the settings while its connections are open.

    Args:
        settings: of the client.
        heard: called with the headers of every chat completion.

    Raises:
        UsageError: the server requires a key and there is none.
    """
    require_api_key(settings)
    # Imported lazily: aiohttp takes 0.1 s to import, the SDK almost 1 s.
    if settings.uses_sdk:
        from pairwright.generators.llm.client.sdk_transport import open_sdk as opened
    else:
        from pairwright.generators.llm.client.direct_transport import open_direct as opened
    async with opened(settings) as send:
        yield ChatModel(send, settings, heard)


def require_api_key(settings: LLMSettings) -> None:
    """Check that there is a key if the server is known to require one.

    Raises:
        UsageError: there is no key.
    """
    headers = {name.lower() for name in settings.request_headers()}
    if settings.address.origin.startswith("https://api.openai.com:") and "authorization" not in headers:
        raise UsageError("no key for OpenAI. Set OPENAI_API_KEY, or OPENAI_BASE_URL to a server of your own.")
    if settings.address.azure and not (settings.api_key or settings.ad_token or headers & {"api-key", "authorization"}):
        raise UsageError("no key for Azure. Set AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN.")


@asynccontextmanager
async def open_model(
    settings: LLMSettings, *, say: Callable[[str], None] = _log.warning
) -> AsyncIterator[RetryingModel]:
    """Yield a model with rate limits and retries while its connections are open.

    Args:
        settings: of the client.
        say: called with one line when the server becomes unavailable, and when it is available again.

    Raises:
        UsageError: invalid settings.
    """
    limiter = Limiter(settings.max_concurrency, settings.requests_per_minute, settings.tokens_per_minute)
    async with open_transport(settings, limiter.heard) as transport:
        try:
            yield RetryingModel(
                LimitedModel(transport, limiter),
                max_retries=settings.max_retries,
                patience=settings.patience,
                seed=settings.seed,
                say=say,
                on_stop=limiter.stop,
            )
        finally:
            limiter.close()
