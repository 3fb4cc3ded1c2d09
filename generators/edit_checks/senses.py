"""What captions mean by a noun of several senses, where WordNet's others lead a positive astray.

WordNet says that a bat is a chiropteran and a mouse a rodent, and counts these senses as high as those of baseball and
computers. A caption of a photograph nearly always means the one that is named here, by a word that has no other sense
or by what it is a kind of: what is written for the noun has to lie above or below that. A mouse that a cat has caught
is lost by it, as a positive; the negatives look at all senses.

Nothing that lies above or below the sense named here is lost: so bowls (dishes), cups and mugs (crockery) and toilets
(lavatories) are not here, nor nouns that captions have in two senses (a pitcher, a fan, a crane, a trunk).
"""

from typing import Final

from pairwright.generators.knowledge.sources import Thesaurus

_MEANT: Final = """
bag: container; ball: game equipment; bat: club; bike: bicycle; boy: male child; cake: baked goods; case: container;
glass: container; knife: edge tool; man: adult male; mouse: electronic device; plane: heavier-than-air craft;
plate: tableware; pole: rod; racket: sports implement; table: furniture
"""
_KINDS: Final = {noun.strip(): kind.strip() for noun, _, kind in (each.partition(":") for each in _MEANT.split(";"))}


def is_meant(old: str, new: str, thesaurus: Thesaurus) -> bool:
    """Whether ``new``, of which ``old`` is a kind by some sense of it, fits the sense that captions mean."""
    kind = _KINDS.get(old)
    return kind is None or thesaurus.is_a(kind, new, "NOUN") or thesaurus.is_a(new, kind, "NOUN")
