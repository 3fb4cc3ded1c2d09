"""What the rules ask about words: one object to hand on, whose parts each know one thing."""

from dataclasses import dataclass, fields

from pairwright.generators.knowledge.addable import Addable
from pairwright.generators.knowledge.adjective_candidates import AdjectiveCandidates
from pairwright.generators.knowledge.noun_candidates import NounCandidates
from pairwright.generators.knowledge.sources import Pool, Thesaurus
from pairwright.generators.knowledge.word_knowledge import WordKnowledge


@dataclass(frozen=True, slots=True)
class Candidates(WordKnowledge):
    """Which words may take the place of which, and what is known of words.

    Attributes:
        nouns: what may stand for a noun.
        adjectives: what may be said of a noun instead.
        addable: what may be added.
    """

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
        words = {field.name: getattr(known, field.name) for field in fields(known)}
        adjectives, addable = AdjectiveCandidates(thesaurus, pool, known), Addable(known.usage, known.company)
        return cls(**words, nouns=nouns, adjectives=adjectives, addable=addable)
