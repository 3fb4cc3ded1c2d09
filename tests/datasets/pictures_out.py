"""Write the pictures of a Hugging Face table out as files, each with its caption beside it."""

import sys
from pathlib import Path

from pyarrow import parquet


def write_out(table: Path, folder: Path, image: str = "image", caption: str = "caption") -> int:
    """Return how many were written; ``folder`` is what pairwright then reads."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for batch in parquet.ParquetFile(table).iter_batches(100, columns=[image, caption]):
        for row in batch.to_pylist():
            data, name = row[image]["bytes"], f"{table.stem}-{number:08}"
            ending = "png" if data.startswith(b"\x89PNG") else "jpg"
            (folder / f"{name}.{ending}").write_bytes(data)
            (folder / f"{name}.txt").write_text(row[caption], encoding="utf-8")
            number += 1
    return number


if __name__ == "__main__":
    write_out(Path(sys.argv[1]), Path(sys.argv[2]))
