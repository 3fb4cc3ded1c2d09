"""Operations of the host, and those among them for which it waits for the device.

It waits where it reads a number, and where the size of a result depends on values. On a CPU the same calls are counted,
without the wait.
"""

from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "equal"}
_INDEXING = {"index", "index_put", "index_put_"}  # a bool index counts its True values


class DeviceReads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations while it is entered.

    Attributes:
        waits: names of the operations that wait, in order; ``tolist`` for the method of a tensor.
        operations: number of all operations, the work of the host.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits = list[str]()
        self.operations = 0

    def __enter__(self) -> Self:
        """Start counting."""
        self._tolist = torch.Tensor.tolist

        def tolist(tensor: torch.Tensor) -> Any:
            self.waits.append("tolist")
            return self._tolist(tensor)

        torch.Tensor.tolist = tolist  # type: ignore[method-assign, assignment]  # on a CPU it calls no operation
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        """Stop counting."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        torch.Tensor.tolist = self._tolist  # type: ignore[method-assign]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count an operation and run it."""
        self.operations += 1
        name = func.name().partition("::")[2].partition(".")[0]
        indices = args[1] if name in _INDEXING else ()
        if name in _WAITING or any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in indices):
            self.waits.append(name)
        return func(*args, **(kwargs or {}))
