"""What the parts of batch mode share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pairwright.generators.llm.batch_ledger import Ledger
from pairwright.generators.llm.batch_patience import Patience
from pairwright.generators.llm.batch_rows import Rows
from pairwright.generators.llm.batch_service import BatchService
from pairwright.generators.llm.messages import Reply

Kept = Callable[[Iterable[str]], Mapping[str, Reply]]  # answers that are safe, of keys


@dataclass(frozen=True, slots=True)
class Desk:
    """One run's batches.

    Attributes:
        rows: that wait.
        ledger: what was handed over.
        service: the server.
        patience: for a server that is away.
        endpoint: what stands for the server in keys and in the ledger.
        hide: takes secrets out of what the server says.
        kept: gives the answers that other runs have made safe; the ledger may have let go of them.
    """

    rows: Rows
    ledger: Ledger
    service: BatchService
    patience: Patience
    endpoint: str
    hide: Callable[[str], str]
    kept: Kept
