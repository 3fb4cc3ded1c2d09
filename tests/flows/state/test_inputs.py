"""States of input files, by which a build detects changes."""

import pytest

from pairwright.datasets.remote.object_store import StoredFile, open_store
from pairwright.datasets.remote.store_path import StorePath, to_path
from pairwright.flows.state.inputs import file_state
from tests.servers.s3 import BUCKET, s3_server


def test_a_file_of_a_bucket_that_is_replaced_within_a_second_has_another_state() -> None:
    """S3 dates to the second, and both files had the same size."""
    pytest.importorskip("moto", reason="moto is not installed (extra `s3server`)")
    pytest.importorskip("s3fs", reason="s3fs is not installed (extra `remote`)")
    url = f"s3://{BUCKET}/in/pool.jsonl"
    with s3_server():
        store, path = open_store(url)
        versions, states = [], []
        for caption in (b"a dog", b"a cat", b"a dog"):
            store.files.pipe_file(path, b'{"caption": "%s"}' % caption)
            (found,) = store.find(path)
            versions.append(found.version)
            states.append(file_state([to_path(url)]))
        assert file_state([StorePath.of(store, found)]) == states[2]
        store.files.clear_instance_cache()
    assert versions[0] == versions[2] != versions[1]
    assert all(state.endswith(f":{version}") for state, version in zip(states, versions, strict=True))


def test_a_store_without_versions_has_size_and_time() -> None:
    store, path = open_store("memory://pool/a.jsonl")
    store.files.pipe_file(path, b"abc")
    file = StoredFile(path, 3, 1.5)
    assert file_state([StorePath.of(store, file)]) == "a.jsonl:3:1500000000"
