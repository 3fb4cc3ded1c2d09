"""Unknown names in options: the error suggests the nearest name and lists all."""

from pathlib import Path

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
        (("refine", "captions.jsonl", "--add-attacks", "meanin", "--out", "out.jsonl"), "meaning"),
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


@pytest.mark.parametrize("method", [(), ("--method", "llm", "--model", "any", "--base-url", "http://127.0.0.1:1")])
@pytest.mark.parametrize("kind", ["negatives", "positives", "conversations"])
def test_an_unknown_type_is_reported_before_broken_input(
    run: Run, tmp_path: Path, kind: str, method: tuple[str, ...]
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{", encoding="utf-8")
    done = run("generate", kind, str(broken), "--types", "swap-objct", *method, "--out", "out.jsonl", ok=False)
    assert done.returncode == 2
    assert f"no such type of {kind[:-1]}: swap-objct" in done.stderr
