"""``pairwright refine``: keep the negatives that no text-only attack can tell from the captions."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.attacks import EXTRA_ATTACKS_HELP, ExtraAttacks, load_attack_scorers
from pairwright.cli.options.input import JsonOption, OnErrorOption, SeedOption, skipped_lines
from pairwright.cli.options.model import ModelOptions, bill_lines, with_model_options
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import DetailsOption, headline, main_reasons, next_step, share, table

if TYPE_CHECKING:
    import polars as pl

    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
    from pairwright.filters.scorers.text_scorers import CaptionCorpus

_FEW = 1_000
_HEAD = ["type", "in", "kept", "strongest attack", "before", "after"]


@with_progress
@with_model_options
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
    fix: Annotated[
        Literal["none", "format", "choose", "both"],
        typer.Option(
            "--fix",
            help="First. format: write both texts alike (first letter, spacing, final period);"
            " choose: of several pairs of a caption and type, take the one that betrays least; both.",
        ),
    ] = "none",
    reuse: Annotated[
        bool,
        typer.Option(
            "--reuse",
            help="First. A negative that a caption of another image says word for word enters as a positive of that"
            " image too, its caption as the negative.",
        ),
    ] = False,
    decisions: Annotated[
        Path | None, typer.Option("--decisions", help="Of pairwright review; heeded before all else.")
    ] = None,
    also: Annotated[str, typer.Option("--also", help=EXTRA_ATTACKS_HELP)] = "",
    without: Annotated[str, typer.Option("--without", help="Attacks to leave out, such as length,grammar.")] = "",
    by_type: Annotated[
        bool, typer.Option("--by-type/--pooled", help="Balance each type of edit by itself, or all together.")
    ] = True,
    reference: Annotated[
        bool, typer.Option("--reference", help="The paper's Algorithm 1: two scorers, one grid over all types.")
    ] = False,
    cells: Annotated[
        int | None,
        typer.Option(
            "--cells",
            min=2,
            max=1000,
            help="K of the K x K grid of --reference (the paper: 100); the square root of the rows when left out.",
        ),
    ] = None,
    only_kept: Annotated[
        bool, typer.Option("--only-kept", help="Leave rejected rows out of OUT; .json and .tsv never hold them.")
    ] = False,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Drop negatives until every attack that reads text alone stands at a coin's toss.

    \b
    Examples:
      pairwright refine negatives.jsonl --out refined.jsonl
      pairwright refine swap_att.json --corpus captions.jsonl --fix format --out refined.json
      pairwright refine swap_att.json --also llm --model gpt-4o-mini --dry-run --out refined.json
    """
    from pairwright.datasets.errors import UsageError
    from pairwright.filters.candidates.files import check_extension, read_candidates, write_candidates
    from pairwright.filters.candidates.format_normalization import normalize_rows
    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
    from pairwright.filters.candidates.rows import FOR_TRAINING, refine_candidates
    from pairwright.filters.refinement.all_attacks import AllAttacksOptions
    from pairwright.filters.refinement.pair_selection import NOT_CHOSEN, add_original_captions
    from pairwright.filters.refinement.two_scorers import RefineOptions
    from pairwright.flows.commands.annotation_files import require_candidate_rows
    from pairwright.flows.commands.reuse_negatives import add_reused_negatives
    from pairwright.flows.state.overwrite_checks import refuse_overwriting

    nothing_written_on_interrupt()
    choose = fix in {"choose", "both"}
    if reference and choose:
        raise UsageError("Algorithm 1 does not choose between pairs. Leave out --reference, or --fix choose.")
    check_extension(out)
    added = ExtraAttacks.of(also, asked)
    refuse_overwriting(out, str(input_), corpus, *([str(decisions)] if decisions else []))
    check_outputs(None if asked.sends_nothing else out)
    screening = InvalidRowPolicy(on_error)
    frame = read_candidates(input_, screening) if decisions is None else _apply_decisions(input_, decisions, screening)
    require_candidate_rows(input_, frame.height)
    if shuffled := frame.filter(reason=FOR_TRAINING).height:
        note(f"{shuffled:,} SHUFFLE rows are for training only: rejected as {FOR_TRAINING}.")
    if reuse:
        frame = add_reused_negatives(frame, corpus, note)
    pool = _read_corpus(corpus, frame) if corpus else None
    if fix in {"format", "both"}:
        frame = normalize_rows(frame)
    if choose:
        frame = add_original_captions(frame)
    found = load_attack_scorers(added, asked, frame, out, seed, as_json=as_json)
    method: RefineOptions | AllAttacksOptions = AllAttacksOptions(
        target=target,
        min_keep=min_keep,
        by_type=by_type,
        seed=seed,
        without=tuple(filter(None, without.split(","))),
        meaning=added.meaning,
    )
    if reference:
        method = RefineOptions(cells=cells, by_type=False, seed=seed)
    rows, outcome = refine_candidates(frame, pool, method, found.scorers, choose=choose)
    if choose:
        note(
            f"{rows.filter(reason=NOT_CHOSEN).height:,} rows are {NOT_CHOSEN}: another speaks for their caption and type."
        )
    write_candidates(rows, out, only_kept=only_kept)
    result: dict[str, Any] = {
        **outcome.as_json(),
        **screening.skipped.as_json(),
        **({"llm": found.bill} if found.bill else {}),
        "out": str(out),
    }
    emit(result, _lines(result, details=details), as_json=as_json)
    _note_outcome(result, outcome.advice)
    missed = reference and any(attack["after"] > target for attack in result["attacks"].values())
    if not result["kept"] or not outcome.holds or missed:
        exit_below_target()


def _read_corpus(corpus: str, frame: "pl.DataFrame") -> "CaptionCorpus":
    from pairwright.datasets.readers.pairs import ReadOptions
    from pairwright.filters.candidates.rows import usable_corpus
    from pairwright.filters.scorers.image_groups import build_corpus
    from pairwright.flows.commands.auxiliary_inputs import read_auxiliary_pairs

    given = build_corpus(read_auxiliary_pairs(ReadOptions(input=corpus), note))
    pool, captions = usable_corpus(given, frame)
    if pool.pool:
        note("Most of --corpus is under test: each row is scored without the captions of its own image.")
    if captions < _FEW:
        note(f"Only {captions:,} captions train the scorers; they may see nothing. Give a larger --corpus.")
    return pool


def _apply_decisions(path: Path, decisions: Path, screening: "InvalidRowPolicy") -> "pl.DataFrame":
    """Return the rows of a file as reviewers decided on them (``pairwright review --apply``)."""
    from pairwright.cli.review import note_uncounted
    from pairwright.filters.review.decision_application import apply_to_rows, count_outcomes, decide_outcomes
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.rows import read_rows

    rows = read_rows(path, screening=screening)
    judged = combine_decisions(rows.frame, read_decisions(decisions))
    note_uncounted(judged.uncounted)
    found = decide_outcomes(rows, judged)
    told = count_outcomes(rows.frame, found)
    many = "1 row was" if told["reviewed"] == 1 else f"{told['reviewed']:,} rows were"
    note(f"{many} reviewed, {told['fixed']:,} of them fixed.")
    return apply_to_rows(rows.frame, found)


def _note_outcome(result: dict[str, Any], advice: str) -> None:
    if not result["in"]:
        note("No row was left to refine: all came in rejected.")
    elif "bound" in result:
        note(
            f"Kept {result['kept']:,} of {result['in']:,} rows;"
            f" upper bound for any balanced subset: {result['bound']:,} rows."
        )
        if advice:
            note(advice)
    elif not result["kept"]:
        note("Nothing was left to keep: the rows all lean one way. Fewer --cells keep more of a small set.")


def _lines(result: dict[str, Any], *, details: bool) -> list[str]:
    types = result["by_type"]
    sets = {"all": result, **types} if len(types) > 1 else types
    rejected = main_reasons(result["rejected"], len(result["rejected"]) if details else 2)
    return [
        headline(f"{result['kept']:,} of {result['in']:,} rows kept ({share(result['kept'], result['in'])})"),
        *table([_HEAD, *(_all_attacks(sets) if details else _strongest_attacks(sets))]),
        *([f"rejected: {rejected}"] if rejected else []),
        *skipped_lines(result),
        *(bill_lines(result) if "llm" in result else []),
        "",
        f"Written to {result['out']}",
        *(next_step(f"pairwright audit {result['out']}") if result["kept"] else []),
    ]


def _all_attacks(sets: dict[str, Any]) -> Iterator[list[object]]:
    for name, one in sets.items():
        for attack, found in one["attacks"].items():
            yield [name, one["in"], one["kept"], attack, f"{found['before']:.1%}", f"{found['after']:.1%}"]


def _strongest_attacks(sets: dict[str, Any]) -> Iterator[list[object]]:
    """Yield for each set the attack that finds most afterwards, and what the strongest found before."""
    for name, one in sets.items():
        attacks = one["attacks"]
        strongest = max(attacks, key=lambda attack: attacks[attack]["after"], default="")
        before, after = (
            f"{max((found[when] for found in attacks.values()), default=0.5):.1%}" for when in ("before", "after")
        )
        yield [name, one["in"], one["kept"], strongest, before, after]
