"""Lazy tables give the forms that lemminflect gives."""

from itertools import islice
from types import ModuleType
from typing import Any

import pytest

from pairwright.generators.language.lemminflect_tables import SortedFormTable, load_tables_lazily
from pairwright.generators.language.spacy_import import import_lemminflect


@pytest.mark.parametrize("every", [20, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("which", ["inflections", "lemmas"])
def test_every_word_has_the_forms_that_lemminflect_reads_in_the_same_order(which: str, every: int) -> None:
    asked, whole = both(which)
    assert isinstance(asked, SortedFormTable)
    assert len(whole) > 30_000
    looked_at = islice(whole.items(), 0, None, every)
    assert not [word for word, forms in looked_at if list(asked.get(word, {}).items()) != list(forms.items())]


def both(which: str) -> tuple[Any, dict[str, Any]]:
    """Return a table as it is asked, and as lemminflect reads it; without the import, spaCy is not imported either."""
    lemminflect = import_lemminflect()
    from lemminflect.codecs.InflectionLUCodec import InflectionLUCodec
    from lemminflect.codecs.LemmaLUCodec import LemmaLUCodec

    config = lemminflect.config
    if which == "inflections":
        return lemminflect.Inflections().infl_dict, InflectionLUCodec.load(config.inflection_lu_fn)
    return lemminflect.Lemmatizer().lemma_dict, LemmaLUCodec.load(config.lemma_lu_fn)


@pytest.mark.parametrize("word", ["", "dogg", "zzzz", "\U0010ffff", "dog,noun", ",", "\n"])
def test_a_word_that_is_in_neither_dictionary_has_the_forms_that_are_given_for_it(word: str) -> None:
    lemminflect, given = import_lemminflect(), {"NN": ("x",)}
    assert lemminflect.Inflections().infl_dict.get(word, given) is given
    assert lemminflect.Lemmatizer().lemma_dict.get(word, given) is given


def test_another_version_is_left_as_it_is() -> None:
    newer = ModuleType("lemminflect")
    newer.__version__ = "9.0"  # type: ignore[attr-defined]
    load_tables_lazily(newer)
    assert not hasattr(newer, "Inflections")


def test_nouns_that_are_in_no_dictionary_have_the_plural_of_the_style_that_lemminflect_chooses() -> None:
    import_lemminflect()
    from lemminflect import Inflections
    from lemminflect.core.InflectionRules import InflectionRules, MorphologyStyleModel

    network, ends = (
        MorphologyStyleModel(),
        ("us", "ma", "ra", "um", "on", "sis", "is", "men", "ex", "ox", "y", "ey", "ch", "s", "ot"),
    )
    for word in (f"{start}{end}" for start in ("zorb", "Wug", "flimf", "42", "é") for end in ends):
        regular = network.getStyle(word, "NOUN") == "reg"
        [plural] = (InflectionRules.buildRegNoun if regular else InflectionRules.buildGrecNoun)(word)
        [found] = Inflections().getAllInflectionsOOV(word, "NOUN")["NNS"]
        assert found.lower() == plural
