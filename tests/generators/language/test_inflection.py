"""Word forms, articles and letter case."""

import pytest

from pairwright.generators.language.inflection import article, inflect
from pairwright.generators.language.lemmas import lemmatize, universal_tags

ARTICLES = {
    "a": "dog university unicorn uniform one-way once European ewe user ukulele useful house hotel 7 10 UFO yellow unique banana"
    " utensil usual BMW one TV NASA herbivore STOP BUS utopia urinal euro uranium ukulele T-shirt U-turn CD DVD",
    "an": "apple hour honest heir umbrella uncle SUV MRI 8 11 18 elephant orange X-ray LED unidentified uninteresting unusual urn"
    " oven ice-cream honor urban ugly utter SUVs HDTV ATM iPhone X-shaped 18-wheeler OPEN umpire",
}


@pytest.mark.parametrize(
    ("word", "tag", "form"),
    [
        ("man", "NNS", "men"),
        ("person", "NNS", "people"),
        ("child", "NNS", "children"),
        ("bus", "NNS", "buses"),
        ("knife", "NNS", "knives"),
        ("sheep", "NNS", "sheep"),
        ("mouse", "NNS", "mice"),
        ("fire hydrant", "NNS", "fire hydrants"),
        ("scissors", "NNS", "scissors"),
        ("ride", "VBG", "riding"),
        ("sit", "VBG", "sitting"),
        ("lie", "VBD", "lay"),
        ("ski", "VBG", "skiing"),
        ("eat", "VBN", "eaten"),
        ("be", "VBP", "are"),
        ("have", "VBZ", "has"),
        ("carry", "VBZ", "carries"),
        ("pick up", "VBG", "picking up"),
        ("big", "JJR", "bigger"),
        ("good", "JJS", "best"),
        ("beautiful", "JJR", "more beautiful"),
        ("dog", "NN", "dog"),
        ("on", "IN", "on"),
        ("", "NNS", ""),
    ],
)
def test_a_lemma_takes_the_form_of_a_tag(word: str, tag: str, form: str) -> None:
    assert inflect(word, tag) == form


@pytest.mark.parametrize(
    ("word", "tag", "base"),
    [
        ("men", "NNS", "man"),
        ("people", "NNS", "person"),
        ("Dogs", "NNS", "dog"),
        ("leaves", "NNS", "leaf"),
        ("scissors", "NNS", "scissors"),
        ("bus", "NN", "bus"),
        ("riding", "VBG", "ride"),
        ("lying", "VBG", "lie"),
        ("was", "VBD", "be"),
        ("held", "VBD", "hold"),
        ("bigger", "JJR", "big"),
        ("on", "IN", "on"),
        ("犬", "NNS", "犬"),
        ("...", ".", "..."),
    ],
)
def test_a_word_has_the_lemma_of_its_tag(word: str, tag: str, base: str) -> None:
    assert lemmatize(word, tag) == base


@pytest.mark.parametrize(
    "word", ["man", "woman", "dog", "bus", "child", "box", "knife", "giraffe", "zebra", "couch", "bench"]
)
def test_plural_and_back_gives_the_same_noun(word: str) -> None:
    assert lemmatize(inflect(word, "NNS"), "NNS") == word


@pytest.mark.parametrize(
    ("expected", "word"), [(expected, word) for expected, words in ARTICLES.items() for word in words.split()]
)
def test_the_article_depends_on_the_sound(expected: str, word: str) -> None:
    assert article(word) == expected


def test_the_article_looks_at_the_first_word_past_quotes() -> None:
    assert (article('"open" sign'), article("old dog"), article("")) == ("an", "an", "a")


def test_auxiliaries_are_distinguished_from_full_verbs() -> None:
    assert universal_tags(["a", "man", "have", "eat"], ["DT", "NN", "VBZ", "VBN"])[2] == "AUX"
    assert universal_tags(["a", "man", "have", "a", "dog"], ["DT", "NN", "VBZ", "DT", "NN"])[2] == "VERB"
    assert universal_tags(["to", "eat"], ["TO", "VB"])[0] == "PART"
    assert universal_tags(["to", "the"], ["TO", "DT"])[0] == "ADP"
    assert universal_tags(["while"], ["IN"]) == ["SCONJ"]
