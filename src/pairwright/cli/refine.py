"""``pairwright refine``: remove the negatives that text-only attacks can detect."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.attacks import AddAttacksOption, ExtraAttacks
from pairwright.cli.options.declarations import advanced_option, input_option, limit_option, output_option
from pairwright.cli.options.input import (
    DetailsOption,
    JsonOption,
    LayoutOption,
    OnErrorOption,
    RowsArgument,
    SeedOption,
    split_list,
)
from pairwright.cli.options.model import ModelOptions, with_model_options
from pairwright.cli.options.model_runs import bill_lines
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, next_step, rejected_line, share, skipped_lines, table
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.filters.refinement.defaults import DEFAULT_MIN_KEEP, DEFAULT_TARGET

if TYPE_CHECKING:
    import polars as pl

    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
    from pairwright.filters.candidates.layouts import Layout
    from pairwright.filters.scorers.text_scorers import CaptionCorpus

_FEW = 1_000
OnlyKeptOption = Annotated[bool, output_option("--only-kept", help="Write kept rows only; .json and .tsv always do.")]


@with_progress
@with_model_options
def refine(
    input_: RowsArgument,
    *,
    out: Annotated[Path, output_option("--out", help="File for all rows with status and reason; format by extension.")],
    corpus: Annotated[str, input_option(help="Captions that train the scorers; else INPUT's.")] = "",
    decisions: Annotated[Path | None, input_option(help="Decisions of `review`, applied first.")] = None,
    target: Annotated[
        float, limit_option(min=0.505, max=1.0, help="Accuracy of an attack, at most; else exit with 3.")
    ] = DEFAULT_TARGET,
    min_keep: Annotated[
        float, limit_option(min=0.0, max=1.0, help="Share of rows to keep, at least; else exit with 3.")
    ] = DEFAULT_MIN_KEEP,
    fix: Annotated[
        Literal["none", "format", "choose", "both"],
        typer.Option(help="Normalize formats, choose pairs, or both."),
    ] = "none",
    mirror_negatives: Annotated[
        bool,
        typer.Option("--mirror-negatives", help="Add each negative that captions another image as its positive."),
    ] = False,
    add_attacks: AddAttacksOption = "",
    without: Annotated[str, typer.Option(help="Attacks to omit, such as length,grammar.")] = "",
    by_type: Annotated[bool, typer.Option("--by-type/--pooled", help="Balance types separately, or together.")] = True,
    reference: Annotated[
        bool, advanced_option("--reference", help="Use the paper's Algorithm 1: two scorers, one grid.")
    ] = False,
    cells: Annotated[
        int | None,
        advanced_option(min=2, max=1000, help="Cells per side of the grid of --reference.", show_default="sqrt(rows)"),
    ] = None,
    only_kept: OnlyKeptOption = False,
    layout: LayoutOption = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    model_options: ModelOptions,
) -> None:
    """Remove negatives that a text-only model can detect.

    --fix choose keeps the best pair of each caption and type. Rows are removed until every text-only baseline is at chance level (50%).

    \b
    Examples:
      pairwright refine negatives.jsonl --out refined.jsonl
      pairwright refine swap_att.json --corpus captions.jsonl --fix format --out refined.json
      pairwright refine swap_att.json --add-attacks llm --model gpt-4o-mini --dry-run --out refined.json
    """
    from pairwright.datasets.errors import UsageError
    from pairwright.filters.candidates.files import check_extension, write_candidates
    from pairwright.filters.candidates.invalid_rows import InvalidRowPolicy
    from pairwright.filters.refinement.candidates import refine_candidates
    from pairwright.filters.refinement.general.refine import AllAttacksOptions
    from pairwright.filters.refinement.one_per_caption import NOT_CHOSEN
    from pairwright.filters.refinement.reference.refine import RefineOptions
    from pairwright.flows.commands.annotation_files import require_candidate_rows
    from pairwright.flows.state.overwrite_checks import refuse_overwriting

    nothing_written_on_interrupt()
    path, choose = Path(input_), fix in {"choose", "both"}
    if reference and choose:
        raise UsageError("--reference and --fix choose are mutually exclusive. Omit one of them.")
    added = ExtraAttacks.parse(add_attacks, model_options)
    refuse_overwriting(out, input_, corpus, *([str(decisions)] if decisions else []))
    check_outputs(None if model_options.sends_nothing else out)
    policy = InvalidRowPolicy(on_error)
    frame, like = _read_rows(path, decisions, policy, layout)
    check_extension(out, like)
    require_candidate_rows(path, frame.height)
    frame, pool = _prepare_rows(frame, corpus, fix, mirror_negatives=mirror_negatives)
    scorers, bill = added.scorers(model_options, frame, out, seed, as_json=as_json)
    method: RefineOptions | AllAttacksOptions
    if reference:
        method = RefineOptions(cells=cells, by_type=False, seed=seed)
    else:
        method = AllAttacksOptions(
            target=target,
            min_keep=min_keep,
            by_type=by_type,
            seed=seed,
            without=split_list(without),
            meaning=added.meaning,
        )
    rows, outcome = refine_candidates(frame, pool, method, scorers, choose=choose)
    if choose:
        note(
            f"Rows that are {NOT_CHOSEN}: {rows.filter(reason=NOT_CHOSEN).height:,}. Another pair of their caption is used."
        )
    write_candidates(rows, out, only_kept=only_kept, like=like, note=note)
    result: dict[str, Any] = {
        **outcome.as_json(),
        **policy.skipped.as_json(),
        **({"llm": bill} if bill else {}),
        "out": str(out),
    }
    emit(result, _lines(result, details=details), as_json=as_json)
    _note_outcome(result, outcome.advice)
    missed = reference and any(attack["after"] > target for attack in result["attacks"].values())
    if not result["kept"] or not outcome.holds or missed:
        exit_below_target()


def _prepare_rows(
    frame: "pl.DataFrame", corpus: str, fix: str, *, mirror_negatives: bool
) -> "tuple[pl.DataFrame, CaptionCorpus | None]":
    """Return the rows with what --mirror-negatives and --fix add or change, and the captions of --corpus."""
    from pairwright.filters.candidates.format_normalization import normalize_rows
    from pairwright.filters.candidates.rows import FOR_TRAINING
    from pairwright.filters.refinement.one_per_caption import add_original_captions

    if shuffled := frame.filter(reason=FOR_TRAINING).height:
        note(f"{count_phrase(shuffled, 'shuffle row')} for training only: rejected as {FOR_TRAINING}.")
    if mirror_negatives:
        from pairwright.flows.commands.mirror_negatives import add_mirrored_negatives  # imports the editors

        frame = add_mirrored_negatives(frame, corpus, note)
    pool = _read_corpus(corpus, frame) if corpus else None
    if fix in {"format", "both"}:
        frame = normalize_rows(frame)
    return (add_original_captions(frame) if fix in {"choose", "both"} else frame), pool


def _read_corpus(corpus: str, frame: "pl.DataFrame") -> "CaptionCorpus":
    from pairwright.datasets.readers.pairs import ReadOptions
    from pairwright.filters.candidates.attack_input import usable_corpus
    from pairwright.filters.scorers.image_groups import build_corpus
    from pairwright.flows.commands.pair_inputs import read_auxiliary_pairs

    pool, captions = usable_corpus(build_corpus(read_auxiliary_pairs(ReadOptions(input=corpus), note)), frame)
    if pool.pool:
        note("Most of --corpus is under test: each row is scored without the captions of its own image.")
    if captions < _FEW:
        note(
            f"Only {count_phrase(captions, 'caption')} {verb_form(captions, 'train')} the scorers, too few for strong attacks. "
            "Use a larger --corpus."
        )
    return pool


def _read_rows(
    path: Path, decisions: Path | None, policy: "InvalidRowPolicy", layout: str
) -> "tuple[pl.DataFrame, Layout | None]":
    """Return the rows of a file, with the decisions of a review applied if there are any, and the layout of the file."""
    from pairwright.filters.candidates.files import layout_of, read_candidates

    if decisions is None:
        return read_candidates(path, policy, layout), layout_of(path, layout)
    return _apply_decisions(path, decisions, policy, layout)


def _apply_decisions(
    path: Path, decisions: Path, policy: "InvalidRowPolicy", layout: str
) -> "tuple[pl.DataFrame, Layout | None]":
    """Return the rows of a file with the decisions of a review applied, and its layout."""
    from pairwright.cli.review import note_uncounted
    from pairwright.filters.review.decision_application import apply_to_rows, count_outcomes, decide_outcomes
    from pairwright.filters.review.decisions import combine_decisions, read_decisions
    from pairwright.filters.review.rows import read_rows

    rows = read_rows(path, screening=policy, layout=layout)
    judged = combine_decisions(rows.frame, read_decisions(decisions))
    note_uncounted(judged.uncounted)
    outcomes = decide_outcomes(rows, judged)
    counts = count_outcomes(rows.frame, outcomes)
    note(f"{count_phrase(counts['reviewed'], 'row')} reviewed, {counts['fixed']:,} of them fixed.")
    return apply_to_rows(rows.frame, outcomes), rows.layout


def _note_outcome(result: dict[str, Any], advice: str) -> None:
    if not result["in"]:
        note("No row to refine: all rows of INPUT are rejected.")
    elif "bound" in result:
        bound = f"upper bound for any balanced subset: {count_phrase(result['bound'], 'row')}"
        note(f"Kept {result['kept']:,} of {count_phrase(result['in'], 'row')}; {bound}.")
        if advice:
            note(advice)
    elif not result["kept"]:
        note("No row was kept: the scorers prefer the same side in all rows. Fewer --cells keep more of a small set.")


def _lines(result: dict[str, Any], *, details: bool) -> list[str]:
    types = result["by_type"]
    sets = {"all": result, **types} if len(types) > 1 else types
    head = ["type", "in", "kept", "strongest attack", "before", "after"]
    return [
        headline(
            f"{result['kept']:,} of {count_phrase(result['in'], 'row')} kept ({share(result['kept'], result['in'])})"
        ),
        *table([head, *(_all_attacks(sets) if details else _strongest_attacks(sets))]),
        *rejected_line(result["rejected"], details=details),
        *skipped_lines(result),
        *(bill_lines(result) if "llm" in result else []),
        "",
        f"Written to {result['out']}",
        *(next_step("audit", result["out"]) if result["kept"] else []),
    ]


def _all_attacks(sets: dict[str, Any]) -> Iterator[list[object]]:
    for name, one in sets.items():
        for attack, found in one["attacks"].items():
            yield [name, one["in"], one["kept"], attack, f"{found['before']:.1%}", _after(one, found["after"])]


def _strongest_attacks(sets: dict[str, Any]) -> Iterator[list[object]]:
    """Yield for each set its strongest attack afterwards (before, if no row is kept), and the greatest accuracies before and after."""
    for name, one in sets.items():
        attacks = one["attacks"]
        when = "after" if one["kept"] else "before"
        strongest = max(attacks, key=lambda attack: attacks[attack][when], default="")
        before, after = (max((found[when] for found in attacks.values()), default=0.5) for when in ("before", "after"))
        yield [name, one["in"], one["kept"], strongest, f"{before:.1%}", _after(one, after)]


def _after(one: dict[str, Any], accuracy: float) -> str:
    """Return the accuracy on the kept rows of a set; without any, it has none."""
    return f"{accuracy:.1%}" if one["kept"] else "-"
