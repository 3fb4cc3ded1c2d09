"""Annotations as frames (`datasets.tables.ANNOTATIONS`): for stages that judge a set and write its parts again.

A record takes about 60 microseconds to be read and written again, a row of a frame one or two.
"""

from collections.abc import Mapping

import polars as pl

from pairwright.datasets.records import EDITED_KINDS
from pairwright.generators.balance import POSITION_BINS, BalanceReport
from pairwright.generators.edits.inserted_words import inserted_words_of_edits

NEGATIVE, POSITIVE = "hard_negative", "hard_positive"


def type_name() -> pl.Expr:
    """Return the type of each row, as `contents.type_of` names it."""
    form, target = pl.col("form"), pl.col("target")
    between = pl.when((form != "") & (target != "")).then(pl.lit("-")).otherwise(pl.lit(""))
    named = pl.concat_str(form, between, target)
    edited = pl.when(named == "").then(pl.lit("other")).otherwise(named)
    return pl.when(pl.col("kind").is_in(EDITED_KINDS)).then(edited).otherwise(pl.col("kind"))


def tally_name() -> pl.Expr:
    """Return the type under which each row is counted, as `tally.tallied_as` names it."""
    beside = (pl.col("kind") == POSITIVE) & pl.col("generator").str.ends_with("-negatives")
    return pl.when(beside).then(pl.lit("beside: ") + type_name()).otherwise(type_name())


def reject_annotations(frame: pl.DataFrame, reasons: pl.DataFrame) -> pl.DataFrame:
    """Return annotations with those rejected that have a reason, and the positives that stood beside them alone.

    As `balance.balanced` does with records.

    Args:
        frame: whole pairs, so that a negative and the positive that it names are both among them.
        reasons: columns ``id`` and ``reason``; kept rows that are named here are rejected.
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
    """Return annotations with more scores, in the order of their names.

    Args:
        frame: the rows.
        scores: name to one number a row; null or NaN where a row has none. They take the place of scores of their names.
    """
    if not scores:
        return frame
    name, value = pl.element().struct.field("name"), pl.element().struct.field("value")
    new = [pl.concat_list(pl.struct(name=pl.lit(each), value=pl.Series(column))) for each, column in scores.items()]
    added = pl.concat_list(*new).list.eval(pl.element().filter(value.is_not_nan() & value.is_not_null()))
    old = pl.col("scores").list.eval(pl.element().filter(~name.is_in(list(scores))))
    return frame.with_columns(scores=pl.concat_list(old, added).list.eval(pl.element().sort_by(name)))


def new_words(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the words that the edits of each row put in, as `generators.new_words` does."""
    sides = (frame["edit"].list.eval(pl.element().struct.field(side)).to_list() for side in ("from", "to"))
    edits = ([*zip(*both, strict=True)] for both in zip(*sides, strict=True))
    forms, targets = frame["form"].to_list(), frame["target"].to_list()
    return [inserted_words_of_edits(*row) for row in zip(forms, targets, edits, strict=True)]


def count_by_name(frame: pl.DataFrame, name: pl.Expr) -> dict[str, int]:
    """Return how many rows there are of each name."""
    return dict(frame.select(name.alias("name")).group_by("name").len().sort("name").iter_rows())


def add_to_account(account: BalanceReport, frame: pl.DataFrame) -> None:
    """Count annotations, as `Account.add` does."""
    rows = frame.filter(pl.col("kind") == account.kind).with_columns(type=type_name(), tally=tally_name())
    account.asked.update(count_by_name(rows, pl.col("type")))
    account.made.update(dict(rows.group_by("type").agg((pl.col("text") != "").sum()).iter_rows()))
    kept, rejected = split_by_status(rows)
    account.tally.kept.update(count_by_name(kept, pl.col("tally")))
    for name, reason, number in rejected.group_by("tally", "reason").len().iter_rows():
        account.tally.rejected[name][reason] += number
    put_in = (
        kept.select("type", word=pl.Series(new_words(kept), dtype=pl.List(pl.String)))
        .explode("word")
        .drop_nulls("word")
    )
    for type_, word, number in put_in.group_by("type", "word").len().iter_rows():
        account.words[type_][word] += number
    edits = kept.select("type", "edit", length=pl.col("source_text").str.len_chars()).explode(
        "edit", empty_as_null=False
    )
    place = pl.col("edit").struct.field("from_span").list.first() / pl.max_horizontal("length", 1)
    tenth = (place * POSITION_BINS).cast(pl.Int64).clip(upper_bound=POSITION_BINS - 1)
    for type_, at, number in edits.select("type", tenth=tenth).group_by("type", "tenth").len().iter_rows():
        account.places[type_][at] += number


def split_by_status(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the kept and the rejected rows."""
    kept, rejected = (frame.filter(pl.col("status") == status).rechunk() for status in ("kept", "rejected"))
    return kept, rejected
