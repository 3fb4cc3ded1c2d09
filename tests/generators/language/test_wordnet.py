"""WordNet relations and set-up."""

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import MissingResourceError, StorageError
from pairwright.generators.language import wordnet_setup
from pairwright.generators.language.wordnet import WordNet, load_wordnet, wordnet_status
from pairwright.generators.language.wordnet_compiler import compile_table
from pairwright.generators.language.wordnet_setup import lexnames_content, set_up_language
from pairwright.generators.language.wordnet_table import LEXICAL_DOMAINS, POS, read_graph, table_path
from tests.example_counts import examples

needs_table = pytest.mark.skipif(not table_path().is_file(), reason="WordNet is not set up: `pairwright doctor --fix`")

NOUNS = """man woman dog cat bus truck train car bicycle horse sheep cow elephant giraffe zebra bear umbrella table chair couch bed
    pizza cake banana apple plate bowl cup glass fork kitchen bathroom street beach ocean tree surfboard kite hat circle square"""
WORDS = [
    *((noun, "NOUN") for noun in NOUNS.split()),
    *((verb, "VERB") for verb in ("ride", "sit", "walk", "eat", "throw", "open", "push", "fly")),
    *((adjective, "ADJ") for adjective in ("red", "white", "large", "tall", "wet", "wooden", "open", "young")),
]


@pytest.fixture(name="wordnet")
def _wordnet() -> WordNet:
    return load_wordnet()


@needs_table
def test_rare_senses_are_skipped(wordnet: WordNet) -> None:
    assert "lap" not in wordnet.synonyms("circle", "NOUN", 9)
    assert "sit" not in wordnet.synonyms("ride", "VERB")
    assert "bull" not in wordnet.antonyms("bear", "NOUN")


@needs_table
@pytest.mark.parametrize(
    ("lemma", "pos", "opposite"),
    [
        ("man", "NOUN", "woman"),
        ("sit", "VERB", "stand"),
        ("push", "VERB", "pull"),
        ("large", "ADJ", "small"),
        ("tall", "ADJ", "short"),
        ("open", "ADJ", "closed"),
        ("inside", "ADV", "outside"),
    ],
)
def test_opposites_are_opposite_both_ways(wordnet: WordNet, lemma: str, pos: str, opposite: str) -> None:
    assert opposite in wordnet.antonyms(lemma, pos)
    assert lemma in wordnet.antonyms(opposite, pos)


@needs_table
@pytest.mark.parametrize(("lemma", "pos"), WORDS)
def test_antonymy_is_symmetric(wordnet: WordNet, lemma: str, pos: str) -> None:
    assert all(lemma in wordnet.antonyms(other, pos) for other in wordnet.antonyms(lemma, pos))


@needs_table
def test_synonyms_are_those_of_the_meant_sense(wordnet: WordNet) -> None:
    assert "sofa" in wordnet.synonyms("couch", "NOUN")
    assert wordnet.synonyms("bike", "NOUN") == ["bicycle"]
    assert "big" in wordnet.synonyms("large", "ADJ")
    assert "machine" not in wordnet.synonyms("car", "NOUN")


@needs_table
def test_is_a_follows_the_hierarchy(wordnet: WordNet) -> None:
    assert wordnet.is_a("dog", "animal", "NOUN")
    assert not wordnet.is_a("animal", "dog", "NOUN")
    assert "animal" in wordnet.hypernyms("dog", "NOUN")
    assert "poodle" in wordnet.hyponyms("dog", "NOUN")
    assert wordnet.related("animal", "dog", "NOUN")
    assert wordnet.related("couch", "sofa", "NOUN")
    assert not wordnet.related("dog", "cat", "NOUN")


@needs_table
@given(st.text(max_size=20), st.sampled_from(POS))
@settings(max_examples=examples(50))
def test_unknown_words_have_no_neighbours(lemma: str, pos: str) -> None:
    """Whatever is asked, nothing is raised; a word without senses has nothing around it."""
    wordnet = load_wordnet()
    if not wordnet.has(lemma, pos):
        assert not wordnet.synonyms(lemma, pos)
        assert not wordnet.antonyms(lemma, pos)
        assert not wordnet.hypernyms(lemma, pos)


@needs_table
def test_the_order_is_the_same_in_a_new_reader(wordnet: WordNet) -> None:
    again = WordNet(read_graph(table_path()), table_path())
    assert all(wordnet.synonyms(*word, 9) == again.synonyms(*word, 9) for word in WORDS[:10])


@needs_table
def test_parts_of_speech_that_wordnet_has_not_have_no_words(wordnet: WordNet) -> None:
    assert not wordnet.has("on", "ADP")
    assert not wordnet.synonyms("he", "PRON")


@needs_table
def test_the_status_names_the_table() -> None:
    assert wordnet_status()[0]


def test_without_set_up_one_line_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIRWRIGHT_WORDNET", str(tmp_path / "none.npz"))
    with pytest.raises(MissingResourceError, match=r"run `pairwright doctor --fix`"):
        load_wordnet()
    assert wordnet_status()[0] is False


@pytest.mark.parametrize("content", [b"", b"not a table", b"PK\x03\x04 torn"])
def test_a_torn_table_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "table.npz"
    file.write_bytes(content)
    with pytest.raises(StorageError, match="doctor --fix"):
        read_graph(file)


def test_lexnames_has_a_line_for_each_domain_in_the_form_that_nltk_reads() -> None:
    lines = lexnames_content().splitlines()
    assert len(lines) == len(LEXICAL_DOMAINS) == 45
    assert lines[0] == "00\tadj.all\t3"
    assert all(re.fullmatch(r"\d\d\t(noun|verb|adj|adv)\.\w+\t[1-4]", line) for line in lines)


def test_a_failed_download_is_one_error_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No NLTK corpus, no answer from its server, no apt-get."""
    import nltk.data
    from nltk.downloader import Downloader

    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(Downloader, "DEFAULT_URL", "http://127.0.0.1:9/index.xml")
    monkeypatch.setattr(wordnet_setup, "_DEBIAN_FOLDER", tmp_path / "none")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    lines: list[str] = []
    with pytest.raises(MissingResourceError, match="get NLTK's corpus `wordnet`"):
        set_up_language(lines.append, tmp_path)
    assert any("unreachable" in line for line in lines)


@pytest.mark.slow
@needs_table
def test_compiling_again_gives_the_same_bytes(tmp_path: Path) -> None:
    root = wordnet_setup._find_in_nltk()
    if root is None:
        pytest.skip("NLTK does not find the corpus that the table was compiled from")
    compile_table(root, tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == table_path().read_bytes()


def test_a_synonym_without_counts_has_the_shared_sense_as_its_first(wordnet: WordNet) -> None:
    assert "icon" not in wordnet.synonyms("picture", "NOUN", senses=9)
    assert "image" in wordnet.synonyms("picture", "NOUN")
