"""Operations on annotations as frames (`datasets.record_tables.ANNOTATIONS`), for stages that judge a whole set.

Reading and writing a row takes about 60 microseconds as a record and 1 to 2 in a frame.
"""

from collections.abc import Mapping

import polars as pl

from pairwright.datasets.records import EDITED_KINDS
from pairwright.generators.balance import POSITION_BINS, BalanceReport
from pairwright.generators.edits.inserted_words import inserted_words_of_edits

NEGATIVE, POSITIVE = "hard_negative", "hard_positive"


def type_name() -> pl.Expr:
    """Return the type of each row, named as by `content_counts.annotation_type`."""
    form, target = pl.col("form"), pl.col("target")
    between = pl.when((form != "") & (target != "")).then(pl.lit("-")).otherwise(pl.lit(""))
    named = pl.concat_str(form, between, target)
    edited = pl.when(named == "").then(pl.lit("other")).otherwise(named)
    return pl.when(pl.col("kind").is_in(EDITED_KINDS)).then(edited).otherwise(pl.col("kind"))


def tally_name() -> pl.Expr:
    """Return the type under which each row is counted, named as by `counts.count_type`."""
    beside = (pl.col("kind") == POSITIVE) & pl.col("generator").str.ends_with("-negatives")
    return pl.when(beside).then(pl.lit("beside: ") + type_name()).otherwise(type_name())


def reject_annotations(frame: pl.DataFrame, reasons: pl.DataFrame) -> pl.DataFrame:
    """Return annotations with some rejected, and with them the positives that no kept negative names any more.

    The same as `balance.reject_excess_rows` does with records.

    Args:
        frame: annotations of whole pairs: a negative and the positive that it names.
        reasons: columns ``id`` and ``reason`` of the rows to reject; rows that are rejected already keep their reason.
    """
    kept = pl.col("status") == "kept"
    found = frame.join(
        reasons.select("id", why="reason"), on="id", how="left", maintain_order="left", validate="m:1"
    ).with_columns(why=pl.when(kept).then("why"))
    negatives = found.filter((pl.col("kind") == NEGATIVE) & (pl.col("positive_id") != ""))
    wanted = negatives.filter(kept & pl.col("why").is_null())
    alone = pl.col("id").is_in(negatives["positive_id"].implode()) & ~pl.col("id").is_in(
        wanted["positive_id"].implode()
    )
    why = pl.when(pl.col("why").is_not_null()).then("why").when(kept & alone).then(pl.lit("without_negative"))
    return (
        found.with_columns(why=why)
        .with_columns(
            status=pl.when(pl.col("why").is_null()).then("status").otherwise(pl.lit("rejected")),
            reason=pl.coalesce("why", "reason"),
        )
        .drop("why")
    )


def with_scores(frame: pl.DataFrame, scores: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return annotations with added scores, in the order of their names.

    Args:
        frame: the rows.
        scores: by name, a number for each row, null or NaN for none; they replace scores of the same name.
    """
    if not scores:
        return frame
    name, value = pl.element().struct.field("name"), pl.element().struct.field("value")
    new = [pl.concat_list(pl.struct(name=pl.lit(each), value=pl.Series(column))) for each, column in scores.items()]
    added = pl.concat_list(*new).list.eval(pl.element().filter(value.is_not_nan() & value.is_not_null()))
    old = pl.col("scores").list.eval(pl.element().filter(~name.is_in(list(scores))))
    return frame.with_columns(scores=pl.concat_list(old, added).list.eval(pl.element().sort_by(name)))


def new_words(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the words that the edits of each row insert, as `inserted_words_of_edits`."""
    sides = (frame["edit"].list.eval(pl.element().struct.field(side)).to_list() for side in ("from", "to"))
    edits = ([*zip(*both, strict=True)] for both in zip(*sides, strict=True))
    forms, targets = frame["form"].to_list(), frame["target"].to_list()
    return [inserted_words_of_edits(*row) for row in zip(forms, targets, edits, strict=True)]


def count_by_name(frame: pl.DataFrame, name: pl.Expr) -> dict[str, int]:
    """Return the number of rows by name."""
    return dict(frame.select(name.alias("name")).group_by("name").len().sort("name").iter_rows())


def add_to_report(report: BalanceReport, frame: pl.DataFrame) -> None:
    """Add the counts of annotations to a report, as `BalanceReport.add` does with records."""
    rows = frame.filter(pl.col("kind") == report.kind).with_columns(type=type_name(), tally=tally_name())
    report.asked.update(count_by_name(rows, pl.col("type")))
    report.made.update(dict(rows.group_by("type").agg((pl.col("text") != "").sum()).iter_rows()))
    kept, rejected = split_by_status(rows)
    report.tally.kept.update(count_by_name(kept, pl.col("tally")))
    for name, reason, number in rejected.group_by("tally", "reason").len().iter_rows():
        report.tally.rejected[name][reason] += number
    inserted = (
        kept.select("type", word=pl.Series(new_words(kept), dtype=pl.List(pl.String)))
        .explode("word")
        .drop_nulls("word")
    )
    for type_, word, number in inserted.group_by("type", "word").len().iter_rows():
        report.words[type_][word] += number
    edits = kept.select("type", "edit", length=pl.col("source_text").str.len_chars()).explode(
        "edit", empty_as_null=False
    )
    place = pl.col("edit").struct.field("from_span").list.first() / pl.max_horizontal("length", 1)
    tenth = (place * POSITION_BINS).cast(pl.Int64).clip(upper_bound=POSITION_BINS - 1)
    for type_, at, number in edits.select("type", tenth=tenth).group_by("type", "tenth").len().iter_rows():
        report.places[type_][at] += number


def split_by_status(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the kept and the rejected rows."""
    kept, rejected = (frame.filter(pl.col("status") == status).rechunk() for status in ("kept", "rejected"))
    return kept, rejected
