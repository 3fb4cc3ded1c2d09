"""Operations for which the host waits for the device: reading a number, and results whose size depends on values."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal"}
_INDEXING = {"index", "index_put", "index_put_"}  # a bool index counts its True values


class DeviceReads(TorchDispatchMode):
    """Lists such operations while it is entered; on a CPU they are the same calls, without the wait.

    Attributes:
        found: names of operations, in order.
        operations: number of all operations, which is the work of the host.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found = list[str]()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note an operation and run it."""
        self.operations += 1
        name = func.name().partition("::")[2].partition(".")[0]
        indices = args[1] if name in _INDEXING else ()
        if name in _WAITING or any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in indices):
            self.found.append(name)
        return func(*args, **(kwargs or {}))
