"""Messages of a command before it overwrites something."""

import os
import time
from pathlib import Path

import pytest

from pairwright.cli.output.files import check_outputs
from tests.cli.conftest import Run

AT = 1_700_000_000


def dated(path: Path) -> str:
    """Set the time of a file, and return it as messages show it."""
    os.utime(path, (AT, AT))
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(AT))


def test_a_file_to_overwrite_is_named_with_its_size_and_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run says what it writes over; what is new, or not asked for, is not worth a word."""
    there = tmp_path / "there.jsonl"
    there.write_bytes(bytes(12_345))
    written = dated(there)
    check_outputs(there, tmp_path / "new.jsonl", None)
    printed = capsys.readouterr()
    assert printed.err == f"{there}: will overwrite this file (12,345 bytes, modified {written}) on success.\n"
    assert not printed.out


def test_a_new_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip in the name of a folder is visible immediately."""
    check_outputs(tmp_path / "reslts" / "out.jsonl")
    assert (
        capsys.readouterr().err
        == f"{tmp_path / 'reslts' / 'out.jsonl'}: will create the folder {tmp_path / 'reslts'}.\n"
    )


def test_a_folder_with_files_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files of a folder that have the names of new ones are replaced, and an empty folder is as good as a new one."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "README.md").touch()
    check_outputs(tmp_path / "empty", tmp_path / "hub")
    assert (
        capsys.readouterr().err
        == f"{tmp_path / 'hub'}: the folder is not empty; files of the same names will be overwritten.\n"
    )


def test_generating_again_says_so_and_writes_the_same(run: Run, captions: Path, tmp_path: Path) -> None:
    """The same command again is no error: it says what it replaces, and gives the same bytes."""
    out = tmp_path / "made" / "negatives.jsonl"
    command = ("generate", "negatives", captions.name, "--types", "replace-object", "--out", "made/negatives.jsonl")
    first = run(*command).stderr
    before = out.read_bytes()
    written = dated(out)
    again = run(*command).stderr
    assert "made/negatives.jsonl: will create the folder made.\n" in first
    assert "replaces" not in first
    assert (
        f"made/negatives.jsonl: will overwrite this file ({len(before):,} bytes, modified {written}) on success.\n"
        in again
    )
    assert out.read_bytes() == before


def test_a_plan_replaces_nothing(run: Run, captions: Path, tmp_path: Path) -> None:
    """``--dry-run`` writes no output, so it says nothing of one."""
    (tmp_path / "conversations.jsonl").write_text("kept\n")
    asked = ("--method", "llm", "--model", "small", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    done = run("generate", "conversations", captions.name, *asked, "--out", "conversations.jsonl")
    assert "replaces" not in done.stderr
    assert (tmp_path / "conversations.jsonl").read_text() == "kept\n"


def test_an_index_to_replace_is_named(run: Run, captions: Path, tmp_path: Path) -> None:
    """An index may have taken hours."""
    command = ("index", "build", captions.name, "--out", "index")
    assert "replaces" not in run(*command).stderr
    written = dated(tmp_path / "index" / "index.json")
    assert f"index: will replace the index in it (modified {written}).\n" in run(*command).stderr


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("generate", "negatives", "pool.jsonl", "--out", "file/n.jsonl"), "file is a file, not a folder"),
        (("init", "--out", "file/build.yaml"), "file: a file is in the place of a folder"),
        (("fetch", "pool.jsonl", "--out", "file"), "a file is in the place of a folder"),
        (("index", "build", "pool.jsonl", "--out", "file"), "file: not a folder"),
    ],
)
def test_a_file_in_place_of_a_folder_is_refused_before_the_work(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], printed: str
) -> None:
    """The system says "File exists", and says it when all is done; and nothing is said to be replaced."""
    (tmp_path / "pool.jsonl").write_text('{"caption": "a dog", "image": "https://example.com/a.jpg"}\n')
    (tmp_path / "file").touch()
    done = run(*arguments, ok=False)
    assert done.returncode in {1, 2}
    assert printed in done.stderr
    assert "replaces" not in done.stderr
    assert "will create the folder" not in done.stderr


def test_what_differs_between_builds_begins_with_its_title(run: Run, captions: Path) -> None:
    """No empty line precedes it."""
    for name, types in (("a", "replace-object"), ("b", "replace-attribute")):
        config = f"name: {name}\ninput: {{path: {captions.name}}}\nnegatives: {{types: [{types}]}}\nworkers: 1\n"
        captions.with_name(f"{name}.yaml").write_text(config)
        run("build", f"{name}.yaml", "--out", name, "--no-prefect")
    assert run("diff", "a", "b").stdout.startswith("config\n")


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "negatives", "in.jsonl", "--out", "gs://pool/out.jsonl"),
        ("build", "build.yaml", "--out", "s3://pool/out"),
        ("index", "build", "in.jsonl", "--out", "memory://pool/index"),
        ("audit", "in.jsonl", "--report", "s3://pool/report.html"),
    ],
)
def test_a_url_as_output_of_a_command_that_writes_to_disk_is_refused(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """They made a folder `gs:` here, and said that they had written to the store."""
    refused = run(*command, ok=False)
    assert refused.returncode == 2
    assert f"{command[-1]}: this output is written to disk. Give a local path" in refused.stderr
    assert not list(tmp_path.iterdir())
