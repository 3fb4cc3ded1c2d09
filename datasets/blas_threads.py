"""Matrix products on one thread: where they are too small to share out, and where their bytes are kept.

NumPy's OpenBLAS wakes a thread for each core at every product. For a handful of captions that costs more than the
product itself: seven at a time take 0.44 ms of CPU each on one thread, 3.9 ms on two threads of a busy machine. And
who has many captions tags them in several processes, which then fight for the cores.

And on some machines a product of several threads differs in its last bit from that of one: what is written to a file
must not depend on how many there were.
"""

import importlib
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any


def limit_blas_to_one_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy's products use one thread; entering it takes about 10 microseconds."""
    found: AbstractContextManager[Any] = _controller().limit(limits=1)
    return found


@lru_cache(maxsize=1)
def _controller() -> Any:
    importlib.import_module("numpy")  # only libraries that are loaded are found
    return importlib.import_module("threadpoolctl").ThreadpoolController().select(user_api="blas")
