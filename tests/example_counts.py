"""How many examples a property is tried on: all of them where the environment asks for it, else a share."""

import os

# Set by `make test-all`. What is tried anew at each change is tried on fewer; the examples differ from run to run.
THOROUGH = os.environ.get("PAIRWRIGHT_TEST_EXAMPLES") == "thorough"


def examples(number: int, fewest: int = 10) -> int:
    """Return how many to try where ``number`` are thorough: three tenths of them, but not too few.

    Args:
        number: at most.
        fewest: less for a property of many parameters, each of which tries its own.
    """
    return number if THOROUGH else min(number, max(number * 3 // 10, fewest))
