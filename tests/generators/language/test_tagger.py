"""The tagger: what it finds in captions, that its spans fit, and what it says when a pipeline is missing."""

import os
import pickle
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.captions.invisible_characters import has_invisible, remove_invisible
from pairwright.datasets.errors import InputError, MissingResourceError, UsageError
from pairwright.generators.language import tagger
from pairwright.generators.language.tagger import BUNDLED_PIPELINE, load_tagger, tagger_status
from pairwright.generators.language.treebank import read_treebank
from tests.example_counts import examples

CAPTIONS = {
    "a man riding a wave on a surfboard": "DT NN VBG DT NN IN DT NN",
    "two dogs playing": "CD NNS VBG",
    "a close up of a red stop sign": "DT JJ NN IN DT JJ NN NN",
    "A large red circle to the left of a small blue square.": "DT JJ JJ NN IN DT NN IN DT JJ JJ NN .",
    "There is a cat sleeping on top of a laptop": "EX VBZ DT NN VBG IN NN IN DT NN",
    "A black and white photo of a train.": "DT JJ CC JJ NN IN DT NN .",
}


@pytest.fixture(autouse=True)
def _bundled_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIRWRIGHT_SPACY_MODEL", str(BUNDLED_PIPELINE))


@pytest.mark.parametrize(("caption", "tags"), CAPTIONS.items())
def test_captions_get_their_tags(caption: str, tags: str) -> None:
    (tokens,) = load_tagger().tag([caption])
    assert " ".join(token.tag for token in tokens) == tags


def test_tokens_carry_universal_tags_and_lemmas() -> None:
    (tokens,) = load_tagger().tag(["Two women are riding buses"])
    assert [token.pos for token in tokens] == ["NUM", "NOUN", "AUX", "VERB", "NOUN"]
    assert [token.lemma for token in tokens] == ["two", "woman", "be", "ride", "bus"]


@settings(max_examples=examples(100))
@given(st.lists(st.text(max_size=60), max_size=4))
def test_spans_are_the_text_in_order_without_overlap(texts: list[str]) -> None:
    """Each token equals its span, and nothing but spaces and invisible characters is lost."""
    for text, tokens in zip(texts, load_tagger().tag(texts), strict=True):
        assert all(text[token.start : token.end] == token.text for token in tokens)
        assert all(left.end <= right.start for left, right in pairwise(tokens))
        assert not any(token.text.isspace() or not token.tag for token in tokens)
        words = "".join(token.text for token in tokens)
        assert "".join(remove_invisible(words).split()) == "".join(remove_invisible(text).split())
        assert has_invisible(text) or "".join(words.split()) == "".join(text.split())


def test_lone_surrogates_and_very_long_texts_do_not_stop_it() -> None:
    """What a torn file may hold is tagged, not refused."""
    odd, long = load_tagger().tag(["a dog \ud800 cat", "dog " * 3000])
    assert [token.text for token in odd][:2] == ["a", "dog"]
    assert odd[2].text == "\ud800"
    assert len(long) == 3000


def test_batches_give_what_single_texts_give() -> None:
    texts = list(CAPTIONS)
    assert load_tagger().tag(texts) == [load_tagger().tag([text])[0] for text in texts]


def test_a_repeated_text_gets_tokens_of_its_own() -> None:
    first, other, again = load_tagger().tag(["a red dog", "a cat", "a red dog"])
    assert first == again != other
    first.clear()
    assert [token.text for token in again] == ["a", "red", "dog"]


def test_a_tagger_pickles_by_name() -> None:
    assert pickle.loads(pickle.dumps(load_tagger())).name == load_tagger().name  # noqa: S301 - our own bytes


def test_a_missing_pipeline_gives_one_line_that_says_how_to_install_it() -> None:
    with pytest.raises(MissingResourceError, match="python -m spacy download en_nowhere_sm"):
        load_tagger("en_nowhere_sm")
    assert tagger_status("en_nowhere_sm") == (
        False,
        "en_nowhere_sm is not installed: `python -m spacy download en_nowhere_sm`",
    )


def test_a_folder_that_is_no_pipeline_gives_one_line(tmp_path: Path) -> None:
    with pytest.raises(MissingResourceError, match="cannot be loaded"):
        load_tagger(str(tmp_path))


def test_a_pipeline_without_a_tagger_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(UsageError, match="no tagger"):
        load_tagger(str(tmp_path / "blank"))


def test_the_bundled_pipeline_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAIRWRIGHT_SPACY_MODEL")
    monkeypatch.setattr(tagger, "_SIBLINGS", ("en_nowhere_sm",))
    there, line = tagger_status()
    assert there
    assert line.startswith("en_ewt_small")


def test_an_installed_pipeline_precedes_the_bundled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAIRWRIGHT_SPACY_MODEL")
    monkeypatch.setattr(tagger, "_SIBLINGS", ("en_nowhere_sm", "json"))
    assert tagger.choose_pipeline() == "json"


def test_the_bundled_pipeline_is_small_and_states_its_licence() -> None:
    assert sum(path.stat().st_size for path in BUNDLED_PIPELINE.rglob("*") if path.is_file()) < 8_000_000
    assert "Attribution-ShareAlike 4.0" in (BUNDLED_PIPELINE / "NOTICE").read_text()


def test_a_treebank_line_with_missing_columns_is_named(tmp_path: Path) -> None:
    file = tmp_path / "dev.conllu"
    file.write_text("1\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_\n2\tbarks\n\n")
    with pytest.raises(InputError, match=r"dev\.conllu:2: 2 columns"):
        read_treebank(file)


def test_a_treebank_sentence_reads_as_written(tmp_path: Path) -> None:
    """Multi-word tokens come as words without a space between; empty nodes are skipped."""
    rows = [
        "1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_",
        "1\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_",
        "2\tn't\tnot\tPART\tRB\t_\t0\tx\t_\t_",
    ]
    rows += [
        "2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_",
        "3\tgo\tgo\tVERB\tVB\t_\t0\tx\t_\tSpaceAfter=No",
        "4\t!\t!\tPUNCT\t.\t_\t0\tx\t_\t_",
    ]
    file = tmp_path / "dev.conllu"
    file.write_text("# text = don't go!\n" + "\n".join(rows) + "\n\n")
    (sentence,) = read_treebank(file)
    assert sentence.words == ("do", "n't", "go", "!")
    assert sentence.text == "don't go!"


@pytest.mark.skipif("PAIRWRIGHT_TEST_DATA" not in os.environ, reason="PAIRWRIGHT_TEST_DATA is not set")
def test_at_least_93_percent_of_the_treebank_tags_are_right() -> None:
    from spacy.tokens import Doc

    dev = read_treebank(Path(os.environ["PAIRWRIGHT_TEST_DATA"]) / "ud_ewt" / "dev.conllu")
    nlp = load_tagger().pipeline  # type: ignore[attr-defined]
    docs = nlp.pipe([Doc(nlp.vocab, words=list(s.words), spaces=list(s.spaces)) for s in dev], batch_size=256)
    pairs = [
        (token.tag_, tag) for doc, s in zip(docs, dev, strict=True) for token, tag in zip(doc, s.tags, strict=True)
    ]
    assert sum(given == gold for given, gold in pairs) / len(pairs) >= 0.93


def test_text_in_capitals_is_tagged_like_lower_case() -> None:
    text = "a yellow bus pulled up to the curb by a hedge with 2 \N{SLIGHTLY SMILING FACE}."
    small, capitals = (load_tagger().tag([each])[0] for each in (text, text.upper()))
    assert [(token.start, token.end, token.tag, token.lemma) for token in small] == [
        (token.start, token.end, token.tag, token.lemma) for token in capitals
    ]
    assert all(token.text == text.upper()[token.start : token.end] for token in capitals)


def test_letters_that_grow_in_lower_case_keep_their_offsets() -> None:
    text = "A DOG IN \N{LATIN CAPITAL LETTER I WITH DOT ABOVE}ZM\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}R"
    assert all(text[token.start : token.end] == token.text for token in load_tagger().tag([text])[0])


def test_a_lower_case_word_is_no_proper_noun_in_a_caption_with_capitals() -> None:
    def tags(caption: str) -> dict[str, str]:
        return {token.text: token.tag for token in load_tagger().tag([caption])[0]}

    assert tags("A man riding skis down a snow covered slope.")["slope"] == "NN"
    assert tags("A man in Paris playing wii.")["Paris"] == "NNP"
    assert tags("A bridge in london on a cold day.")["london"] == "NNP"
    assert tags("a man riding a bus in new york")["york"] == "NNP", "no capitals, no telling"
