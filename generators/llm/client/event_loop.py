"""Event loops for the client and the test server."""

import asyncio
import importlib
import importlib.util


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop: uvloop's where it is installed."""
    if importlib.util.find_spec("uvloop"):
        loop: asyncio.AbstractEventLoop = importlib.import_module("uvloop").new_event_loop()
        return loop
    return asyncio.new_event_loop()
