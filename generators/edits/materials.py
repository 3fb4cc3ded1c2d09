"""Resources shared by all editors: WordNet, pool statistics, lexicons and the edit model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.edit_model import EditModel


@dataclass(frozen=True, eq=False)
class EditMaterials:
    """Resources of all types of edits.

    Attributes:
        knowledge: WordNet, statistics of the pool, and the lexicons.
        model: edit model of the pool.
    """

    knowledge: Knowledge
    model: EditModel

    @classmethod
    def of(cls, thesaurus: Any, pool: Any, model: EditModel) -> "EditMaterials":
        """Return the materials of a pool."""
        return cls(_knowledge_of(thesaurus, pool), model)


@lru_cache(maxsize=1)
def _knowledge_of(thesaurus: Any, pool: Any) -> Knowledge:
    """Return the lookups for a pool; one object, so that editors share its caches."""
    return Knowledge(thesaurus, pool)
