"""Resources shared by all editors: WordNet, pool statistics, lexicons and the edit model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.edit_model import EditModel, load_bundled_model, load_bundled_statistics
from pairwright.generators.language.cloze.model import ClozeModel

# Share of the nouns of a pool that the bundled model knows: COCO 0.89, drawn scenes 0.51, web text 0.29.
_KNOWN_NOUNS: Final = 0.75


@dataclass(frozen=True, eq=False)
class EditMaterials:
    """Resources of all types of edits."""

    knowledge: Knowledge
    model: EditModel

    @classmethod
    def of(cls, thesaurus: Any, pool: Any, model: EditModel) -> "EditMaterials":
        """Return the materials of a pool."""
        return cls(_knowledge_of(thesaurus, statistics_for(pool, model.cloze)), model)


def statistics_for(pool: Any, model: ClozeModel | None) -> Any:
    """Return the statistics that edits by a cloze model read: those of the pool, or the bundled ones.

    The bundled model proposes its own words and balances them by its own statistics, in all pools of photographs.
    """
    bundled = load_bundled_model().cloze
    is_bundled = model is not None and (model is bundled or model.digest == bundled.digest)
    return load_bundled_statistics() if is_bundled and are_of_photographs(pool) else pool


@lru_cache(maxsize=2)
def are_of_photographs(pool: Any) -> bool:
    """Return whether captions are like those of photographs, of which the relation classifier was trained."""
    return bool(pool.known_nouns(load_bundled_model().cloze.targets("noun")) >= _KNOWN_NOUNS)


@lru_cache(maxsize=1)
def _knowledge_of(thesaurus: Any, pool: Any) -> Knowledge:
    """Return the lookups for a pool; one object, so that editors share its caches."""
    return Knowledge(thesaurus, pool)
