"""The example of the page on loading runs."""

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("transformers", reason="the example trains a model of transformers")

from pairwright.training.loading.tokenization import load_tokenizer  # noqa: E402 - behind the guard of torch
from pairwright.training.tiny_clip import ClipSizes, new_clip  # noqa: E402
from tests.training.loading_cases import shards, tokenizer  # noqa: E402

PAGE = Path(__file__).resolve().parents[3] / "docs" / "concepts" / "training-loading.md"


def test_the_example_of_a_loop_of_ones_own_runs(tmp_path: Path) -> None:
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    words = tokenizer(tmp_path)
    new_clip(load_tokenizer(words), ClipSizes(image=32, context=77)).network.save_pretrained(words)
    changes = {
        "openai/clip-vit-base-patch32": words,
        "build/birds/shards/{00000..00004}.tar": shards(tmp_path, count=9),
        '"cuda"': '"cpu"',
        "size=224": "size=32",
        "batch_size=256": "batch_size=3",
        "workers=8": "workers=1",
        "epoch < 5": "epoch < 2",
        "checkpoint.pt": str(tmp_path / "checkpoint.pt"),
    }
    for shown, tried in changes.items():
        assert shown in code, f"the example does not say {shown} any more"
        code = code.replace(shown, tried)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - it is our own page
    names.clear()  # its functions hold the loader, and torch waits seconds for workers that the garbage collector finds
    state = torch.load(tmp_path / "checkpoint.pt")["loader"]
    assert (state["epoch"], state["step"], state["samples"]) == (2, 0, 9)
