"""What the rules ask about words: one object to hand on, whose parts each know one thing."""

from dataclasses import dataclass

from pairwright.generators.knowledge.addable import Addable
from pairwright.generators.knowledge.adjective_candidates import AdjectiveCandidates
from pairwright.generators.knowledge.company import Company
from pairwright.generators.knowledge.names import Names
from pairwright.generators.knowledge.noun_candidates import NounCandidates
from pairwright.generators.knowledge.odds import Odds
from pairwright.generators.knowledge.scenes import Scenes
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.things import Things
from pairwright.generators.knowledge.usage import Usage
from pairwright.generators.knowledge.word_knowledge import WordKnowledge


@dataclass(frozen=True, slots=True)
class Candidates:
    """Which words may take the place of which, and what is known of words; see `WordKnowledge` for the first six.

    Attributes:
        nouns: what may stand for a noun.
        adjectives: what may be said of a noun instead.
        addable: what may be added.
    """

    things: Things
    usage: Usage
    company: Company
    names: Names
    scenes: Scenes
    odds: Odds
    nouns: NounCandidates
    adjectives: AdjectiveCandidates
    addable: Addable

    @classmethod
    def of(cls, thesaurus: Thesaurus, pool: Pool, *, minimum: int, least: float) -> "Candidates":
        """Return the candidates that WordNet and a pool give.

        Args:
            thesaurus: WordNet.
            pool: statistics of the captions that the negatives are to look like.
            minimum: captions of the pool in which a new word must occur.
            least: plausibility in its context that a new word must reach, unless the old one has hardly more.
        """
        known = WordKnowledge.of(thesaurus, pool, minimum=minimum, least=least)
        nouns = NounCandidates(thesaurus, pool, known, least)
        return cls(*known, nouns, AdjectiveCandidates(thesaurus, pool, known), Addable(known.usage, known.company))
