"""What the parts of batch mode share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pairwright.generators.llm.batch.ledger import BatchLedger
from pairwright.generators.llm.batch.queue import RequestQueue
from pairwright.generators.llm.batch.retry import BatchRetry
from pairwright.generators.llm.batch.service import BatchService
from pairwright.generators.llm.client.messages import Reply

CacheLookup = Callable[[Iterable[str]], Mapping[str, Reply]]  # answers that are safe, of keys


@dataclass(frozen=True, slots=True)
class BatchContext:
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

    rows: RequestQueue
    ledger: BatchLedger
    service: BatchService
    patience: BatchRetry
    endpoint: str
    hide: Callable[[str], str]
    kept: CacheLookup
