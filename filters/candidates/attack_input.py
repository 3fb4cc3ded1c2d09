"""Candidate rows and captions as text-only attacks take them."""

from dataclasses import replace

import polars as pl

from pairwright.filters.candidates.rows import edit_type_name
from pairwright.filters.scorers.image_groups import text_group
from pairwright.filters.scorers.text_scorers import CaptionCorpus
from pairwright.generators.language.vocabulary import normalize_text


def attack_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Return candidate rows as attacks take them: ``id``, ``positive``, ``negative``, ``group`` and ``type``."""
    groups = [text_group(*row) for row in frame.select("image", "key", "caption").iter_rows()]
    types = [edit_type_name(*row) for row in frame.select("form", "target").iter_rows()]
    return frame.select(
        "id",
        positive=pl.when(pl.col("positive") != "").then("positive").otherwise("caption"),
        negative="negative",
        group=pl.Series(groups, dtype=pl.String),
        type=pl.Series(types, dtype=pl.String),
    )


def usable_corpus(corpus: CaptionCorpus, frame: pl.DataFrame) -> tuple[CaptionCorpus, int]:
    """Return ``corpus`` as the scorers of these rows can use it, and the number of captions left for training.

    Captions of images under test never train a scorer. If that would remove more than half of the corpus, the corpus is
    the pool that the rows were made from; then it is cross-fitted: only the captions of its own image are withheld from
    a row.
    """
    groups = {text_group(*row) for row in frame.select("image", "key", "caption").iter_rows()}
    tested = {normalize_text(text) for name in ("caption", "negative", "positive") for text in frame[name]}
    left = len(corpus.without(groups, tested))
    if 2 * left >= len(corpus.captions):
        return corpus, left
    return replace(corpus, pool=True), len(corpus.captions)
