"""Out of memory, told with the settings that help; of a GPU, of torch on the CPU, or of Python itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from pairwright.datasets.errors import PairwrightError

# What torch says where it raises no error of its own: CUDA's libraries, and its allocator on the CPU.
_MESSAGES = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.",
)


@contextmanager
def explain_out_of_memory(helps: Callable[[], str]) -> Iterator[None]:
    """Translate running out of memory into one line; other errors pass.

    Args:
        helps: what was done, with which settings, and which of them help; asked for when it is needed.

    Raises:
        PairwrightError: ``out of memory`` and what ``helps`` says.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        raise PairwrightError(f"out of memory {helps()}") from None


def is_out_of_memory(error: BaseException) -> bool:
    """Say whether an error tells that memory ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(said in str(error) for said in _MESSAGES)
