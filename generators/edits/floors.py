"""Floors of edits: how well a word, a phrase or a swap must fit its context, by type of edit.

benchmarks/RESULTS.md has yield against naturalness; `benchmarks.editing.ablation` measures it.
"""

from typing import Final

DEFAULT_FLOOR: Final = 0.01  # REPLACE: p(word); the only one that users set
RELATION_PART: Final = 0.5  # of it, for relations: those of one shape read as well far below it, but trigrams find them
ADDITION_FLOORS: Final = {"object": 0.1, "attribute": 0.1}  # ADD, by target: p(word) / p(typical word)
ADDED_PAIR_FLOOR: Final = 0.05  # ADD with both sides: the same of both objects
RELATION_FLOOR: Final = 0.1  # ADD an object: p(relation) / p(typical relation)
NEGATION_FLOOR: Final = 0.05  # p(word) / p(typical word), of both labels: most are nothing that the scene could have
SWAP_FLOOR: Final = 0.003  # SWAP: weight of a swap
REWORDING_FLOOR: Final = 0.03  # positives: p(word) / p(word replaced); below it a word is stiff or has another sense
MAX_LENGTH_DIFFERENCE: Final = 3  # both sides: letters by which the true and the false word differ, at most
