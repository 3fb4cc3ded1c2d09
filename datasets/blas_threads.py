"""Single-threaded matrix products, for small products and for reproducible results.

NumPy's OpenBLAS wakes a thread per core for every product. For a few captions that costs more than the product: seven
at a time take 0.44 ms of CPU each on one thread, 3.9 ms on two threads of a busy machine. Large jobs tag captions in
several processes, whose threads would compete for the cores.

On some machines, products of several threads differ from those of one thread in the last bit; written files must not
depend on the number of threads.
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
    importlib.import_module("numpy")  # the controller finds loaded libraries only
    return importlib.import_module("threadpoolctl").ThreadpoolController().select(user_api="blas")
