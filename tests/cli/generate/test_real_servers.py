"""Commands that ask servers of other projects; see `benchmarks.llm.real_servers`, which runs litellm and llama.cpp as well."""

from pathlib import Path

import pytest

from benchmarks.llm.real_servers import CACHE, CASES, Work, ask, transformers
from pairwright.generators.llm.output.errors import OUTPUT_ERROR_CODES


@pytest.mark.slow
def test_transformers_serve_answers_texts_and_images(tmp_path: Path) -> None:
    """Random weights write nothing of use: each request is answered, and negatives are rejected for the answer's form."""
    work = Work(tmp_path, CACHE, tmp_path / "server.log")
    work.write(2)
    with transformers(work) as [text, *seeing]:
        negatives = ask(text, work, CASES["negatives"])
        described = [ask(server, work, CASES["prompts-image"]) for server in seeing]
    assert (negatives.code, negatives.failed) == (3, 0)
    assert negatives.requests >= 2
    assert negatives.counts.keys() <= {"kept", *OUTPUT_ERROR_CODES}
    assert all(each.requests >= 2 and not each.failed for each in described)
