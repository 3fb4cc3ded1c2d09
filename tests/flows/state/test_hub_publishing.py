"""Publishing to the Hugging Face Hub: one commit that readers see, what is there is not sent again, others' files stay."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.checksums import hash_file
from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.remote.hub import check_hub, dataset_of, is_hub
from pairwright.flows.config.build import parse_config
from pairwright.flows.state.hub_publishing import publish_to_hub
from tests.servers.hub import TOKEN, Hub, hub_server

pytest.importorskip("huggingface_hub")
URL = "hf://owner/birds"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_server() as (address, state):
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)  # whose storage the server has not
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        yield state


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shards").mkdir()
    for name in ("00000.tar", "00001.tar", "sizes.json"):
        (tmp_path / "shards" / name).write_text(f"content of {name}")
    (tmp_path / "README.md").write_text("card")
    return tmp_path


def manifest_of(root: Path, number: int = 1) -> dict[str, Any]:
    files = {
        f"shards/{path.name}": {"bytes": path.stat().st_size, "sha256": hash_file(path)}
        for path in sorted((root / "shards").iterdir())
    }
    return {"name": "birds", "files": files, "build": {"number": number}}


def test_a_build_becomes_one_commit_of_a_private_dataset(root: Path, hub: Hub) -> None:
    done = publish_to_hub(root, manifest_of(root), URL)
    assert set(hub.files) == {
        ".pairwright", "README.md", "manifest.json", "shards/00000.tar", "shards/00001.tar", "shards/sizes.json",
    }  # fmt: skip
    assert hub.files["shards/00001.tar"] == b"content of 00001.tar"
    assert set(json.loads(hub.files["manifest.json"])["files"]) == set(hub.files) - {".pairwright", "manifest.json"}
    assert hub.commits == ["Version 1 of birds"]
    assert (hub.created[0]["name"], hub.created[0]["visibility"]) == ("birds", "private")
    assert (done.files, done.sent, done.url) == (4, 4, URL)


def test_an_unchanged_shard_is_not_sent_again_and_a_stale_one_is_removed(root: Path, hub: Hub) -> None:
    publish_to_hub(root, manifest_of(root), URL)
    (root / "shards/00001.tar").unlink()
    (root / "shards/sizes.json").write_text("other")
    done = publish_to_hub(root, manifest_of(root, 2), URL)
    assert (len(hub.uploads), done.removed) == (2, 1)
    assert "shards/00001.tar" not in hub.files
    assert hub.files["shards/sizes.json"] == b"other"


def test_after_a_failure_nothing_is_visible_and_the_next_run_sends_the_rest(root: Path, hub: Hub) -> None:
    hub.fail_after = 1
    with pytest.raises(StorageError, match="hf://owner/birds: "):
        publish_to_hub(root, manifest_of(root), URL)
    assert (hub.files, hub.commits) == ({}, [])
    hub.fail_after = -1
    publish_to_hub(root, manifest_of(root), URL)
    assert len(hub.uploads) == len(set(hub.uploads)) == 2
    assert len(hub.commits) == 1


def test_a_dataset_of_others_is_not_changed(root: Path, hub: Hub) -> None:
    hub.files.update({".gitattributes": b"", "data.csv": b"1"})
    with pytest.raises(StorageError, match="not a published dataset"):
        publish_to_hub(root, manifest_of(root), URL)
    assert hub.commits == []


def test_a_wrong_token_is_told_before_the_build(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    check_hub(URL)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(StorageError, match="hf auth login") as caught:
        check_hub(URL)
    assert "hf_wrong" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        *("hf://birds", "hf://owner/birds/more", "hf:owner/birds", "hf://owner/bi rds"),
        *("hf://../birds", "hf://owner/birds-", "hf://owner/.birds", "hf://owner/a--b", "hf://owner/" + "b" * 97),
    ],
)
def test_other_urls_of_the_hub_are_refused(url: str) -> None:
    assert is_hub(url)
    with pytest.raises(UsageError, match="hf://OWNER/NAME"):
        parse_config({"name": "birds", "input": {"path": "x.csv"}, "publish": url}, where="build.yaml")


def test_both_notations_name_the_dataset() -> None:
    assert dataset_of("hf://datasets/owner/birds/") == dataset_of(URL) == "owner/birds"
