"""Text files in other encodings than UTF-8, and compressed by parallel writers."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from tests.datasets.compression import compress_zstd

CAPTIONS = ["a dog", "a dog at a café", "two “red” cars"]


def _table(separator: str) -> Callable[[list[str]], str]:
    return lambda captions: (
        f"n{separator}caption\n" + "".join(f"{n}{separator}{text}\n" for n, text in enumerate(captions))
    )


def _jsonl(captions: list[str]) -> str:
    return "".join(json.dumps({"caption": text}, ensure_ascii=False) + "\n" for text in captions)


FILES = {"a.csv": _table(","), "a.tsv": _table("\t"), "a.jsonl": _jsonl}


def read(path: Path, **options: Any) -> list[str]:
    return [pair.caption for batch in read_pairs(ReadOptions(str(path), **options)) for pair in batch.pairs]


@pytest.mark.parametrize("name", FILES)
def test_rows_that_are_not_utf8_are_read_in_the_named_encoding(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name](CAPTIONS).encode("cp1252"))
    assert read(path, encoding="cp1252") == CAPTIONS
    assert read(path, encoding="windows-1252") == CAPTIONS


@pytest.mark.parametrize("name", FILES)
def test_a_named_encoding_does_not_spoil_rows_that_are_utf8(tmp_path: Path, name: str) -> None:
    first, second = FILES[name](CAPTIONS).encode(), FILES[name](CAPTIONS[1:2]).encode("cp1252")
    rows = second if name.endswith("jsonl") else second.split(b"\n", 1)[1]
    (tmp_path / name).write_bytes(first + rows.replace(b"a dog", b"the dog"))
    assert read(tmp_path / name, encoding="cp1252") == [*CAPTIONS, "the dog at a café"]


@pytest.mark.parametrize("name", FILES)
def test_without_an_encoding_the_row_is_named_with_how_it_would_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name](CAPTIONS).encode("cp1252"))
    line = 2 if name.endswith("jsonl") else 3
    with pytest.raises(InputError, match=rf"{name}:{line}: not_utf8: .*in cp1252 it reads '.*café.*--encoding cp1252"):
        read(path)
    with pytest.raises(InputError, match="iconv"):
        read(path, option_names=WITHOUT_OPTIONS)


def test_a_byte_that_the_named_encoding_lacks_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"caption\na dog\na \x81 dog\n")
    batches = list(read_pairs(ReadOptions(str(tmp_path / "a.csv"), encoding="cp1252", on_error="skip")))
    assert [reject.reason for batch in batches for reject in batch.rejects] == ["not_utf8"]


@pytest.mark.parametrize("encoding", ["nope", "gbk", "utf-16", "utf-7", "cp037"])
def test_an_encoding_that_cannot_be_told_from_utf8_line_by_line_is_refused(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_text("caption\na dog\n")
    with pytest.raises(UsageError, match=f"--encoding {encoding}"):
        read(tmp_path / "a.csv", encoding=encoding)


def test_an_encoding_is_refused_for_formats_that_have_none(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"caption": "a dog"}]')
    with pytest.raises(UsageError, match="for CSV, TSV and JSON Lines"):
        read(tmp_path / "a.json", encoding="cp1252")


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", FILES)
def test_wide_text_is_recognised_by_its_byte_order_mark(tmp_path: Path, name: str, encoding: str) -> None:
    text = FILES[name](CAPTIONS)
    (tmp_path / name).write_bytes((text if encoding == "utf-32" else "\ufeff" + text).encode(encoding))
    assert read(tmp_path / name) == CAPTIONS


def test_zstd_of_several_frames_is_read_with_skippable_frames_before_each(tmp_path: Path) -> None:
    """As `pzstd` writes it."""
    frames = [compress_zstd(_jsonl(CAPTIONS[:2]).encode()), compress_zstd(_jsonl(CAPTIONS[2:]).encode())]
    sizes = [struct.pack("<III", 0x184D2A50, 4, len(frame)) for frame in frames]
    (tmp_path / "a.jsonl.zst").write_bytes(b"".join(size + frame for size, frame in zip(sizes, frames, strict=True)))
    assert read(tmp_path / "a.jsonl.zst") == CAPTIONS
