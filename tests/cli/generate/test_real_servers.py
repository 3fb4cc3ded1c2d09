"""Commands that ask servers of other projects; see `benchmarks.llm.real_servers`, which runs litellm and llama.cpp as well."""

from pathlib import Path

import pytest

from benchmarks.llm.real_servers import CACHE, Work, ask, transformers
from pairwright.generators.llm.output.errors import OUTPUT_ERROR_CODES


@pytest.mark.slow
def test_transformers_serve_answers_texts_and_images(tmp_path: Path) -> None:
    """Random weights write nothing of use: each request is answered, and negatives are rejected for the answer's form."""
    work = Work(tmp_path, CACHE, tmp_path / "server.log")
    work.write(2)
    said = ["--prompts", str(tmp_path / "prompts"), "--parameter", "max_tokens=8"]
    with transformers(work) as [text, seeing]:
        negatives = ask(text, work, ["generate", "negatives", "--method", "llm"], [*text.options, *text.edits])
        described = ask(
            seeing, work, ["prompts", "ask", "one-sentence"], [*said, "--see-image", "--image-root", str(tmp_path)]
        )
    assert (negatives.code, negatives.failed) == (3, 0)
    assert negatives.requests >= 2
    assert negatives.counts.keys() <= {"kept", *OUTPUT_ERROR_CODES}
    assert described.requests >= 2
    assert described.failed == 0
