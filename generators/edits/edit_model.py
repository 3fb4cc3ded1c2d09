"""Edit model of a caption pool: its cloze model and the word balance of each type of edit.

Captions of photographs, and pools that are too small, use the bundled model and statistics. Others are learned with the
word statistics (stage ``words``, or at the start of a command) and stored in the same folder.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import StorageError
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.pool_statistics import PoolStatistics

BUNDLED_MODEL: Final = Path(__file__).parent.parent / "language" / "models" / "cloze_small"
BUNDLED_STATISTICS: Final = BUNDLED_MODEL / "words.parquet"
MIN_CAPTIONS: Final = 200  # captions of a pool from which its own word statistics are used
_CLOZE, _BALANCE = "cloze.npz", "balance.json"


@dataclass(frozen=True, eq=False)
class EditModel:
    """Models that rank and sample edits, learned on a caption pool.

    Attributes:
        cloze: predicts words and phrases in slots.
        balance: type of edit to the balance of each word, natural logarithms; see `word_balance`.
    """

    cloze: ClozeModel
    balance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write ``cloze.npz`` and ``balance.json`` into a folder, each atomically; equal models give equal bytes."""
        self.cloze.save(folder / _CLOZE)
        self.save_balance(folder)

    def save_balance(self, folder: Path) -> None:
        """Write ``balance.json`` alone."""
        with replace_atomically(folder / _BALANCE) as temporary:
            temporary.write_text(json.dumps(self.balance, sort_keys=True) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "EditModel":
        """Read the model that `save` wrote.

        Raises:
            StorageError: a file is missing, corrupt or of another format.
        """
        path = folder / _BALANCE
        try:
            balance = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StorageError(f"{path}: not a word balance ({error}). A build writes it to statistics/.") from None
        return cls(ClozeModel.load(folder / _CLOZE), balance)

    @classmethod
    def files(cls, folder: Path) -> list[Path]:
        """Return the files that `save` writes."""
        return [folder / _CLOZE, folder / _BALANCE]

    @classmethod
    def for_statistics(cls, statistics: Path) -> "EditModel":
        """Return the model in the folder of a pool statistics file; the bundled model if there is none."""
        folder = statistics.parent
        return cls.load(folder) if (folder / _CLOZE).exists() else load_bundled_model()


class _BundledModel(EditModel):
    """Pickled as the call that loads it, so that a process has one copy."""

    def __reduce__(self) -> tuple[object, ...]:
        return load_bundled_model, ()


class _BundledStatistics(PoolStatistics):
    """Pickled likewise."""

    def __reduce__(self) -> tuple[object, ...]:
        return load_bundled_statistics, ()


@lru_cache(maxsize=1)
def load_bundled_model() -> EditModel:
    """Return the model of captions of photographs; see ``generators/language/models/README.md``."""
    return _BundledModel.load(BUNDLED_MODEL)


@lru_cache(maxsize=1)
def load_bundled_statistics() -> PoolStatistics:
    """Return the word statistics of the captions of the bundled model."""
    return _BundledStatistics.load(BUNDLED_STATISTICS)


def pool_or_bundled(statistics: PoolStatistics) -> PoolStatistics:
    """Return ``statistics`` if they cover at least `MIN_CAPTIONS` captions, else the bundled ones."""
    return statistics if statistics.captions >= MIN_CAPTIONS else load_bundled_statistics()
