"""Types of edits: FORM-TARGET, or FORM alone; what the config, the command line and all generators of edits accept."""

from typing import Final, Literal, get_args

BenchmarkType = Literal[
    "replace-object",
    "replace-attribute",
    "replace-relation",
    "swap-object",
    "swap-attribute",
    "add-object",
    "add-attribute",
]
"""SugarCrepe's seven types of hard negatives."""
NegativeType = Literal[BenchmarkType, "negation", "shuffle"]
"""All types of hard negatives; the last two by rules, on request: negation needs a vocabulary, shuffle is for training only."""
PositiveType = Literal["replace-object", "replace-attribute", "replace-relation", "swap-object"]

BENCHMARK_TYPES: Final[tuple[BenchmarkType, ...]] = get_args(BenchmarkType)
UNADDED_TYPES: Final = tuple(name for name in BENCHMARK_TYPES if not name.startswith("add-"))
"""Those that do not lengthen a caption, which alone would tell an addition without a true one beside it."""
NEGATIVE_TYPES: Final[tuple[NegativeType, ...]] = get_args(NegativeType)
POSITIVE_TYPES: Final[tuple[PositiveType, ...]] = get_args(PositiveType)
