"""Floors of edits: minimum likelihood of a word, phrase or swap in its context, by type of edit.

benchmarks/RESULTS.md has yield against naturalness; `benchmarks.editing.ablation` measures it.
"""

from typing import Final

DEFAULT_FLOOR: Final = 0.001  # REPLACE: p(word); set by --floor
ADDITION_FLOORS: Final = {"object": 0.03, "attribute": 0.1}  # ADD, by target: p(word) / p(typical word)
ADDED_PAIR_FLOOR: Final = 0.05  # ADD with both sides: the same for both objects
RELATION_FLOOR: Final = 0.1  # ADD an object: p(relation) / p(typical relation)
NEGATION_FLOOR: Final = 0.05  # p(word) / p(typical word), for both labels: most do not fit the scene
# Weight of the swap, by what is swapped.
SWAP_FLOORS: Final = {"object": 0.03, "attribute": 0.003, "number": 0.05, "move": 0.01}
REWORDING_FLOOR: Final = 0.03  # positives: p(word) / p(replaced word); below it words are stilted or have another sense
MAX_LENGTH_DIFFERENCE: Final = 3  # both sides: maximum difference in letters of the true and the false word
# Weight of writing nothing, by type; see `sampling`. Costs a sixth of the relations, those whose words a classifier learns.
NULL_WEIGHTS: Final = {"replace-relation": 1e-4}
