"""What refinement advises, in the words of a config."""

_ADVICE = (
    ("generate negatives with --both-sides", "set `both_sides: true` under negatives"),
    ("ask for a larger --target", "set a larger `target` under refine"),
    ("A smaller --min-keep or --mend format", "A smaller `min_keep`"),
)


def advice_of_config(advice: str) -> str:
    """Return what refinement advises (`filters.general`), in the words of a config."""
    for words, put in _ADVICE:
        advice = advice.replace(words, put)
    return advice
