# ruff: noqa: S106 - special tokens, no passwords
"""Prompts with documents, their tokens, the relevance of their documents, and answers by calibrated attention."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.calibration import (
    TEMPERATURE,
    Calibration,
    attention_shares,
    calibrated_relevance,
    descending_order,
)
from pairwright.training.attention.decoder import DocumentDecoder, open_decoder
from pairwright.training.attention.prompts import (
    DocumentPrompt,
    as_chat,
    dummy_document,
    question_prompt,
    tokenize_prompt,
)

DOCUMENTS = ["Anna keeps a red kite.", "Ben lost his drum in May, they say.", "Cleo"]
texts = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=30), min_size=1, max_size=5
)


def tokenizer(template: str | None = None) -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes: any text has tokens, and letters beyond ASCII have several."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_ = Tokenizer(models.BPE({letter: number for number, letter in enumerate(["<pad>", "<s>", *alphabet])}, []))
    bytes_.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=bytes_, pad_token="<pad>", bos_token="<s>", chat_template=template)


def reader(batch: int = 4) -> DocumentDecoder:
    """Return a random decoder that reads bytes; its attention is uneven."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = LlamaForCausalLM(
            LlamaConfig(
                hidden_size=32,
                intermediate_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                vocab_size=300,
                pad_token_id=0,
                eos_token_id=None,
                max_position_embeddings=700,
            )
        )
        for name, parameter in model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                torch.nn.init.normal_(parameter, std=0.4)
    model.eval()
    return DocumentDecoder(model, tokenizer(), batch)


def test_the_question_stands_before_and_behind_the_documents() -> None:
    prompt = question_prompt("Who flies?", DOCUMENTS)
    assert prompt.documents == DOCUMENTS
    first, last = prompt.text.index("Who flies?"), prompt.text.rindex("Who flies?")
    assert first < prompt.spans[0][0] < prompt.spans[-1][1] < last
    assert "Document [3] Cleo\n" in prompt.text


@given(first=texts, more=st.data())
def test_other_documents_take_the_same_places(first: list[str], more: st.DataObject) -> None:
    prompt = question_prompt("Who?", first)
    others = more.draw(st.lists(st.text(min_size=1, max_size=30), min_size=len(first), max_size=len(first)))
    for place, other in enumerate(others):
        prompt = prompt.with_dummy(place, other)
    assert prompt == question_prompt("Who?", others)


@given(documents=texts)
def test_tokens_of_a_document_hold_its_letters_and_no_others(documents: list[str]) -> None:
    read, words = question_prompt("Who?", documents), tokenizer()
    found = tokenize_prompt(read, words)
    assert found.layout.length == len(found.ids)
    decoded = [words.decode(list(found.ids[first:end])) for first, end in found.layout.spans]
    assert decoded == documents


def test_a_token_over_a_border_belongs_to_the_document_and_one_over_two_to_the_first() -> None:
    whole = Tokenizer(models.WordLevel({"ab": 0, "cd": 1, "ef": 2, "?": 3}, unk_token="?"))
    whole.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words = PreTrainedTokenizerFast(tokenizer_object=whole)
    assert tokenize_prompt(DocumentPrompt("ab cd ef", ((1, 4), (4, 8))), words).layout.spans == ((0, 2), (2, 3))
    with pytest.raises(UsageError, match="document 2 has no token"):
        tokenize_prompt(DocumentPrompt("ab cd ef", ((1, 4), (4, 5))), words)


def test_a_chat_template_moves_the_places_and_one_that_changes_the_text_is_refused() -> None:
    prompt = question_prompt("Who?", DOCUMENTS)
    chat = as_chat(prompt, tokenizer("{% for m in messages %}<s>user: {{ m.content }}{% endfor %} bot:"))
    assert chat.documents == DOCUMENTS
    assert (chat.text[:8], chat.text[-5:], chat.marks) == ("<s>user:", " bot:", False)
    assert as_chat(prompt, tokenizer()) is prompt
    with pytest.raises(UsageError, match="changes the text"):
        as_chat(prompt, tokenizer("{{ messages[0].content | upper }}"))


def test_the_dummy_is_as_long_as_the_middle_document() -> None:
    assert len(dummy_document(["a b c", "d", "e f"]).split()) == 2
    assert len(dummy_document(["x " * 70] * 3).split()) == 70


def test_attention_of_a_batch_is_that_of_each_prompt_alone() -> None:
    prompts = [question_prompt("Who?", DOCUMENTS[:count]) for count in (3, 1, 2)]
    together, alone = reader(3).attention(prompts), reader(1)
    for prompt, found in zip(prompts, together, strict=True):
        np.testing.assert_allclose(found, alone.attention([prompt])[0], atol=1e-6)
        assert found.shape == (len(prompt.spans),)
    assert alone.passes == 3


def test_bias_is_the_dummys_attention_in_each_place_and_costs_a_pass_each() -> None:
    found, prompt = reader(), question_prompt("Who?", DOCUMENTS)
    baseline = found.baseline(prompt, "Nothing here.")
    assert found.passes == 3
    for place in range(3):
        moved = question_prompt("Who?", [*DOCUMENTS[:place], "Nothing here.", *DOCUMENTS[place + 1 :]])
        assert baseline[place] == pytest.approx(found.attention([moved])[0][place], abs=1e-7)
    plain = found.attention([prompt])[0]
    np.testing.assert_allclose(
        found.relevances([prompt], Calibration(dummy="Nothing here."))[0], plain - baseline, atol=1e-7
    )
    logs = found.relevances([prompt], Calibration("log-linear", dummy="Nothing here."))[0]
    np.testing.assert_allclose(logs, np.log(plain / baseline), atol=1e-4)


def test_identical_documents_are_equally_relevant_wherever_they_stand() -> None:
    found = reader()
    prompt = question_prompt("Who?", ["Anna keeps a kite."] * 6)
    attention, relevances = (
        found.attention([prompt])[0],
        found.relevances([prompt], Calibration(dummy="Anna keeps a kite."))[0],
    )
    assert np.ptp(attention) > 1e-6
    np.testing.assert_allclose(relevances, 0, atol=1e-7)


@given(
    relevances=st.lists(st.floats(-1e-3, 1e-3), min_size=1, max_size=20),
    tokens=st.integers(1, 300),
    t=st.sampled_from([5e-6, TEMPERATURE, 1.0]),
)
def test_shares_add_up_and_more_relevant_documents_have_more(relevances: list[float], tokens: int, t: float) -> None:
    found = np.exp(attention_shares(np.asarray(relevances), (tokens,) * len(relevances), t))
    assert found.sum() == pytest.approx(1)
    order = np.argsort(relevances)
    assert (np.diff(found[order]) >= -1e-12).all()


def test_a_longer_document_has_more_in_all_and_the_same_a_token() -> None:
    found = np.exp(attention_shares(np.zeros(2), (10, 30), TEMPERATURE))
    np.testing.assert_allclose(found, [0.25, 0.75])


def test_the_log_linear_form_shares_in_proportion_to_attention_over_bias() -> None:
    how = Calibration("log-linear")
    found = np.exp(
        attention_shares(calibrated_relevance(np.array([0.2, 0.1]), np.array([0.1, 0.2]), how.form), (5, 5), how.t)
    )
    np.testing.assert_allclose(found, [0.8, 0.2])
    assert np.isfinite(calibrated_relevance(np.zeros(2), np.zeros(2), "log-linear")).all()
    assert Calibration().t == TEMPERATURE
    with pytest.raises(UsageError, match="above 0"):
        Calibration(temperature=0.0)


def test_answers_are_stock_without_relevances_and_others_with_them() -> None:
    found, prompts = reader(2), [question_prompt("Who?", DOCUMENTS[:count]) for count in (3, 2, 3)]
    plain = found.answers(prompts, 8)
    ids = torch.tensor([tokenize_prompt(prompts[0], found.tokenizer).ids])
    stock: Any = found.model.generate(ids, max_new_tokens=8, do_sample=False)
    assert plain[0] == found.tokenizer.decode(stock[0, ids.shape[1] :], skip_special_tokens=True)
    relevances = [np.arange(len(prompt.spans), dtype=float) for prompt in prompts]
    changed = found.answers(prompts, 8, relevances, Calibration())
    assert changed != plain
    assert found.answers(prompts, 8) == plain
    assert reader(1).answers(prompts, 8, relevances, Calibration()) == changed


def test_a_prompt_longer_than_the_model_reads_is_refused() -> None:
    with pytest.raises(UsageError, match="limit is 700"):
        reader().attention([question_prompt("Who?", ["word " * 200])])


def test_an_answer_beyond_the_model_s_limit_is_refused_with_advice() -> None:
    found = reader()
    found.fix = "Lower --rerank-top."
    prompt = question_prompt("Who?", ["word " * 60])
    length = len(tokenize_prompt(prompt, found.tokenizer).ids)
    assert len(found.answers([prompt], 700 - length)) == 1
    with pytest.raises(UsageError, match=rf"of {length} tokens and an answer of {701 - length}: .* 700\. Lower --rer"):
        found.answers([prompt], 701 - length)
    with pytest.raises(UsageError, match=r"limit is 700\. Lower --rerank-top"):
        found.scores("Who?", ["word " * 140], None)


def test_attention_is_the_mean_over_tokens_heads_and_layers() -> None:
    read = reader()
    prompt = question_prompt("Who flies?", DOCUMENTS)
    held = tokenize_prompt(prompt, read.tokenizer)
    read.model.set_attn_implementation("eager")
    with torch.inference_mode():
        seen = read.model(torch.tensor([held.ids]), output_attentions=True).attentions
    read.model.set_attn_implementation("sdpa")
    each = torch.stack(seen).mean((0, 2))[0, -1]
    wanted = [float(each[start:end].mean()) for start, end in held.layout.spans]
    assert read.attention([prompt])[0] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(("calibration", "passes"), [(Calibration(), 4), (None, 1)])
def test_a_ranking_scores_every_document_and_costs_what_it_says(calibration: Calibration | None, passes: int) -> None:
    found = reader()
    values = found.scores("Who flies?", DOCUMENTS, calibration)
    assert values.shape == (3,)
    assert np.isfinite(values).all()
    assert len(set(values)) == 3
    assert found.passes == passes


def test_plain_attention_is_what_the_prompt_gets() -> None:
    expected = reader().attention([question_prompt("Who flies?", DOCUMENTS)])[0]
    assert np.array_equal(reader().scores("Who flies?", DOCUMENTS, None), expected)


def test_the_order_is_by_score_and_of_equals_as_they_came() -> None:
    assert descending_order(np.array([0.1, 0.3, 0.1, 0.3])) == [1, 3, 0, 2]


def test_a_saved_decoder_opens_and_scores_as_before(tmp_path: Path) -> None:
    found = reader(8)
    found.model.save_pretrained(tmp_path)
    found.tokenizer.save_pretrained(tmp_path)
    opened = open_decoder(str(tmp_path), "cpu")
    for how in (Calibration(), None):
        np.testing.assert_allclose(
            opened.scores("Who?", DOCUMENTS, how), found.scores("Who?", DOCUMENTS, how), atol=1e-6
        )


def test_what_is_no_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a causal language model"):
        open_decoder(str(tmp_path), "cpu")
