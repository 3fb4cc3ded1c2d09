"""``pairwright prompts``: look at the prompts, and see one as it would be sent."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.options.input import (
    ColumnsOption,
    FormatOption,
    InputArgument,
    JsonOption,
    OnErrorOption,
    SeedOption,
    read_batches,
    text_options,
)
from pairwright.cli.options.model import (
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
from pairwright.cli.output.console import columns, emit, note
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.skip_counts import describe_skip_counts

if TYPE_CHECKING:
    from pairwright.generators.llm.client.messages import Message, Request
    from pairwright.generators.prompts.book import Prompt, PromptBook

app = typer.Typer(
    help="Look at the prompts for models, see one as it would be sent, and ask one of yours.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FolderOption = Annotated[
    Path | None, typer.Option("--prompts", metavar="DIR", help="Folder of prompt files that replace ours by name.")
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="As `prompts list` shows it.")]


@app.command("list", short_help="List the prompts: ours and yours.")
def list_(*, folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """List the prompts: ours, and those of a folder of yours.

    \b
    Examples:
      pairwright prompts list
      pairwright prompts list --prompts my-prompts
    """
    prompts = _load_prompts(folder).listing()
    rows = [{**_facts(prompt), "from": _prompt_origin(prompt)} for prompt in prompts]
    head = ["name", "from", "answer", "about"]
    lines = columns([head, *[[row[name] for name in head] for row in rows]], indent="")
    emit({"prompts": rows}, lines, as_json=as_json)


@app.command("show", short_help="Show a prompt and what it is given.")
def show(name: NameArgument, *, folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Show a prompt: what it is given, its parameters, its text and its demonstrations.

    \b
    Example:
      pairwright prompts show swap-object
    """
    prompt = _load_prompts(folder).get(name)
    result = {
        **_facts(prompt),
        "from": _prompt_origin(prompt),
        "file": str(prompt.source),
        "values": dict(prompt.values),
        "lists": {each: list(texts) for each, texts in prompt.lists.items()},
        "messages": [_message_text(message) for message in prompt.messages],
        "user": prompt.user,
    }
    lines = [
        f"{prompt.id}, version {prompt.version}: {prompt.about}",
        f"file: {prompt.source}",
        f"answer: {prompt.answer}; {_parameters(prompt.parameters)}",
        "values:",
        *(f"  {each}: {what}" for each, what in prompt.values.items()),
        *(f"list {each}: {len(texts)} texts" for each, texts in prompt.lists.items()),
        "",
        *_chat(prompt.messages),
        "[user] (template)",
        prompt.user,
    ]
    emit(result, lines, as_json=as_json)


@app.command("render", short_help="Show it as it would be sent.")
def render(
    name: NameArgument,
    *,
    sample: Annotated[
        str,
        typer.Option(
            "--on", metavar="SAMPLE", help="A file of pairs (its first), values as JSON, or - for JSON on stdin."
        ),
    ],
    value: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="NAME=TEXT", help="What SAMPLE lacks: a text, or a JSON list; repeatable."),
    ] = None,
    folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the messages and parameters as they would be sent for a sample. Nothing is sent.

    \b
    Examples:
      pairwright prompts render swap-object --on captions.jsonl
      pairwright prompts render positive-swap --on '{"caption": "A cat and a dog."}'
      pairwright prompts render replace-object-propose --on pairs.parquet --value concept=dog
    """
    from pairwright.generators.llm.prices import ImageRule
    from pairwright.generators.llm.token_estimate import estimate_answer_tokens, estimate_prompt_tokens

    prompt = _load_prompts(folder).get(name)
    request = prompt.request({**_sample(sample), **_required_values(value or [])}, model="")
    tokens = {"in": estimate_prompt_tokens(request, ImageRule()), "out": estimate_answer_tokens(request)}
    result = {
        "prompt": prompt.id,
        "messages": [_message_text(message) for message in request.messages],
        "parameters": dict(request.parameters),
        "schema": _schema(request),
        "tokens": tokens,
    }
    lines = [
        *_chat(request.messages),
        f"prompt: {prompt.id}",
        f"parameters: {_parameters(request.parameters)}",
        f"answer: {prompt.answer}",
        f"tokens: about {tokens['in']:,} in, {tokens['out']:,} out",
    ]
    emit(result, lines, as_json=as_json)


@app.command("ask", short_help="Ask a prompt of yours about every pair.")
@with_progress
@with_model_options
def ask(
    name: NameArgument,
    input_: InputArgument,
    *,
    out: Annotated[Path, typer.Option("--out", help="File to write, .jsonl.")],
    context: ContextOption = 0,
    index: IndexOption = None,
    calibrate: CalibrateOption = False,
    calibrate_temperature: CalibrateTemperatureOption = None,
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    asked: ModelOptions,
) -> None:
    """Ask a model a prompt of yours about every pair; its answer is text.

    \b
    Examples:
      pairwright prompts ask my-prompt captions.jsonl --prompts my-prompts --model gpt-4o-mini --out answers.jsonl
      pairwright prompts ask my-prompt captions.jsonl --prompts my-prompts --model local:models/small \\
        --context 5 --index index --out answers.jsonl
    """
    from pairwright.flows.commands.ask_prompt import PromptRequest, ask_prompt, plan_prompt

    read = text_options(input_, columns_, format_, explode=False, on_error=on_error)
    request = PromptRequest(name, read, out)
    reading = ContextOptions(context, index, calibrate, calibrate_temperature)
    asking = add_context(asked.asking(out, seed), reading, out)
    watching = ModelRunBar("pairs", asked.max_cost)
    if asked.batch_cancel:
        ids = asking.cancel_batches(note)
        emit({"cancelled": ids}, cancelled_lines(ids), as_json=as_json)
    elif asked.dry_run:
        plan = plan_prompt(request, asking)
        emit({"plan": [plan.described()]}, plan_lines([plan]), as_json=as_json)
    else:
        check_outputs(out)
        result = ask_prompt(request, asking, note, watching)
        watching.end()
        why = ", ".join(f"{reason} {count:,}" for reason, count in result["rejected"].items())
        told = f"{result['rows']:,} pairs, kept {result['kept']:,}" + (f", rejected: {why}" if why else "")
        told += f", skipped: {broken}" if (broken := describe_skip_counts(result)) else ""
        emit(result, [f"{told} -> {result['out']}", *bill_lines(result)], as_json=as_json)
        if not result["kept"]:
            exit_below_target(f"No answer was kept of {result['rows']:,} pairs{f': {why}' if why else ''}.")


def _load_prompts(folder: Path | None) -> "PromptBook":
    from pairwright.generators.prompts.book import PromptBook

    return PromptBook(folder)


def _prompt_origin(prompt: "Prompt") -> str:
    from pairwright.generators.prompts.book import BUILT_IN

    return "pairwright" if prompt.source.parent == BUILT_IN else str(prompt.source.parent)


def _facts(prompt: "Prompt") -> dict[str, Any]:
    return {
        "name": prompt.name,
        "id": prompt.id,
        "version": prompt.version,
        "about": prompt.about,
        "answer": prompt.answer,
        "parameters": dict(prompt.parameters),
        "demonstrations": len(prompt.messages) // 2,
    }


def _sample(written: str) -> dict[str, Any]:
    """Return the values of a sample.

    Raises:
        UsageError: for what is no JSON object, or a file without a pair.
    """
    from pairwright.datasets.records import Pair
    from pairwright.generators.prompts.prompt import pair_values

    if written != "-" and not written.lstrip().startswith("{"):
        options = replace(text_options(written, "", "", explode=False, on_error="skip"), batch_size=1)
        pairs = (pair for batch in read_batches(options) for pair in batch.pairs)
        for pair in pairs:
            return pair_values(pair)
        raise UsageError(f"{written}: it holds no pair.")
    try:
        given = json.loads(sys.stdin.read() if written == "-" else written)
    except ValueError as error:
        raise UsageError(f"--on: this is not JSON ({error}).") from None
    if not isinstance(given, dict):
        raise UsageError('--on: write an object of values, such as {"caption": "A cat."}.')
    caption = given.get("caption")
    return {**(pair_values(Pair("", caption)) if isinstance(caption, str) else {}), **given}


def _required_values(values: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for written in values:
        name, sign, text = written.partition("=")
        if not (sign and name):
            raise UsageError(f"--value {written!r}: write it as concept=dog.")
        try:
            given[name] = json.loads(text) if text.startswith("[") else text
        except ValueError as error:
            raise UsageError(f"--value {written!r}: this is no JSON list ({error}).") from None
    return given


def _message_text(message: "Message") -> dict[str, str]:
    return {"role": message.role, "content": message.text}


def _chat(messages: "tuple[Message, ...]") -> list[str]:
    return [line for message in messages for line in (f"[{message.role}]", message.text, "")]


def _parameters(parameters: Any) -> str:
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in parameters.items()) or "the server's own"


def _schema(request: "Request") -> dict[str, Any]:
    return dict(request.schema.schema) if request.schema else {}
