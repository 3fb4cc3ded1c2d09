"""Rate limits of the test server: concurrent requests, requests and tokens per minute.

A limit per minute is a bucket that fills evenly and holds ``burst_s`` seconds' worth: with 60 a whole minute's requests
may come in a burst, with 1 the limit holds per second. Pure: times are arguments.
"""

import math
from collections.abc import Mapping

from pairwright.generators.llm.client.rate_limits import TokenBucket
from pairwright.generators.llm.testing.api_errors import APIError
from pairwright.generators.llm.testing.faults import retry_after
from pairwright.generators.llm.testing.script import ServerScript


class LimitReachedError(APIError):
    """A limit is reached; ``limit`` names it."""

    def __init__(self, limit: str, headers: Mapping[str, str]) -> None:
        super().__init__(429, f"the limit of {limit} is reached", code="rate_limit_exceeded", headers=headers)
        self.limit = limit


def quota_headers(name: str, bucket: TokenBucket) -> dict[str, str]:
    """Return the ``x-ratelimit-*`` headers of a bucket as of its last `wait`."""
    return {
        f"x-ratelimit-limit-{name}": str(round(60 * bucket.rate)),
        f"x-ratelimit-remaining-{name}": str(max(0, math.floor(bucket.level))),
        f"x-ratelimit-reset-{name}": _duration((bucket.capacity - bucket.level) / bucket.rate),
    }


def _duration(seconds: float) -> str:
    """Return a time in OpenAI's format: ``120ms``, ``1.5s``, ``6m0s``."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    return f"{seconds:.3g}s" if seconds < 60 else f"{int(seconds // 60)}m{int(seconds % 60)}s"


class ServerLimits:
    """Limits of one script from ``now`` on."""

    def __init__(self, script: ServerScript, now: float) -> None:
        self._script = script
        wanted = {"requests": script.requests_per_minute, "tokens": script.tokens_per_minute}
        self._buckets = {name: TokenBucket(limit, now, script.burst_s) for name, limit in wanted.items() if limit}

    @property
    def count_tokens(self) -> bool:
        """Whether `admit` needs a request's tokens."""
        return "tokens" in self._buckets

    def admit(self, in_flight: int, tokens: int, now: float) -> None:
        """Admit a request; ``in_flight`` includes it.

        Raises:
            LimitReachedError: nothing is taken from any bucket.
        """
        script = self._script
        if script.max_concurrency and in_flight > script.max_concurrency:
            raise LimitReachedError("concurrency", self._hints(script.retry_after_s))
        amounts = {"requests": 1, "tokens": tokens}
        for name, bucket in self._buckets.items():
            if wait := bucket.wait(amounts[name], now):
                raise LimitReachedError(name, self._hints(wait))
        for name, bucket in self._buckets.items():
            bucket.take(amounts[name])

    def headers(self) -> dict[str, str]:
        """Return the ``x-ratelimit-*`` headers; empty without limits per minute or if disabled."""
        if not self._script.ratelimit_headers:
            return {}
        return {
            name: value for key, bucket in self._buckets.items() for name, value in quota_headers(key, bucket).items()
        }

    def _hints(self, wait: float) -> dict[str, str]:
        return {**(retry_after(wait) if self._script.retry_after_header else {}), **self.headers()}
