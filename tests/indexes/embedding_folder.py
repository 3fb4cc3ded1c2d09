"""Writer of embedding folders in the format of clip-retrieval."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Matrix = NDArray[Any]


def write_part(
    folder: Path, name: str, captions: Sequence[str | None], vectors: Mapping[str, Matrix], **columns: Any
) -> None:
    """Write one part: ``metadata_{name}.parquet`` and ``{kind}_{name}.npy`` for each kind of vectors."""
    table = {"caption": captions, "url": [f"https://x.org/{name}/{row}.jpg" for row in range(len(captions))], **columns}
    (folder / "metadata").mkdir(parents=True, exist_ok=True)
    pl.DataFrame(table, schema_overrides={"caption": pl.String}).write_parquet(
        folder / "metadata" / f"metadata_{name}.parquet"
    )
    for kind, rows in vectors.items():
        (folder / kind).mkdir(exist_ok=True)
        np.save(folder / kind / f"{kind}_{name}.npy", rows)
