"""Trained models open in vLLM; see `benchmarks.trainer.vllm_outputs`. Runs where PAIRWRIGHT_VLLM names its command."""

import os
from pathlib import Path

import pytest

pytest.importorskip("peft", reason="LoRA is peft's")

from benchmarks.trainer.vllm_outputs import compare


@pytest.mark.slow
@pytest.mark.skipif("PAIRWRIGHT_VLLM" not in os.environ, reason="PAIRWRIGHT_VLLM does not name the command `vllm`")
@pytest.mark.parametrize("name", ["llava-lora", "llava-parts"])
def test_vllm_answers_with_the_tokens_of_transformers(tmp_path: Path, name: str) -> None:
    expected, found = compare(name, tmp_path)
    assert found == expected
