"""Translation of out-of-memory errors of a GPU, torch on the CPU or Python into one line with the settings that help."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from pairwright.datasets.errors import PairwrightError

# Messages of plain RuntimeErrors: CUDA libraries and torch's CPU allocator.
_MESSAGES = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.",
)


@contextmanager
def explain_out_of_memory(helps: Callable[[], str]) -> Iterator[None]:
    """Translate an out-of-memory error into a one-line `PairwrightError`; other errors propagate.

    ``helps`` returns what was running with which settings, and which of them help; it is called only on an error.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        known = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not known and not any(message in str(error) for message in _MESSAGES):
            raise
        raise PairwrightError(f"out of memory {helps()}") from None
