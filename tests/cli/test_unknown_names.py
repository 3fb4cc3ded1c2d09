"""A name that there is not, wherever it is written: what was meant, and what there is."""

import pytest

from tests.cli.conftest import Run

GENERATE = ("generate", "negatives", "captions.jsonl", "--out", "out.jsonl")


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ((*GENERATE, "--types", "replace-objct"), "replace-object"),
        ((*GENERATE, "--quota", "swap-objct=5"), "swap-object"),
        ((*GENERATE, "--format", "jsonll"), "jsonl"),
        ((*GENERATE, "--columns", "captoin=text"), "caption"),
        (("generate", "positives", "captions.jsonl", "--types", "swap-objects", "--out", "out.jsonl"), "swap-object"),
        (("generate", "conversations", "captions.jsonl", "--types", "breif", "--out", "out.jsonl"), "brief"),
        (("generate", "conversations", "captions.jsonl", "--counts", "shrt=5", "--out", "out.jsonl"), "short"),
        (("refine", "captions.jsonl", "--also", "meanin", "--out", "out.jsonl"), "meaning"),
        (("validate", "captions.jsonl", "--by", "contxt", "--out", "out.jsonl"), "context"),
        (("export", "captions.jsonl", "--to", "lava", "--out", "out.json"), "llava"),
        (("init", "--template", "lava", "--out", "build.yaml"), "llava"),
    ],
)
def test_a_slip_is_answered_with_the_name_that_was_meant(
    run: Run, captions: object, command: tuple[str, ...], meant: str
) -> None:
    done = run(*command, ok=False)
    assert done.returncode == 2
    assert f"Did you mean {meant}? There are: " in done.stderr
