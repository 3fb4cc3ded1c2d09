"""``pairwright generate``: negatives, positives and conversations for any pairs, without a build."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.generate.rationales import MultipleImports, rationales
from pairwright.cli.generate.summary import nothing_kept, result_lines
from pairwright.cli.generate.triples import triples
from pairwright.cli.options.counts import parse_counts
from pairwright.cli.options.input import (
    ColumnsOption,
    ExplodeOption,
    FormatOption,
    ImageRootOption,
    InputArgument,
    InstancesOption,
    JsonOption,
    MaxCaptionOption,
    OnErrorOption,
    SeedOption,
    text_options,
)
from pairwright.cli.options.model import (
    CONTEXT_PARAMETERS,
    CalibrateOption,
    CalibrateTemperatureOption,
    ContextOption,
    ContextOptions,
    IndexOption,
    ModelOptions,
    ModelRunBar,
    add_context,
    bill_lines,
    cancelled_lines,
    plan_lines,
    with_model_options,
)
from pairwright.cli.output.console import emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import DetailsOption
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import MAX_EDITABLE_CAPTION
from pairwright.datasets.suggestions import find_duplicates, require_known
from pairwright.generators.conversations.question_templates import CHOICE_FORMAT, SHORT_FORMAT, PromptPlace, PromptTurns

if TYPE_CHECKING:
    from pairwright.flows.commands.generate import GenerateRequest

app = typer.Typer(help="Make texts for pairs, without a build.", no_args_is_help=True, rich_markup_mode=None)

OutOption = Annotated[Path, typer.Option("--out", help="File to write; its ending names the format.")]
PoolOption = Annotated[
    str,
    typer.Option("--pool", help="Captions that tell which words are used, and with which; INPUT's own when left out."),
]
QuotaOption = Annotated[
    str, typer.Option(metavar="N or TYPE=N,...", help="The most that are kept of each type, or of those named.")
]
WordShareOption = Annotated[
    float,
    typer.Option(
        "--max-word-share",
        min=0,
        max=1,
        help="Of a type's kept rows, the most that put in one word; one row always may.",
    ),
]
WorkersOption = Annotated[
    int, typer.Option("--workers", min=0, help="Processes for the rules; 0: one a core. The output is the same.")
]
MethodOption = Annotated[Literal["rules", "llm"], typer.Option(help="rules: no model, no network; llm: ask one.")]


@app.command("negatives", short_help="Captions with one edit that makes them false.")
@with_progress
@with_model_options
def negatives(
    input_: InputArgument,
    *,
    out: OutOption,
    method: MethodOption = "rules",
    types: Annotated[
        str | None,
        typer.Option(
            help="Of replace-object, replace-attribute, replace-relation, swap-object, swap-attribute, add-object, "
            "add-attribute; all of these when left out. And shuffle, by rules, for training only."
        ),
    ] = None,
    per_type: Annotated[int, typer.Option("--per-type", min=1, help="Negatives of each type a caption.")] = 1,
    both_sides: Annotated[
        bool,
        typer.Option(
            "--both-sides", help="With rules: a rewritten, true caption beside each negative, but those of shuffle."
        ),
    ] = False,
    no_last_resorts: Annotated[
        bool,
        typer.Option(
            "--no-last-resorts", help="With rules: fewer relations, and none denied (without, has no, far from)."
        ),
    ] = False,
    quota: QuotaOption = "",
    max_word_share: WordShareOption = 1.0,
    variant: Annotated[
        Literal["one-call", "workflow"],
        typer.Option(help="With llm: all types in one answer, or SugarCrepe's find, propose and compose."),
    ] = "one-call",
    pool: PoolOption = "",
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    explode: ExplodeOption = False,
    max_caption: MaxCaptionOption = MAX_EDITABLE_CAPTION,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    workers: WorkersOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Make hard negatives: captions with one edit that makes them false.

    OUT: .jsonl and .parquet hold every attempt with status and reason; SugarCrepe .json (no shuffle) and NegCLIP .tsv
    the kept ones.

    \b
    Examples:
      pairwright generate negatives captions.jsonl --out negatives.jsonl
      pairwright generate negatives captions.csv --types replace-object,swap-attribute --out negatives.json
      pairwright generate negatives captions.jsonl --method llm --model gpt-4o-mini --dry-run --out negatives.jsonl
    """
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.balance import BalanceLimits
    from pairwright.generators.llm_negatives import TYPES as BY_MODEL
    from pairwright.generators.negatives import FOR_BENCHMARKS, FOR_TRAINING, TYPES

    named = _parse_types("negative", types, BY_MODEL if method == "llm" else TYPES)
    options: dict[str, Any] = {"per_type": per_type, **named}
    if method == "llm":
        if both_sides:
            raise UsageError("--both-sides is made by rules. Leave it out, or --method llm.")
        if no_last_resorts:
            raise UsageError("--no-last-resorts is about rules. Leave it out, or --method llm.")
        options["variant"] = variant
    else:
        if variant != "one-call":
            raise UsageError("--variant says how a model is asked. It needs --method llm.")
        if both_sides and not set(named.get("types", FOR_BENCHMARKS)) - FOR_TRAINING:
            raise UsageError("--both-sides: shuffle gets no positive beside it. Leave one of them out.")
        options |= {"both_sides": both_sides, "last_resorts": not no_last_resorts}
    read = text_options(input_, columns_, format_, explode=explode, on_error=on_error, max_caption=max_caption)
    limits = BalanceLimits(_parse_quota(quota, TYPES, options.get("types", FOR_BENCHMARKS)), max_word_share)
    request = GenerateRequest(f"{method}-negatives", options, seed, read, pool, out, limits, workers)
    _run(request, method, asked, ResultPrinting(as_json, details, then=f"refine {out} --out {_refine_command(out)}"))


@app.command("positives", short_help="Captions with one edit that keeps them true.")
@with_progress
@with_model_options
def positives(
    input_: InputArgument,
    *,
    out: OutOption,
    method: MethodOption = "rules",
    types: Annotated[
        str | None,
        typer.Option(help="Of replace-object, replace-attribute, replace-relation, swap-object; all when left out."),
    ] = None,
    quota: QuotaOption = "",
    max_word_share: WordShareOption = 1.0,
    pool: PoolOption = "",
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    explode: ExplodeOption = False,
    max_caption: MaxCaptionOption = MAX_EDITABLE_CAPTION,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    workers: WorkersOption = 0,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Make hard positives: captions with one edit that keeps them true.

    OUT: .jsonl or .parquet; every attempt with status and reason.

    \b
    Examples:
      pairwright generate positives captions.jsonl --out positives.jsonl
      pairwright generate positives captions.jsonl --method llm --model gpt-4o-mini --out positives.jsonl
    """
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.balance import BalanceLimits
    from pairwright.generators.positives import TYPES

    read = text_options(input_, columns_, format_, explode=explode, on_error=on_error, max_caption=max_caption)
    options = _parse_types("positive", types, TYPES)
    limits = BalanceLimits(_parse_quota(quota, TYPES, options.get("types", TYPES)), max_word_share)
    request = GenerateRequest(f"{method}-positives", options, seed, read, pool, out, limits, workers)
    _run(request, method, asked, ResultPrinting(as_json, details))


@app.command("conversations", short_help="Questions and answers about the image.")
@with_progress
@with_model_options
def conversations(
    input_: InputArgument,
    *,
    out: OutOption,
    method: Annotated[
        Literal["templates", "llm"], typer.Option(help="templates: turns that captions and boxes prove; llm: ask one.")
    ] = "templates",
    types: Annotated[
        str | None,
        typer.Option(
            help="By templates conversation, brief (both when left out), short, choice; by a model conversation, detail, "
            "reasoning (all when left out)."
        ),
    ] = None,
    vocabulary: Annotated[
        str, typer.Option(help="Labels that your boxes annotate exhaustively, by commas, or coco; needed for 'no'.")
    ] = "",
    max_turns: Annotated[
        int, typer.Option("--max-turns", min=0, help="Turns of a conversation; 0: all that can be proved.")
    ] = 24,
    short_prompt: Annotated[
        str, typer.Option("--short-prompt", help="In type short, what asks for a word or phrase; off: nothing.")
    ] = SHORT_FORMAT,
    choice_prompt: Annotated[
        str, typer.Option("--choice-prompt", help="In type choice, what asks for the letter; off: nothing.")
    ] = CHOICE_FORMAT,
    prompt_place: Annotated[
        PromptPlace, typer.Option("--prompt-place", help="These prompts: below question and options, behind or above.")
    ] = "below",
    prompt_turns: Annotated[
        PromptTurns, typer.Option("--prompt-turns", help="Which turns have them: each, or the first only.")
    ] = "each",
    ratios: Annotated[
        str,
        typer.Option(
            metavar="TYPE=N,...", help="With llm: one type a pair, such as conversation=58,detail=23,reasoning=77."
        ),
    ] = "",
    counts: Annotated[
        str,
        typer.Option(
            metavar="TYPE=N,...",
            help="How many of each type: of what templates made, so many are kept; of a model, so many pairs are asked.",
        ),
    ] = "",
    instances: InstancesOption = "",
    see_image: Annotated[bool, typer.Option("--see-image", help="With llm: send the image as well.")] = False,
    image_root: ImageRootOption = "",
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    max_caption: MaxCaptionOption = MAX_EDITABLE_CAPTION,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    workers: WorkersOption = 0,
    context: ContextOption = 0,
    index: IndexOption = None,
    calibrate: CalibrateOption = False,
    calibrate_temperature: CalibrateTemperatureOption = None,
    details: DetailsOption = False,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Make question-answer turns: by templates, each proved by captions and boxes, or by a model.

    OUT: .jsonl and .parquet hold every attempt with status and reason; .json is LLaVA's layout.

    \b
    Examples:
      pairwright generate conversations captions_and_boxes.jsonl --vocabulary coco --out conversations.json
      pairwright generate conversations captions_and_boxes.jsonl --method llm --model gpt-4o-mini --out conversations.json
    """
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.balance import BalanceLimits
    from pairwright.generators.conversations.llm_generator import TYPES as BY_MODEL
    from pairwright.generators.conversations.template_generator import TYPES as BY_TEMPLATES

    reading = ContextOptions(context, index, calibrate, calibrate_temperature)
    all_types = BY_MODEL if method == "llm" else BY_TEMPLATES
    named = _parse_types("conversation", types, all_types)
    wanted = parse_counts(counts, named.get("types") or all_types)
    options = {**(named or _split_list("types", ",".join(wanted) or None)), **_parse_vocabulary(vocabulary)}
    if wanted and ratios:
        raise UsageError("give --counts or --ratios, not both.")
    filled = {
        "max_turns": max_turns,
        "short_prompt": "" if short_prompt == "off" else short_prompt,
        "choice_prompt": "" if choice_prompt == "off" else choice_prompt,
        "prompt_place": prompt_place,
        "prompt_turns": prompt_turns,
    }
    if method == "llm":
        usual = (24, SHORT_FORMAT, CHOICE_FORMAT, "below", "each")
        if vocabulary or tuple(filled.values()) != usual:
            raise UsageError(
                "--vocabulary, --max-turns and the prompts of short and choice are for templates. "
                "Leave them out, or --method llm."
            )
        options |= {"ratios": _parse_ratios(ratios), "counts": wanted, "see_image": see_image}
    elif ratios or see_image or reading.given:
        raise UsageError(
            f"--ratios, --see-image, {CONTEXT_PARAMETERS} say how a model is asked. They need --method llm."
        )
    else:
        options |= filled
        if instances and not vocabulary:
            from pairwright.flows.config.vocabulary import coco_vocabulary

            options["vocabulary"], told = coco_vocabulary(instances)
            note(told)
    read = text_options(
        input_,
        columns_,
        format_,
        explode=False,
        on_error=on_error,
        image_root=image_root,
        instances=instances,
        max_caption=max_caption,
    )
    generator = "llm-conversations" if method == "llm" else "template-conversations"
    limits = BalanceLimits({} if method == "llm" else wanted)
    request = GenerateRequest(generator, options, seed, read, "", out, limits, workers)
    if method == "llm":
        _generate_with_model(request, asked, ResultPrinting(as_json, details), reading=reading)
    else:
        _run(request, method, asked, ResultPrinting(as_json, details))


app.command("rationales", cls=MultipleImports, short_help="Why a row has its label.")(rationales)
app.command("triples", short_help="Hard positives beside hard negatives, to evaluate.")(triples)


def _refine_command(out: Path) -> Path:
    return out.with_stem(f"{out.stem}-refined")


@dataclass(frozen=True)
class ResultPrinting:
    """How a result is printed: as JSON or as a summary, with which details, followed by which command."""

    as_json: bool
    details: bool
    then: str = ""

    def result(self, result: Mapping[str, Any], method: str, bill: Sequence[str] = ()) -> None:
        """Print the result of a generator; end in exit code 3 where no text was kept."""
        lines = result_lines(result, details=self.details, bill=bill, then=self.then)
        emit({**result, "method": method}, lines, as_json=self.as_json)
        if why := nothing_kept(result):
            exit_below_target(why)


def _run(request: "GenerateRequest", method: str, asked: ModelOptions, printed: ResultPrinting) -> None:
    """Run a generator by its method and print what came of it."""
    if method == "llm":
        _generate_with_model(request, asked, printed)
        return
    asked.refuse(f"with --method {method}")
    nothing_written_on_interrupt()
    from pairwright.flows.commands.generate import run_generator

    check_outputs(request.out, reads=(request.read.input, request.pool))
    result = run_generator(request, note)
    printed.result(result, method)


def _generate_with_model(
    request: "GenerateRequest", asked: ModelOptions, printed: ResultPrinting, *, reading: ContextOptions | None = None
) -> None:
    """Let a generator ask its model, or tell what it would ask."""
    asked.warn_unused_prompts()
    asking = add_context(asked.asking(request.out, request.seed), reading or ContextOptions(), request.out)
    if asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=printed.as_json)
    elif asked.dry_run:
        from pairwright.flows.commands.generate_with_model import plan_llm_generator

        plan = plan_llm_generator(request, asking, note)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=printed.as_json)
    else:
        from pairwright.flows.commands.generate_with_model import run_llm_generator

        check_outputs(request.out, reads=(request.read.input, request.pool))
        watching = ModelRunBar("captions", asked.max_cost)
        result = run_llm_generator(request, asking, note, watching)
        watching.end()
        printed.result(result, "llm", bill_lines(result))


def _parse_ratios(written: str) -> dict[str, float]:
    """Return ``conversation=58,detail=23`` as the part of each type.

    Raises:
        UsageError: when it is not written so.
    """
    parts: dict[str, float] = {}
    for item in filter(None, (item.strip() for item in written.split(","))):
        kind, _, number = (part.strip() for part in item.partition("="))
        try:
            part = float(number)
        except ValueError:
            raise UsageError(f"--ratios {written!r}: write conversation=58,detail=23,reasoning=77.") from None
        if kind in parts:
            raise UsageError(f"--ratios: {kind} stands there twice. Give each type once.")
        parts[kind] = part
    return parts


def _parse_quota(written: str, types: Sequence[str], made: Sequence[str]) -> dict[str, int]:
    """Return ``1000`` or ``replace-object=1000,swap-object=50`` as the most of each type that is made.

    A type that is named counts before the number of all.

    Raises:
        UsageError: when it is not written so.
    """
    quota: dict[str, int] = {}
    named: set[str] = set()
    for item in sorted(filter(None, (item.strip() for item in written.split(","))), key=lambda item: "=" in item):
        kind, sign, number = (part.strip() for part in item.rpartition("="))
        if not number.isdecimal():
            raise UsageError(f"--quota {written!r}: write 1000, or TYPE=1000, or both, such as 1000,swap-object=50.")
        require_known("--quota: no such type:", [kind] if sign else [], types)
        if sign and kind not in made:
            raise UsageError(f"--quota: {kind} is not among the types that are made: {', '.join(made)}.")
        if kind in named:
            raise UsageError(f"--quota: {kind or 'the number of all'} stands there twice. Give each once.")
        named.add(kind)
        quota |= {kind: int(number)} if sign else dict.fromkeys(made, int(number))
    return quota


def _parse_types(of: str, written: str | None, known: Sequence[str]) -> dict[str, Any]:
    """Return the types that a list names, nothing where it is left out; a slip is told before the input is read."""
    named = _split_list("types", written)
    require_known(f"no such type of {of}:", named.get("types", ()), known)
    if twice := find_duplicates(named.get("types", ())):
        raise UsageError(f"--types: {', '.join(twice)} stands there twice. Name each type once.")
    return named


def _parse_vocabulary(written: str) -> dict[str, Any]:
    """Return the labels of ``--vocabulary``; a file's name is no label, and would be passed over without a word."""
    labels = _split_list("vocabulary", written or None)
    if file := next((label for label in labels.get("vocabulary", ()) if Path(label).is_file()), ""):
        raise UsageError(f"--vocabulary {file}: a file. Write the labels themselves, such as dog,cat,traffic light.")
    return labels


def _split_list(name: str, written: str | None) -> dict[str, Any]:
    """Return what a list with commas names, nothing where it is left out."""
    if written is None:
        return {}
    items = tuple(item.strip() for item in written.split(",") if item.strip())
    if not items:
        raise UsageError(f"--{name} {written!r} names none: name some, or leave --{name} out for all.")
    return {name: items}
