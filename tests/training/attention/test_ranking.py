"""Ranking documents by a decoder, four ways."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.prompts import question_prompt
from pairwright.training.attention.ranking import RANKINGS, descending_order, open_decoder, relevance_scores
from tests.training.attention.test_decoder import DOCUMENTS, reader


@pytest.mark.parametrize(
    ("ranking", "passes"), [("attention", 4), ("plain-attention", 1), ("likelihood", 3), ("yes-no", 6)]
)
def test_each_ranking_scores_every_document_and_costs_what_it_says(ranking: Any, passes: int) -> None:
    found = reader()
    values = relevance_scores(found, ranking, "Who flies?", DOCUMENTS)
    assert values.shape == (3,)
    assert np.isfinite(values).all()
    assert len(set(values)) == 3
    assert found.passes == passes


def test_plain_attention_is_what_the_prompt_gets() -> None:
    found = reader()
    expected = found.attention([question_prompt("Who flies?", DOCUMENTS)])[0]
    assert np.array_equal(relevance_scores(found, "plain-attention", "Who flies?", DOCUMENTS), expected)


def test_log_probabilities_are_those_of_the_tokens_behind_alone_or_in_a_batch() -> None:
    found = reader(3)
    together = found.log_probabilities(["Anna.", "A much longer text before.", "B"], [" yes", " no, and more", "é"])
    ids = torch.tensor([found.tokenizer("Anna. yes")["input_ids"]])
    with torch.inference_mode():
        logs = found.model(ids).logits.log_softmax(-1)
    expected = [float(logs[0, place - 1, ids[0, place]]) for place in range(5, 9)]
    np.testing.assert_allclose(together[0], expected, atol=1e-5)
    assert [len(values) for values in together] == [4, 13, 2]
    alone = reader(1).log_probabilities(["A much longer text before."], [" no, and more"])
    np.testing.assert_allclose(together[1], alone[0], atol=1e-5)


@pytest.mark.parametrize("ranking", ["likelihood", "yes-no"])
def test_rankings_that_read_documents_alone_do_not_see_their_places(ranking: Any) -> None:
    forward, backward = (
        relevance_scores(reader(), ranking, "Who?", documents) for documents in (DOCUMENTS, DOCUMENTS[::-1])
    )
    np.testing.assert_allclose(forward, backward[::-1], atol=1e-5)


def test_the_order_is_by_score_and_of_equals_as_they_came() -> None:
    assert descending_order(np.array([0.1, 0.3, 0.1, 0.3])) == [1, 3, 0, 2]


def test_a_saved_decoder_opens_and_scores_as_before(tmp_path: Path) -> None:
    found = reader()
    found.model.save_pretrained(tmp_path)
    found.tokenizer.save_pretrained(tmp_path)
    opened = open_decoder(str(tmp_path), "cpu")
    for ranking in RANKINGS:
        expected = relevance_scores(reader(8), ranking, "Who?", DOCUMENTS)
        np.testing.assert_allclose(relevance_scores(opened, ranking, "Who?", DOCUMENTS), expected, atol=1e-6)


def test_what_is_no_decoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a causal language model"):
        open_decoder(str(tmp_path), "cpu")
