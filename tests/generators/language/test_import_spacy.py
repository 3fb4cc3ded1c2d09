"""spaCy is imported without its command line, and nobody else notices."""

import subprocess
import sys

CODE = """
import sys
from pairwright.generators.language.import_spacy import import_spacy
spacy = import_spacy()
assert not [name for name in sys.modules if name.startswith(("spacy.cli", "weasel"))]
assert import_spacy() is spacy
import spacy.cli.info
assert sys.modules["spacy.cli.info"].__file__.endswith("info.py")
assert spacy.info(silent=True)["spacy_version"] == spacy.__version__
"""


def test_spacy_comes_without_its_commands_and_gives_them_when_asked() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
