"""How much is asked for in one request: captions, and negatives of each type for a caption."""

from typing import Final

CAPTIONS_PER_REQUEST: Final = 4  # default; measured, see docs/concepts/costs-and-cache.md
MAX_CANDIDATES: Final = 12  # of four captions about 13,000 tokens; many models write at most 16,384
