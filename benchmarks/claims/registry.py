"""All claims, in the order of the table."""

from benchmarks.claims import composition, instructions, positions, rationales, refined, retrieved, synonyms
from benchmarks.claims.results import Claim

CLAIMS: tuple[Claim, ...] = (
    composition.CLAIM,
    synonyms.CLAIM,
    instructions.CLAIM,
    retrieved.CLAIM,
    rationales.CLAIM,
    refined.CLAIM,
    refined.MODEL_CLAIM,
    positions.CLAIM,
)
