"""``pairwright refine``: keep the negatives that no text-only attack can tell from the captions."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from pairwright.cli.asking import Asked, bill_lines, may_ask_a_model
from pairwright.cli.attacking import ALSO_HELP, Also, attackers
from pairwright.cli.console import columns, emit, note
from pairwright.cli.reading import JsonOption, SeedOption

_FEW = 1_000


@may_ask_a_model
def refine(
    input_: Annotated[
        Path, typer.Argument(metavar="INPUT", help="Candidate rows: .jsonl, SugarCrepe .json, NegCLIP .tsv, .parquet.")
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", help="All rows, each with its status and reason; format by its ending.")
    ],
    corpus: Annotated[
        str, typer.Option("--corpus", help="Captions to train the scorers on; INPUT's own when left out.")
    ] = "",
    target: Annotated[
        float, typer.Option("--target", min=0.505, max=1.0, help="Accuracy that no attack may exceed; else exit 3.")
    ] = 0.52,
    min_keep: Annotated[
        float, typer.Option("--min-keep", min=0.0, max=1.0, help="Share of the rows to keep at least; else exit 3.")
    ] = 0.1,
    mend: Annotated[
        Literal["none", "format", "choose", "both"],
        typer.Option(
            "--mend",
            help="First. format: write both texts alike (first letter, spacing, final period);"
            " choose: of several negatives of a caption and type, the one most like it in length and likelihood; both.",
        ),
    ] = "none",
    also: Annotated[str, typer.Option("--also", help=ALSO_HELP)] = "",
    without: Annotated[str, typer.Option("--without", help="Attacks to leave out, such as length,grammar.")] = "",
    by_type: Annotated[
        bool, typer.Option("--by-type/--pooled", help="Balance each type of edit by itself, or all together.")
    ] = True,
    reference: Annotated[
        bool, typer.Option("--reference", help="The paper's Algorithm 1: two scorers, one grid over all types.")
    ] = False,
    cells: Annotated[int, typer.Option("--cells", min=2, max=1000, help="K of the K x K grid of --reference.")] = 100,
    only_kept: Annotated[bool, typer.Option("--only-kept", help="Leave rejected rows out of OUT.")] = False,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    asked: Asked,
) -> None:
    """Drop negatives until every attack that reads text alone stands at a coin's toss.

    \b
    Examples:
      pairwright refine negatives.jsonl --out refined.jsonl
      pairwright refine swap_att.json --corpus captions.jsonl --mend format --out refined.json
      pairwright refine swap_att.json --also llm --model gpt-4o-mini --dry-run --out refined.json
    """
    from pairwright.datasets.reading import ReadOptions, read_pairs
    from pairwright.filters.candidate_files import read_candidates, write_candidates
    from pairwright.filters.candidates import FOR_TRAINING, refine_candidates, usable_corpus
    from pairwright.filters.choosing import NOT_CHOSEN, chosen
    from pairwright.filters.format import tidied
    from pairwright.filters.general import GeneralOptions
    from pairwright.filters.groups import corpus_of
    from pairwright.filters.refinement import RefineOptions
    from pairwright.flows.annotation_files import refuse_overwriting

    added = Also.of(also, asked)
    refuse_overwriting(out, str(input_), corpus)
    frame = read_candidates(input_)
    if shuffled := frame.filter(reason=FOR_TRAINING).height:
        note(f"{shuffled:,} SHUFFLE rows are for training only: rejected as {FOR_TRAINING}.")
    pool = None
    if corpus:
        options = ReadOptions(input=corpus, on_error="skip", verify_images="off")
        given = corpus_of(pair for batch in read_pairs(options) for pair in batch.pairs)
        pool, captions = usable_corpus(given, frame)
        if pool.pool:
            note("Most of --corpus is under test: each row is scored without the captions of its own image.")
        if captions < _FEW:
            note(f"Only {captions:,} captions train the scorers; they may see nothing. Give a larger --corpus.")
    if mend in {"format", "both"}:
        frame = tidied(frame)
    if mend in {"choose", "both"}:
        frame = chosen(frame, pool, seed)
        note(f"{frame.filter(reason=NOT_CHOSEN).height:,} rows are {NOT_CHOSEN}: another of their caption and type is.")
    found = attackers(added, asked, frame, out, seed, as_json=as_json)
    method: RefineOptions | GeneralOptions = GeneralOptions(
        target=target,
        min_keep=min_keep,
        by_type=by_type,
        seed=seed,
        without=tuple(filter(None, without.split(","))),
        meaning=added.meaning,
    )
    if reference:
        method = RefineOptions(cells=cells, by_type=False, seed=seed)
    rows, outcome = refine_candidates(frame, pool, method, found.scorers)
    write_candidates(rows, out, only_kept=only_kept)
    result: dict[str, Any] = {**outcome.as_json(), **({"llm": found.bill} if found.bill else {}), "out": str(out)}
    emit(result, [*_lines(result), *(bill_lines(result) if found.bill else [])], as_json=as_json)
    _note_outcome(result, outcome.advice)
    missed = reference and any(attack["after"] > target for attack in result["attacks"].values())
    if not result["kept"] or not outcome.holds or missed:
        raise typer.Exit(3)


def _note_outcome(result: dict[str, Any], advice: str) -> None:
    if not result["in"]:
        note("No row was left to refine: all came in rejected, or there were none.")
    elif "bound" in result:
        note(
            f"Kept {result['kept']:,} of {result['in']:,} rows; no choice of rows can keep more than {result['bound']:,}."
        )
        if advice:
            note(advice)
    elif not result["kept"]:
        note("Nothing was left to keep: the rows all lean one way. Fewer --cells keep more of a small set.")


def _lines(result: dict[str, Any]) -> list[str]:
    table: list[list[object]] = [["type", "in", "kept", "attack", "before", "after"]]
    types = result["by_type"]
    sets = {"all": result, **types} if len(types) > 1 else types
    for name, one in sets.items():
        for attack, share in one["attacks"].items():
            before, after = (f"{share[when]:.1%}" for when in ("before", "after"))
            table.append([name, one["in"], one["kept"], attack, before, after])
    return columns(table, indent="")
