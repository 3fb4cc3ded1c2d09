"""The paper's two neural scorers, on tiny checkpoints in the layout of the real ones."""

from pathlib import Path

import numpy as np
import pytest

from pairwright.datasets.errors import MissingResourceError
from pairwright.filters.scorers.neural import load_cola, load_vera

torch = pytest.importorskip("torch", reason="torch is an extra")
transformers = pytest.importorskip("transformers", reason="transformers is an extra")

WORDS = ["a", "cat", "dog", "on", "mat", "the"]
TEXTS = ["a cat on the mat", "the dog", "a cat", "mat on a a the dog cat", "the dog"]


def save_tokenizer(folder: Path, end: str) -> None:
    """A tokenizer of seven words that ends each text with ``end``."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {word: number for number, word in enumerate(["<pad>", end, "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))  # noqa: S106 - no password
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, 1)])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=end,
        **dict(zip(("pad_token", "unk_token"), ("<pad>", "<unk>"), strict=True)),
    )
    fast.save_pretrained(folder)


@pytest.fixture(scope="module")
def cola_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DistilBERT classifier with two labels."""
    folder = tmp_path_factory.mktemp("cola")
    torch.manual_seed(1)
    config = transformers.DistilBertConfig(vocab_size=9, dim=16, hidden_dim=16, n_layers=1, n_heads=2, num_labels=2)
    transformers.DistilBertForSequenceClassification(config).save_pretrained(folder)
    save_tokenizer(folder, "[SEP]")
    return folder


@pytest.fixture(scope="module")
def vera_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A T5 encoder with Vera's head in its embedding."""
    folder = tmp_path_factory.mktemp("vera")
    torch.manual_seed(1)
    config = transformers.T5Config(vocab_size=32_100, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    model = transformers.T5EncoderModel(config)
    with torch.no_grad():
        model.shared.weight[32_099] = torch.arange(8) / 8 - 0.4
        model.shared.weight[32_098] = 0.25
        model.shared.weight[32_097] = 2.0
    model.save_pretrained(folder)
    save_tokenizer(folder, "</s>")
    return folder


def test_cola_is_the_probability_of_the_last_label(cola_folder: Path) -> None:
    scores = load_cola(str(cola_folder)).score(TEXTS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(cola_folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(cola_folder).eval()
    for text, score in zip(TEXTS, scores, strict=True):
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
        assert score == pytest.approx(float(logits.softmax(-1)[1]), abs=2e-6)


def test_vera_reads_its_head_from_the_embedding_and_scores_the_end_token(vera_folder: Path) -> None:
    scores = load_vera(str(vera_folder)).score(TEXTS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(vera_folder)
    model = transformers.T5EncoderModel.from_pretrained(vera_folder).eval()
    for text, score in zip(TEXTS, scores, strict=True):
        with torch.no_grad():
            hidden = model(input_ids=tokenizer(text, return_tensors="pt").input_ids).last_hidden_state[0, -1]
        logit = float(hidden @ (torch.arange(8) / 8 - 0.4)) + 0.25
        assert score == pytest.approx(1 / (1 + np.exp(-logit / 2.0)), abs=2e-6)
    assert len(set(scores)) > 2


def test_gaps_of_equal_texts_are_zero_and_exchanged_texts_change_the_sign(cola_folder: Path) -> None:
    scorer = load_cola(str(cola_folder))
    one, other = TEXTS[:3], TEXTS[1:4]
    groups = ["1", "2", "3"]
    assert (scorer.gaps(one, one, groups, 0) == 0).all()
    assert (scorer.gaps(one, other, groups, 0) == -scorer.gaps(other, one, groups, 0)).all()


def test_a_missing_or_foreign_checkpoint_is_an_error_that_names_a_fix(tmp_path: Path, cola_folder: Path) -> None:
    with pytest.raises(MissingResourceError, match="give its folder"):
        load_cola(str(tmp_path))
    with pytest.raises(MissingResourceError):
        load_vera(str(tmp_path))
