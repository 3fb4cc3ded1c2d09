"""What is read of lemminflect's dictionaries as it is asked for is what lemminflect reads."""

from types import ModuleType
from typing import Any

import pytest
from lemminflect import Inflections, Lemmatizer, config
from lemminflect.codecs.InflectionLUCodec import InflectionLUCodec
from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec

from pairwright.generators.language.form_tables import SortedLines, read_as_asked
from pairwright.generators.language.import_spacy import import_lemminflect


@pytest.mark.parametrize(
    ("owner", "held", "codec", "path"),
    [
        (Inflections, "infl_dict", InflectionLUCodec, config.inflection_lu_fn),
        (Lemmatizer, "lemma_dict", LemmaLUCodec, config.lemma_lu_fn),
    ],
)
def test_every_word_has_the_forms_that_lemminflect_reads_in_the_same_order(
    owner: Any, held: str, codec: Any, path: str
) -> None:
    import_lemminflect()
    asked, whole = getattr(owner(), held), codec.load(path)
    assert isinstance(asked, SortedLines)
    assert len(whole) > 30_000
    assert not [word for word, forms in whole.items() if list(asked.get(word, {}).items()) != list(forms.items())]


@pytest.mark.parametrize("word", ["", "dogg", "zzzz", "\U0010ffff", "dog,noun", ",", "\n"])
def test_a_word_that_is_in_neither_dictionary_has_the_forms_that_are_given_for_it(word: str) -> None:
    import_lemminflect()
    given = {"NN": ("x",)}
    assert Inflections().infl_dict.get(word, given) is given
    assert Lemmatizer().lemma_dict.get(word, given) is given


def test_another_version_is_left_as_it_is() -> None:
    newer = ModuleType("lemminflect")
    newer.__version__ = "9.0"  # type: ignore[attr-defined]
    read_as_asked(newer)
    assert not hasattr(newer, "Inflections")
