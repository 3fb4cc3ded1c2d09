"""``pairwright dev``: a test server of the OpenAI API, a toy image set, and a tiny CLIP."""

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.options.declarations import App, limit_option, output_option
from pairwright.cli.output.files import check_outputs
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.generators.llm.testing.serving import Server
    from pairwright.generators.plausible_model.model import PlausibleModel

app = App("Tools for testing.")
_answer_option = partial(typer.Option, rich_help_panel="Answers")
_fault_option = partial(typer.Option, rich_help_panel="Faults")


@app.command("llm-server")
def llm_server(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port (0 = any free one).")] = 0,
    api_key: Annotated[
        str, typer.Option(envvar="PAIRWRIGHT_DEV_KEY", show_envvar=True, help="Required key; empty: any.")
    ] = "",
    exit_with_parent: Annotated[bool, typer.Option("--exit-with-parent", help="Exit with the parent process.")] = False,
    model: Annotated[
        list[str] | None, _answer_option("--model", help="Available model; none: any. Repeatable.")
    ] = None,
    script: Annotated[
        Path | None, _answer_option(help="YAML or JSON of answers and settings; options override it.")
    ] = None,
    plausible: Annotated[
        bool, _answer_option("--plausible", help="Answer pairwright's prompts by rules; most answers are kept.")
    ] = False,
    replay: Annotated[Path | None, _answer_option(help="JSONL of recorded answers to give.")] = None,
    record: Annotated[Path | None, output_option(help="JSONL to which answers are appended.")] = None,
    fault: Annotated[
        list[str] | None, _fault_option("--fault", metavar="KIND=RATE", help="Fault and its rate. Repeatable.")
    ] = None,
    without: Annotated[
        list[str] | None,
        _fault_option("--without", metavar="NAME", help="Parameter or feature refused with a 400. Repeatable."),
    ] = None,
    latency_ms: Annotated[float | None, _fault_option(min=0, help="Delay of each answer.")] = None,
    jitter_ms: Annotated[float | None, _fault_option(min=0, help="Random further delay, at most.")] = None,
    seed: Annotated[int | None, _fault_option(help="Seed for faults and jitter.")] = None,
    max_concurrency: Annotated[
        int | None, limit_option(min=0, help="Concurrent requests, else 429 (0 = unlimited).")
    ] = None,
    requests_per_minute: Annotated[int | None, limit_option(min=0, help="Requests, else 429 (0 = unlimited).")] = None,
    tokens_per_minute: Annotated[int | None, limit_option(min=0, help="Tokens, else 429 (0 = unlimited).")] = None,
) -> None:
    """Serve the OpenAI API without a model, for tests.

    The first line is {"url": ..., "pid": ...}. GET /_stats counts requests by kind. SIGTERM or Ctrl-C ends the server.

    \b
    Examples:
      pairwright dev llm-server --port 8000 --plausible
      pairwright dev llm-server --port 8000 --latency-ms 100
      pairwright dev llm-server --fault 429=0.01 --fault reset=0.005 --seed 7
      pairwright dev llm-server --without temperature --without max_tokens --fault gemini_bad_key=1
      pairwright dev llm-server --script answers.yaml --record tape.jsonl
    """
    from pairwright.generators.llm.testing.app import ServerApp
    from pairwright.generators.llm.testing.faults import parse_fault
    from pairwright.generators.llm.testing.script import ServerScript, load_script
    from pairwright.generators.llm.testing.serving import serve_until_signal

    given: dict[str, Any] = {
        "latency_ms": latency_ms,
        "jitter_ms": jitter_ms,
        "max_concurrency": max_concurrency,
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "models": model or None,
        "without": without or None,
        "seed": seed,
        "faults": dict(map(parse_fault, fault)) if fault else None,
    }
    base = load_script(script) if script else ServerScript()
    settings = base.changed({name: value for name, value in given.items() if value is not None}, where="options")
    if plausible and replay:
        raise UsageError("--plausible and --replay are mutually exclusive. Omit one of them.")
    served = ServerApp(
        settings, answer=_plausible_model() if plausible else None, replay=replay, record=record, api_key=api_key
    )
    serve_until_signal(served, _announce, host=host, port=port, with_parent=exit_with_parent)


@app.command("colorshape")
def colorshape(
    *,
    out: Annotated[Path, output_option("--out", help="Folder of shards and labels.jsonl.")],
    images: Annotated[int, typer.Option("--images", min=1, help="Images of each colour and shape.")] = 500,
    continuous: Annotated[bool, typer.Option("--continuous", help="Any colour, with rgb labels.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Random seed.")] = 0,
) -> None:
    """Draw the one-object ColorShape set.

    It is for retrieval by colour and shape. Embed the images of the shards in order, then: pairwright evaluate embeddings E.npy --labels labels.jsonl --by colour

    \b
    Example:
      pairwright dev colorshape --out colorshape --images 50
    """
    from pairwright.datasets.atomic_files import write_text
    from pairwright.datasets.colorshape.toy_set import generate_toy_set, write_toy_set
    from pairwright.datasets.records import compact_json

    check_outputs(out)
    written = write_toy_set(out, seed, images, continuous=continuous)
    rows = (
        {"key": one.key, **one.conditions, **dict(zip("rgb", one.rgb, strict=True))}
        for one in generate_toy_set(seed, images, continuous=continuous)
    )
    write_text(out / "labels.jsonl", "".join(compact_json(row) + "\n" for row in rows))
    result = {"samples": written.pairs, "shards": [str(path) for path in written.files]}
    print(json.dumps({**result, "labels": str(out / "labels.jsonl")}))  # noqa: T201 - results go to stdout


@app.command("tiny-clip")
def tiny_clip(
    *,
    data: Annotated[str, typer.Option("--data", help="Shards: {00000..00099}.tar, a tar or a folder of them.")],
    out: Annotated[Path, output_option("--out", help="Folder of the model; new or empty.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the weights.")] = 0,
) -> None:
    """Make a tiny CLIP of random weights, without a download.

    It is for trying `pairwright train` and `pairwright evaluate` offline. The tokenizer has the words of the shards'
    texts; images have 32 pixels.

    \b
    Example:
      pairwright dev tiny-clip --data demo/shards --out clip
    """
    from pairwright.cli.evaluate.report import require_torch

    require_torch([])
    from pairwright.training.tiny_clip import check_new_folder
    from pairwright.training.tiny_clip import write_tiny_clip as make

    check_new_folder(out)
    check_outputs(out)
    print(json.dumps(make(data, out, seed=seed)))  # noqa: T201 - results go to stdout


def _plausible_model() -> "PlausibleModel":
    from pairwright.generators.plausible_model.model import PlausibleModel

    return PlausibleModel()


def _announce(server: "Server") -> None:
    print(json.dumps({"url": server.url, "pid": os.getpid()}), flush=True)  # noqa: T201 - results go to stdout
