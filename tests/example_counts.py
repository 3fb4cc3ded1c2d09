"""How many examples a property is tried on: all of them where the environment asks for it, else a share."""

import os

# Set by `make test-all`. What is tried anew at each change is tried on fewer; the examples differ from run to run.
THOROUGH = os.environ.get("PAIRWRIGHT_TEST_EXAMPLES") == "thorough"
_FEWEST = 10


def examples(number: int) -> int:
    """Return how many to try where ``number`` are thorough: three tenths of them, but no fewer than ten."""
    return number if THOROUGH else min(number, max(number * 3 // 10, _FEWEST))
