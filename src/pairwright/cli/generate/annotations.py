"""``pairwright generate negatives``, ``positives`` and ``conversations``."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from pairwright.cli.generate.common import GenerateOptions, MethodOption, run_request
from pairwright.cli.generate.type_lists import parse_counts, parse_list, parse_ratios, parse_types, parse_vocabulary
from pairwright.cli.options.context import CONTEXT_PARAMETERS, ContextOptions, with_context_options
from pairwright.cli.options.declarations import advanced_option, limit_option, with_options
from pairwright.cli.options.input import InputArgument, InputOptions, with_input_options
from pairwright.cli.options.model import ModelOptions, SeeImageOption, with_model_options
from pairwright.cli.output.console import note
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError
from pairwright.generators.conversations.question_templates import (
    CHOICE_FORMAT,
    MAX_TURNS,
    SHORT_FORMAT,
    PromptPlace,
    PromptTurns,
)
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.llm.group_size import CAPTIONS_PER_REQUEST, MAX_CANDIDATES

CaptionsPerRequest = Annotated[int, advanced_option(min=1, help="Model: captions in one request, at most.")]


@with_progress
@with_model_options
@with_input_options("explode", "max_caption", "image_root", "clean_captions")
@with_options(GenerateOptions, "common")
def negatives(
    input_: InputArgument,
    *,
    method: MethodOption = "rules",
    types: Annotated[
        str | None, typer.Option(help="Types, separated by commas; else all but negation and shuffle.")
    ] = None,
    per_type: Annotated[int, typer.Option(min=1, help="Negatives per caption and type.")] = 1,
    both_sides: Annotated[
        bool,
        typer.Option(
            "--both-sides",
            help="Write a hard positive for each negative: a reworded caption; for add, a true addition in the same place.",
        ),
    ] = False,
    candidates: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_CANDIDATES,
            help="Model: negatives of each type in one answer; refine --fix choose keeps one.",
        ),
    ] = 1,
    see_image: SeeImageOption = False,
    floor: Annotated[
        float | None,
        typer.Option(
            help="Rules: least probability of a replacement in its context; higher reads better, lower"
            f" gives more. [default: {DEFAULT_FLOOR}]"
        ),
    ] = None,
    vocabulary: Annotated[str, typer.Option(help="Negation: exhaustively annotated labels, or coco.")] = "",
    variant: Annotated[
        Literal["one-call", "workflow"],
        advanced_option(
            help="Model: one answer for all types, or for each type three: find a word, propose others, compose."
        ),
    ] = "one-call",
    captions_per_request: CaptionsPerRequest = CAPTIONS_PER_REQUEST,
    reading: InputOptions,
    common: GenerateOptions,
    model_options: ModelOptions,
) -> None:
    """Generate hard negatives: captions with one edit that makes them false.

    Types: replace-object, replace-attribute, replace-relation, swap-object, swap-attribute, add-object, add-attribute;
    by rules also negation, from boxes, and shuffle, for training only. OUT: .jsonl and .parquet hold every attempt with status and reason,
    SugarCrepe .json (no shuffle) and NegCLIP .tsv the kept ones.

    \b
    Examples:
      pairwright generate negatives demo/shards --out negatives.jsonl
      pairwright generate negatives captions.jsonl --out negatives.jsonl
      pairwright generate negatives captions.csv --types replace-object,swap-attribute --out negatives.json
      pairwright generate negatives captions.jsonl --method llm --model gpt-4o-mini --dry-run --out negatives.jsonl
      pairwright generate negatives captions.jsonl --method llm --model gpt-4o-mini --candidates 4 --out negatives.jsonl
      pairwright generate negatives captions.jsonl --method llm --model gpt-4o-mini --see-image --out negatives.jsonl
    """
    from pairwright.datasets.records import TRAINING_ONLY_FORMS
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.edit_types import BENCHMARK_TYPES, NEGATIVE_TYPES

    named = parse_types("negative", types, BENCHMARK_TYPES if method == "llm" else NEGATIVE_TYPES)
    options: dict[str, Any] = {"per_type": per_type, "both_sides": both_sides, **named}
    if method == "llm":
        by_rules = {"--floor": floor is not None, "--vocabulary": bool(vocabulary)}
        for name, given in by_rules.items():
            if given:
                raise UsageError(f"{name} requires --method rules. Omit it, or --method llm.")
        if variant == "workflow" and (candidates > 1 or both_sides):
            raise UsageError("--candidates and --both-sides require --variant one-call.")
        if see_image and (variant == "workflow" or both_sides):
            raise UsageError("--see-image requires --variant one-call without --both-sides.")
        options |= {"variant": variant, "candidates": candidates, "captions_per_request": captions_per_request}
        options["see_image"] = see_image
    else:
        by_model = {"--variant": variant != "one-call", "--candidates": candidates > 1, "--see-image": see_image}
        by_model["--captions-per-request"] = captions_per_request != CAPTIONS_PER_REQUEST
        for name, given in by_model.items():
            if given:
                raise UsageError(f"{name} requires --method llm.")
        if both_sides and not set(named.get("types", BENCHMARK_TYPES)) - TRAINING_ONLY_FORMS:
            raise UsageError("--both-sides makes no positives for shuffle. Omit it, or add other --types.")
        if ("negation" in named.get("types", ())) != bool(vocabulary):
            raise UsageError(
                "--types negation and --vocabulary require each other: only labels that are annotated in every image prove "
                "that something is absent. Add --vocabulary coco, or your labels, or omit both."
            )
        options["floor"] = DEFAULT_FLOOR if floor is None else floor
        options |= parse_vocabulary(vocabulary)
    out, read = common.out, reading.read_options(input_)
    limits = common.limits(NEGATIVE_TYPES, options.get("types", BENCHMARK_TYPES))
    generator = f"{method}-negatives"
    request = GenerateRequest(generator, options, common.seed, read, common.pool, out, limits, common.workers)
    choose = ["--fix", "choose"] if per_type > 1 or candidates > 1 else []
    refine = ["refine", out, *choose, "--out", out.parent / f"{out.stem}-refined{out.suffix}"]
    run_request(request, method, common, model_options, next_command=refine)


@with_progress
@with_model_options
@with_input_options("explode", "max_caption", "image_root", "clean_captions")
@with_options(GenerateOptions, "common")
def positives(
    input_: InputArgument,
    *,
    method: MethodOption = "rules",
    types: Annotated[str | None, typer.Option(help="Types, separated by commas; else all.")] = None,
    see_image: SeeImageOption = False,
    captions_per_request: CaptionsPerRequest = CAPTIONS_PER_REQUEST,
    reading: InputOptions,
    common: GenerateOptions,
    model_options: ModelOptions,
) -> None:
    """Generate hard positives: captions with one edit that keeps them true.

    Types: replace-object, replace-attribute, replace-relation, swap-object. OUT: .jsonl or .parquet; every attempt with
    status and reason.

    \b
    Examples:
      pairwright generate positives demo/shards --out positives.jsonl
      pairwright generate positives captions.jsonl --out positives.jsonl
      pairwright generate positives captions.jsonl --method llm --model gpt-4o-mini --out positives.jsonl
    """
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.edit_types import POSITIVE_TYPES

    read = reading.read_options(input_)
    options = parse_types("positive", types, POSITIVE_TYPES)
    if method == "llm":
        options |= {"captions_per_request": captions_per_request, "see_image": see_image}
    elif captions_per_request != CAPTIONS_PER_REQUEST or see_image:
        raise UsageError("--captions-per-request and --see-image require --method llm.")
    limits = common.limits(POSITIVE_TYPES, options.get("types", POSITIVE_TYPES))
    generator = f"{method}-positives"
    request = GenerateRequest(generator, options, common.seed, read, common.pool, common.out, limits, common.workers)
    run_request(request, method, common, model_options)


@dataclass(frozen=True)
class TemplateOptions:
    """Options of conversations by templates."""

    max_turns: Annotated[int, typer.Option(min=0, help="Templates: turns of a conversation (0 = unlimited).")] = (
        MAX_TURNS
    )
    short_prompt: Annotated[str, advanced_option(help="Prompt of type short; off: none.")] = SHORT_FORMAT
    choice_prompt: Annotated[str, advanced_option(help="Prompt of type choice; off: none.")] = CHOICE_FORMAT
    prompt_place: Annotated[PromptPlace, advanced_option(help="Position of these prompts.")] = "below"
    prompt_turns: Annotated[PromptTurns, advanced_option(help="Turns that have these prompts.")] = "each"

    def as_options(self) -> dict[str, Any]:
        """Return the options of the generator."""
        prompts = {"short_prompt": self.short_prompt, "choice_prompt": self.choice_prompt}
        return {**vars(self), **{name: "" if text == "off" else text for name, text in prompts.items()}}


def _conversation_types(method: str) -> tuple[str, ...]:
    if method == "llm":
        from pairwright.generators.conversations.llm_generator import MODEL_TYPES

        return MODEL_TYPES
    from pairwright.generators.conversations.template_generator import TEMPLATE_TYPES

    return TEMPLATE_TYPES


@with_progress
@with_model_options
@with_context_options
@with_input_options("max_caption", "image_root", "instances", "clean_captions")
@with_options(TemplateOptions, "templates")
@with_options(GenerateOptions, "common", ("out", "seed", "workers", "details", "as_json"))
def conversations(
    input_: InputArgument,
    *,
    method: Annotated[
        Literal["templates", "llm"], typer.Option(help="Templates, or the model of --model.")
    ] = "templates",
    types: Annotated[str | None, typer.Option(help="Types, separated by commas.")] = None,
    vocabulary: Annotated[str, typer.Option(help="Exhaustively annotated labels, or coco; required for 'no'.")] = "",
    counts: Annotated[
        str, limit_option(metavar="TYPE=N,...", help="Rows to keep of each type; with a model, pairs to send.")
    ] = "",
    ratios: Annotated[
        str, limit_option(metavar="TYPE=N,...", help="Model: one type per pair, drawn by these parts.")
    ] = "",
    see_image: SeeImageOption = False,
    templates: TemplateOptions,
    reading: InputOptions,
    context: ContextOptions,
    common: GenerateOptions,
    model_options: ModelOptions,
) -> None:
    """Generate questions and answers about images.

    Types by templates: conversation, brief (the default), short, choice; by a model: conversation, detail, reasoning
    (all by default). OUT: .jsonl and .parquet hold every attempt with status and reason; .json is LLaVA's layout.

    \b
    Examples:
      pairwright generate conversations demo/shards --out conversations.json
      pairwright generate conversations captions_and_boxes.jsonl --vocabulary coco --out conversations.json
      pairwright generate conversations captions_and_boxes.jsonl --method llm --model gpt-4o-mini --out conversations.json
    """
    from pairwright.flows.commands.generate import GenerateRequest
    from pairwright.generators.balance import BalanceLimits

    all_types = _conversation_types(method)
    named = parse_types("conversation", types, all_types)
    wanted = parse_counts(counts, named.get("types") or all_types)
    options = {**(named or parse_list("types", ",".join(wanted) or None)), **parse_vocabulary(vocabulary)}
    if wanted and ratios:
        raise UsageError("--counts and --ratios are mutually exclusive.")
    if method == "llm":
        if vocabulary or templates != TemplateOptions():
            raise UsageError(
                "--vocabulary, --max-turns and the prompts of short and choice require --method templates. "
                "Omit them, or --method llm."
            )
        options |= {"ratios": parse_ratios(ratios), "counts": wanted, "see_image": see_image}
    elif ratios or see_image or context.given:
        raise UsageError(f"--ratios, --see-image, {CONTEXT_PARAMETERS} require --method llm.")
    else:
        options |= templates.as_options()
        if reading.instances and not vocabulary:
            from pairwright.flows.config.vocabulary import coco_vocabulary

            options["vocabulary"], message = coco_vocabulary(reading.instances)
            note(message)
    generator = "llm-conversations" if method == "llm" else "template-conversations"
    limits = BalanceLimits({} if method == "llm" else wanted)
    read = reading.read_options(input_)
    request = GenerateRequest(generator, options, common.seed, read, "", common.out, limits, common.workers)
    run_request(request, method, common, model_options, context=context)
