"""What edits are made with: what is known of words, and the edit model of the caption pool."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.edit_model import EditModel


@dataclass(frozen=True, eq=False)
class EditMaterials:
    """Shared resources of all types of edits.

    Attributes:
        knowledge: WordNet, the statistics of the captions that the edits shall look like, and the lexicons.
        model: edit model of these captions.
    """

    knowledge: Knowledge
    model: EditModel

    @classmethod
    def of(cls, thesaurus: Any, pool: Any, model: EditModel) -> "EditMaterials":
        """Return the materials of a pool."""
        return cls(_knowledge_of(thesaurus, pool), model)


@lru_cache(maxsize=1)
def _knowledge_of(thesaurus: Any, pool: Any) -> Knowledge:
    """Return what is known of words, which remembers answers for the next editors of the same pool."""
    return Knowledge(thesaurus, pool)
