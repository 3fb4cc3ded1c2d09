"""Default number of captions in one request."""

from typing import Final

CAPTIONS_PER_REQUEST: Final = 4  # measured, see docs/concepts/costs-and-cache.md
