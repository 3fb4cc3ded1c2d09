"""Answers that tests of the cache keep, in their own process and in others."""

from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Reply, Usage

KEY = "0" * 31 + "1"
YES = Reply("yes", "stop", "", Usage(10, 1), "small-2", raw=b'{"choices": []}')
HERE = "http://localhost:8000"


def keep(cache: Cache, key: str = KEY, reply: Reply = YES) -> Reply:
    """Put an answer, and write it."""
    kept = cache.put(key, reply, asked="small", endpoint=HERE)
    cache.flush()
    return kept


def numbered(number: int) -> str:
    """Return a key."""
    return f"{number:032x}"
