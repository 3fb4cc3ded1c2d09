"""What is known of words: of WordNet, of our own tables and of the pool, each asked by one part."""

from dataclasses import dataclass

from pairwright.generators.knowledge.company import Company
from pairwright.generators.knowledge.names import Names
from pairwright.generators.knowledge.odds import Odds
from pairwright.generators.knowledge.scenes import Scenes
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.things import Things
from pairwright.generators.knowledge.usage import Usage


@dataclass(frozen=True, slots=True)
class WordKnowledge:
    """Tables, and memories of what they say.

    Attributes:
        things: what a noun stands for.
        usage: how captions use words.
        company: what goes along with what.
        names: by which words a thing is spoken of.
        scenes: what captions put where.
        odds: which exchanges even out.
    """

    things: Things
    usage: Usage
    company: Company
    names: Names
    scenes: Scenes
    odds: Odds

    @classmethod
    def of(cls, thesaurus: Thesaurus, pool: Pool, *, minimum: int, least: float) -> "WordKnowledge":
        """Return what WordNet and a pool tell; for ``minimum`` and ``least`` see `candidates.Candidates`."""
        things = Things(thesaurus)
        usage = Usage(pool, thesaurus, things, minimum)
        company = Company(pool, things, usage, least)
        return cls(things, usage, company, Names(pool, thesaurus, things), Scenes(pool, things.is_alive), Odds(pool))
