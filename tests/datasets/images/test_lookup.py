"""Images of a benchmark, found by file name below a folder."""

from pathlib import Path

import pytest

from pairwright.datasets.images.lookup import find_below


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("/home/user/coco/val2017/7.jpg", "val2017/7.jpg"),
        ("C:\\data\\val2017\\7.jpg", "val2017/7.jpg"),
        ("other/8.jpg", "8.jpg"),
        ("ex_0_img_0", "ex_0_img_0.png"),
        ("../outside.jpg", ""),
        ("9.jpg", ""),
        ("", ""),
        ("/", ""),
        ("7.jpg\0", ""),
    ],
)
def test_the_longest_end_of_a_path_below_the_folder_is_found(written: str, found: str, tmp_path: Path) -> None:
    root = tmp_path / "images"
    (root / "val2017").mkdir(parents=True)
    for name in ("7.jpg", "8.jpg", "val2017/7.jpg", "ex_0_img_0.png", "../outside.jpg"):
        (root / name).write_bytes(b"")
    assert find_below(root, written) == (str(root / found) if found else "")
