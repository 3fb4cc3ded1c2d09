"""Names of the built-in recipes: the YAML files in this folder."""

from pathlib import Path

RECIPES_FOLDER = Path(__file__).parent


def recipe_names() -> list[str]:
    """Return the names of the built-in recipes."""
    return sorted(path.stem for path in RECIPES_FOLDER.glob("*.yaml"))
