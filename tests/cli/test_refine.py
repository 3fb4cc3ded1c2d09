"""``pairwright refine``: scorers from folders, and ``--fix``."""

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app

CAPTIONS = ("a dog in the park", "a cat on a mat", "the dog on the mat", "a cat in the house")


@pytest.fixture
def negatives(tmp_path: Path) -> Path:
    """Two negatives of each of four captions, one far longer than the other."""
    path = tmp_path / "negatives.jsonl"
    with path.open("w") as file:
        for number, caption in enumerate(CAPTIONS):
            for noun in ("cow", "rhinoceros"):
                words = caption.split()
                row = {"caption": caption, "negative": " ".join([words[0], noun, *words[2:]]), "image": f"{number}.jpg"}
                file.write(json.dumps(row) + "\n")
    return path


@pytest.fixture
def cola_folder(tmp_path: Path) -> Path:
    """A tiny classifier with two labels."""
    torch = pytest.importorskip("torch", reason="torch is an extra")
    transformers = pytest.importorskip("transformers", reason="transformers is an extra")
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path / "cola"
    torch.manual_seed(1)
    config = transformers.DistilBertConfig(vocab_size=16, dim=16, hidden_dim=16, n_layers=1, n_heads=2, num_labels=2)
    transformers.DistilBertForSequenceClassification(config).save_pretrained(folder)
    words = ["<pad>", "<unk>", *sorted({word for caption in CAPTIONS for word in caption.split()})]
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token=words[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.add_special_tokens({"pad_token": words[0], "unk_token": words[1]})
    fast.save_pretrained(folder)
    return folder


def test_a_model_in_a_folder_takes_part_and_its_gaps_are_written(negatives: Path, cola_folder: Path) -> None:
    out = negatives.with_name("refined.jsonl")
    done = CliRunner().invoke(
        app,
        [
            "refine",
            str(negatives),
            "--out",
            str(out),
            "--add-attacks",
            f"cola={cola_folder}",
            "--target",
            "0.9",
            "--json",
        ],
    )
    assert "cola" in json.loads(done.stdout)["attacks"]
    assert all("cola_gap" in json.loads(line)["scores"] for line in out.read_text().splitlines())


@pytest.mark.parametrize(
    ("also", "says"), [("meaning=here", "takes no folder"), ("taste", "There are: cloze, meaning")]
)
def test_a_model_that_does_not_fit_is_wrong_usage(negatives: Path, also: str, says: str) -> None:
    done = CliRunner().invoke(app, ["refine", str(negatives), "--out", "r.jsonl", "--add-attacks", also])
    assert says in str(done.exception)


def test_fix_choose_keeps_one_negative_of_each_caption_to_refine(negatives: Path) -> None:
    out = negatives.with_name("refined.jsonl")
    done = CliRunner().invoke(app, ["refine", str(negatives), "--out", str(out), "--fix", "choose", "--json"])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert json.loads(done.stdout)["in"] == len(CAPTIONS)
    assert sum(row["reason"] == "not_chosen" for row in rows) == len(rows) - len(CAPTIONS)


def test_a_type_without_kept_rows_has_no_accuracy_after(tmp_path: Path) -> None:
    """It was 50.0%, as of a balanced type."""
    path = tmp_path / "rows.jsonl"
    rows = []
    for one, other in itertools.permutations(("dog", "cat", "cow", "pig", "fox", "hen"), 2):
        for place in ("park", "house", "field", "garden"):
            caption = f"a {one} in the {place}"
            rows += [
                {"caption": caption, "negative": f"a {other} in the {place}", "form": "replace"},
                {"caption": caption, "negative": f"{caption} and a tall rhinoceros", "form": "add"},
            ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(app, ["refine", str(path), "--out", str(tmp_path / "refined.jsonl")])
    (line,) = (line.split() for line in done.output.splitlines() if line.startswith("add "))
    assert line == ["add", "120", "0", "length", "100.0%", "-"]
