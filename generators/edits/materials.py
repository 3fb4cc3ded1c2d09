"""What edits are made with: WordNet, the statistics and the edit model of the pool, the lexicons and the constraints."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.lexicon.attributes import AttributeLexicon
from pairwright.generators.lexicon.nouns import NounLexicon
from pairwright.generators.lexicon.relations import RelationLexicon, load_relations


@dataclass(frozen=True, eq=False)
class EditMaterials:
    """Shared resources of all types of edits.

    Attributes:
        thesaurus: WordNet.
        pool: statistics of the captions that the edits shall look like.
        model: edit model of these captions.
        knowledge: what constraints ask of both.
        nouns: which nouns exclude each other.
        attributes: which attributes exclude each other.
        relations: which relation phrases exclude each other.
    """

    thesaurus: Any
    pool: Any
    model: EditModel
    knowledge: Knowledge
    nouns: NounLexicon
    attributes: AttributeLexicon
    relations: RelationLexicon

    @classmethod
    def of(cls, thesaurus: Any, pool: Any, model: EditModel) -> "EditMaterials":
        """Return the materials of a pool."""
        known = _knowledge_of(_Sources(id(thesaurus), id(pool), thesaurus, pool))
        return cls(thesaurus, pool, model, known, known.nouns, known.attributes, load_relations())


@dataclass(frozen=True)
class _Sources:
    """What knowledge is drawn from, compared by identity."""

    thesaurus_id: int
    pool_id: int
    thesaurus: Any = field(compare=False)
    pool: Any = field(compare=False)


@lru_cache(maxsize=1)
def _knowledge_of(sources: _Sources) -> Knowledge:
    """Return what constraints ask, which remembers answers for the next editors of the same pool."""
    return Knowledge(sources.thesaurus, sources.pool)
