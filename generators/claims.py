"""What claims that a thing is in the picture, and nothing more: the words around it, at the end of a caption."""

CLAIMS = (", with {} in view", ", with {} in the scene", ", and {} can be seen")
SAID_BY_CLAIMS = frozenset({"view", "scene", "seen"})
_TAILS = tuple(claim.partition("{}")[2] for claim in CLAIMS)


def claimed(words: str) -> str:
    """Return what is claimed, of words that end as a claim does; other words as they are."""
    return next((words.removesuffix(tail) for tail in _TAILS if words.endswith(tail)), words)
