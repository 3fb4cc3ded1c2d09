"""``pairwright verify``: what a path is, whether it is complete, and how to resume."""

import fcntl
import io
import json
import shlex
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config of a build of three parts."""
    rows = [json.dumps({"id": n, "caption": f"two dogs beside {n} cars"}) for n in range(30)]
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    path = tmp_path / "b.yaml"
    path.write_text(yaml.safe_dump({"name": "t", "input": {"path": "in.jsonl"}, "part_size": 10, "workers": 1}))
    return path


def test_an_unfinished_build_says_how_far_it_is_and_how_to_resume_it(run: Run, config: Path, tmp_path: Path) -> None:
    for stage in ("pairs", "tag"):
        run("build", config, "--out", "out", "--no-prefect", "--only", stage)
    (tmp_path / "out" / "receipts" / "tag" / "00002.json").unlink()
    printed = run("verify", "out", "--json", ok=False)
    result = json.loads(printed.stdout)
    assert (printed.returncode, result["kind"]) == (1, "unfinished build")
    (problem,) = result["problems"]
    assert problem.startswith("out: unfinished build (done: pairs, tag 2 of 3 parts).")
    with (tmp_path / "out" / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "which is running now (done: pairs, tag 2 of 3 parts)" in run("verify", "out", ok=False).stdout
    again = problem.partition("`")[2].partition("`")[0]
    run(*shlex.split(again)[1:], "--no-prefect")
    done = run("verify", "out")
    assert "out: version 1 of the build t" in done.stderr
    assert done.stdout == "out: no problems.\n"


def test_a_finished_build_with_a_newer_one_under_way_says_both(run: Run, config: Path, tmp_path: Path) -> None:
    run("build", config, "--out", "out", "--no-prefect")
    changed = {**yaml.safe_load(config.read_text()), "part_size": 15}
    config.write_text(yaml.safe_dump(changed))
    done = run("build", config, "--out", "out", "--no-prefect", "--only", "pairs")
    assert f"Finished pairs in {tmp_path / 'out' / '.next'}" in done.stdout
    printed = run("verify", "out")
    assert "out: version 1 of the build t" in printed.stderr
    assert "a newer version is unfinished (made so far: pairs)." in printed.stderr


@pytest.mark.parametrize("format_", ["hf", "croissant"])
def test_the_shards_of_an_export_are_verified(run: Run, config: Path, tmp_path: Path, format_: str) -> None:
    """They are in its folder data, and it was called "not a build, and no .tar in it"."""
    run("build", config, "--out", "out", "--no-prefect")
    run("export", "out", "--to", format_, "--out", "exported")
    assert run("verify", "exported").stdout == "exported: no problems.\n"
    (shard,) = (tmp_path / "exported" / "data").glob("*.tar")
    shard.write_bytes(shard.read_bytes()[:-2000])
    broken = run("verify", "exported", ok=False)
    assert (broken.returncode, "00000.tar" in broken.stdout) == (1, True)


def test_shards_without_a_manifest_are_called_so(run: Run, config: Path, tmp_path: Path) -> None:
    run("build", config, "--out", "out", "--no-prefect")
    shutil.copytree(tmp_path / "out" / "shards", tmp_path / "alone")
    assert "alone: 1 shard without the manifest of a build." in run("verify", "alone").stderr
    assert "1 shard of the build out" in run("verify", "out/shards").stderr
    printed = run("verify", "out/pairs", ok=False)
    assert (printed.returncode, "a folder inside a build. Check all: pairwright verify out" in printed.stderr) == (
        1,
        True,
    )


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty/", "", "empty: an empty folder."),
        ("other/a.md", "", "other: not a build, and no .tar in it (1 .md)."),
        ("outer/inner/a.md", "", "outer: not a build, and no .tar in it (1 folder)."),
        ("index/index.json", "{}", "index: an index, not a dataset. Check it: pairwright index check index"),
        ("nowhere", None, "nowhere: no such file or folder."),
        ("c.jsonl", '{"caption": "a"}', "c.jsonl: one JSON object per line; not a dataset."),
        ("s.json", '{"0": {"caption": "a", "negative_caption": "b"}}', "s.json: SugarCrepe candidates"),
        ("c.json", '{"images": [], "annotations": []}', "c.json: COCO captions JSON"),
        ("notes.md", "hello", "notes.md: a file of another kind."),
        ("t.json", "[1", "t.json: broken_json"),
    ],
)
def test_verify_describes_a_path_that_is_no_dataset(
    run: Run, tmp_path: Path, name: str, content: str | None, says: str
) -> None:
    path = tmp_path / name
    (path if name.endswith("/") else path.parent).mkdir(exist_ok=True, parents=True)
    if content is not None and not path.is_dir():
        path.write_text(content)
    done = run("verify", path.relative_to(tmp_path).parts[0] if path.parent != tmp_path else name.strip("/"), ok=False)
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_published_version_is_called_so(run: Run, config: Path, tmp_path: Path) -> None:
    run("build", config, "--out", "out", "--no-prefect", "--publish", f"file://{tmp_path}/laid")
    assert "1 shard of version 1 of the build t." in run("verify", f"file://{tmp_path}/laid").stderr
    (tmp_path / "other").mkdir()
    shutil.copytree(tmp_path / "out" / "shards", tmp_path / "other" / "shards")
    (tmp_path / "other" / "manifest.json").write_text("[]")
    assert "1 shard without the manifest of a build" in run("verify", "other").stderr


def test_shards_of_another_tool_are_one_line_and_not_one_per_sample(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pool").mkdir()
    with tarfile.open(tmp_path / "pool" / "00000.tar", "w") as tar:
        for n in range(3):
            about = json.dumps({"sample_id": n, "caption": "a dog", "url": "http://x.org/1.jpg"}).encode()
            for ending, data in (("txt", b"a dog"), ("json", about)):
                member = tarfile.TarInfo(f"{n:09d}.{ending}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    done = run("verify", "pool", ok=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "pool: shards of another tool" in done.stderr
