"""spaCy is imported without its command line, without side effects on other imports."""

import os
import subprocess
import sys

from pairwright.generators.language.tagger import BUNDLED_PIPELINE

ALONE = """
import sys
from pairwright.generators.language.spacy_import import import_lemminflect, import_spacy
spacy = import_spacy()
assert not [name for name in sys.modules if name.startswith(("spacy.cli", "weasel"))]
assert "torch" not in sys.modules
assert import_spacy() is spacy
assert import_lemminflect().getLemma("dogs", "NOUN") == ("dog",)
assert "torch" not in sys.modules
assert spacy.blank("en")("two dogs").text == "two dogs"
assert not [finder for finder in sys.meta_path if "import_spacy" in type(finder).__module__]
import spacy.cli.info
assert sys.modules["spacy.cli.info"].__file__.endswith("info.py")
assert spacy.info(silent=True)["spacy_version"] == spacy.__version__
"""

WORDS_ALONE = """
import sys
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tagger import load_tagger
assert inflect("man", "NNS") == "men"
assert "spacy" not in sys.modules
assert load_tagger().name == "en_ewt_small 1.0.0"
assert "spacy" not in sys.modules
assert [token.lemma for token in load_tagger().tag(["two dogs"])[0]] == ["two", "dog"]
"""


def test_words_are_inflected_and_the_bundled_tagger_is_named_without_spacy_which_can_be_imported_later() -> None:
    env = {**os.environ, "PAIRWRIGHT_SPACY_MODEL": str(BUNDLED_PIPELINE)}
    subprocess.run([sys.executable, "-c", WORDS_ALONE], check=True, env=env)


def test_spacy_comes_without_torch_and_its_commands_which_can_be_imported_later() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True)
