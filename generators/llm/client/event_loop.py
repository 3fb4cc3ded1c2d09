"""Event loops for client and test server."""

import asyncio
import importlib
import importlib.util


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, of uvloop if installed."""
    if importlib.util.find_spec("uvloop"):
        loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
        return loop
    return asyncio.new_event_loop()
