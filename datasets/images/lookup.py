"""Images of a benchmark by file name: its rows may have absolute paths of another machine, or names without an ending."""

import os.path
from pathlib import Path, PurePosixPath

_ENDINGS = (".png", ".jpg", ".jpeg")


def find_below(folder: Path, written: str) -> str:
    """Return the file below ``folder`` that has the longest end of a path in common with ``written``; empty if none.

    ``/home/user/coco/val2017/7.jpg`` is found as ``coco/val2017/7.jpg``, ``val2017/7.jpg`` or ``7.jpg``. A name
    without an ending, such as Winoground's ``ex_0_img_0``, is found as .png, .jpg or .jpeg.
    """
    parts = [part for part in PurePosixPath(written.replace("\\", "/")).parts if part not in {"/", ".."}]
    if not parts or "\0" in written:
        return ""
    endings = ("",) if PurePosixPath(parts[-1]).suffix else ("", *_ENDINGS)
    for start in range(len(parts)):
        for ending in endings:
            path = folder.joinpath(*parts[start:-1], parts[-1] + ending)
            if os.path.isfile(path):  # noqa: PTH113 - `Path.is_file` raises for names that are too long
                return str(path)
    return ""
