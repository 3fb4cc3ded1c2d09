"""``pairwright prompts``: the prompts for models, a prompt as it is sent, and runs of your own prompt."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.options.context import ContextOptions, add_context, with_context_options
from pairwright.cli.options.declarations import App, input_option, output_option
from pairwright.cli.options.input import (
    InputArgument,
    InputOptions,
    JsonOption,
    SeedOption,
    read_batches,
    with_input_options,
)
from pairwright.cli.options.model import ModelOptions, SeeImageOption, with_model_options
from pairwright.cli.options.model_runs import bill_lines, cancel_plan_or_run
from pairwright.cli.output.console import columns, emit, list_counts, note
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.skip_counts import describe_skip_counts

if TYPE_CHECKING:
    from pairwright.generators.llm.client.messages import Message, Request
    from pairwright.generators.prompts.book import Prompt, PromptBook

app = App("List, show and render the prompts for models, and run your own.")

FolderOption = Annotated[
    Path | None, input_option("--prompts", metavar="DIR", help="Folder of prompt files that replace built-in ones.")
]
WithImageOption = Annotated[bool, typer.Option("--see-image", help="Show the texts of requests with the image.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of a prompt, see `prompts list`.")]


@app.command("list")
def list_(*, folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """List the built-in prompts and those of a folder.

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


@app.command("show")
def show(
    name: NameArgument, *, see_image: WithImageOption = False, folder: FolderOption = None, as_json: JsonOption = False
) -> None:
    """Show a prompt: values, parameters, text and demonstrations.

    \b
    Examples:
      pairwright prompts show swap-object
      pairwright prompts show negatives-at-once --see-image
    """
    prompt = _load_prompts(folder).get(name).with_image(sees=see_image)
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


@app.command("render")
def render(
    name: NameArgument,
    *,
    sample: Annotated[str, input_option(help="File of pairs (its first is used), JSON of values, or - for stdin.")],
    value: Annotated[
        list[str] | None,
        input_option("--value", metavar="NAME=TEXT", help="Further value: a text or a JSON list. Repeatable."),
    ] = None,
    see_image: WithImageOption = False,
    folder: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the request of a prompt for a sample; nothing is sent.

    \b
    Examples:
      pairwright prompts render swap-object --sample captions.jsonl
      pairwright prompts render swap-attribute --sample '{"caption": "A red cat on a white dog."}'
      pairwright prompts render replace-object-propose --sample pairs.parquet --value concept=dog
    """
    from pairwright.generators.llm.image_tokens import ImageRule
    from pairwright.generators.llm.token_estimate import estimate_answer_tokens, estimate_prompt_tokens

    prompt = _load_prompts(folder).get(name).with_image(sees=see_image)
    values = {**_sample(sample), **({"sees": True} if see_image else {}), **_parse_values(value or [])}
    request = prompt.request(values, model="")
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


@app.command("ask")
@with_progress
@with_model_options
@with_context_options
@with_input_options("image_root")
def ask(
    name: NameArgument,
    input_: InputArgument,
    *,
    out: Annotated[Path, output_option(help="File to write, .jsonl.")],
    see_image: SeeImageOption = False,
    seed: SeedOption = 0,
    reading: InputOptions,
    context: ContextOptions,
    as_json: JsonOption = False,
    model_options: ModelOptions,
) -> None:
    """Run your own prompt on every pair; the answers are texts.

    \b
    Examples:
      pairwright prompts ask my-prompt captions.jsonl --prompts my-prompts --model gpt-4o-mini --out answers.jsonl
      pairwright prompts ask my-prompt captions.jsonl --prompts my-prompts --model local:models/small \\
        --context 5 --index index --out answers.jsonl
      pairwright prompts ask my-prompt captions.jsonl --prompts my-prompts --model gpt-4o-mini --see-image \\
        --image-root photos --out answers.jsonl
    """
    from pairwright.flows.commands.ask_prompt import PromptRequest, ask_prompt, plan_prompt

    request = PromptRequest(name, reading.read_options(input_), out, see_image)
    access = add_context(model_options.access(out, seed), context, out)
    if not model_options.sends_nothing:
        check_outputs(out)
    result = cancel_plan_or_run(
        model_options,
        access,
        "pairs",
        plan=lambda: plan_prompt(request, access),
        run=lambda bar: ask_prompt(request, access, note, bar),
        as_json=as_json,
    )
    if result is None:
        return
    reasons, skipped = list_counts(result["rejected"]), describe_skip_counts(result)
    counts = f"{count_phrase(result['rows'], 'pair')}, kept {result['kept']:,}"
    counts += (f", rejected: {reasons}" if reasons else "") + (f", skipped: {skipped}" if skipped else "")
    emit(result, [f"{counts} -> {result['out']}", *bill_lines(result)], as_json=as_json)
    if not result["kept"]:
        exit_below_target(
            f"No answer was kept of {count_phrase(result['rows'], 'pair')}{f': {reasons}' if reasons else ''}."
        )


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


def _sample(text: str) -> dict[str, Any]:
    """Return the values of a sample.

    Raises:
        UsageError: for invalid JSON, JSON that is no object, or a file without pairs.
    """
    from pairwright.datasets.records import Pair
    from pairwright.generators.prompts.prompt import pair_values

    if text != "-" and not text.lstrip().startswith("{"):
        options = replace(InputOptions(on_error="skip").read_options(text), batch_size=1)
        pairs = (pair for batch in read_batches(options) for pair in batch.pairs)
        for pair in pairs:
            return pair_values(pair)
        raise UsageError(f"--sample {text}: the file has no valid pair.")
    try:
        values = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise UsageError(f"--sample: invalid JSON ({error}).") from None
    if not isinstance(values, dict):
        raise UsageError('--sample: write an object of values, such as {"caption": "A cat."}.')
    caption = values.get("caption")
    return {**(pair_values(Pair("", caption)) if isinstance(caption, str) else {}), **values}


def _parse_values(items: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in items:
        name, sign, text = item.partition("=")
        if not (sign and name):
            raise UsageError(f"--value {item!r}: write NAME=TEXT, such as concept=dog.")
        try:
            values[name] = json.loads(text) if text.startswith("[") else text
        except ValueError as error:
            raise UsageError(f"--value {item!r}: invalid JSON list ({error}).") from None
    return values


def _message_text(message: "Message") -> dict[str, str]:
    return {"role": message.role, "content": message.text}


def _chat(messages: "tuple[Message, ...]") -> list[str]:
    return [line for message in messages for line in (f"[{message.role}]", message.text, "")]


def _parameters(parameters: Any) -> str:
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in parameters.items()) or "default of the server"


def _schema(request: "Request") -> dict[str, Any]:
    return dict(request.schema.schema) if request.schema else {}
