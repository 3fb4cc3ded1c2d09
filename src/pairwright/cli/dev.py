"""``pairwright dev``: tools for testing what talks to a language model, and what looks at pictures."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.generators.llm.testing.serving import Server
    from pairwright.generators.plausible_model.model import PlausibleModel

app = typer.Typer(help="Tools for testing.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    """Tools for testing."""


@app.command("llm-server", short_help="Serve the OpenAI API without a model.")
def llm_server(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; as it is, only this machine can ask.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: a free one.")] = 0,
    script: Annotated[
        Path | None, typer.Option("--script", help="YAML or JSON of answers and settings; options go before it.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="KIND=RATE", help="A fault and the share of requests it hits; repeatable."),
    ] = None,
    latency_ms: Annotated[float | None, typer.Option("--latency-ms", min=0, help="Before each answer.")] = None,
    jitter_ms: Annotated[float | None, typer.Option("--jitter-ms", min=0, help="Up to so much is added.")] = None,
    max_concurrency: Annotated[
        int | None, typer.Option("--max-concurrency", min=0, help="More at once get a 429; 0: no limit.")
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option("--requests-per-minute", min=0, help="More get a 429; 0: no limit.")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option("--tokens-per-minute", min=0, help="More get a 429; 0: no limit.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option("--model", help="A model that there is; none: any.")] = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="NAME", help="Refuse a parameter or feature with a 400; repeatable."),
    ] = None,
    replay: Annotated[Path | None, typer.Option("--replay", help="JSONL of recorded answers to give.")] = None,
    record: Annotated[Path | None, typer.Option("--record", help="JSONL that answers are appended to.")] = None,
    plausible: Annotated[
        bool,
        typer.Option("--plausible", help="Answer pairwright's own prompts by rules, so that most answers are kept."),
    ] = False,
    api_key: Annotated[
        str,
        typer.Option("--api-key", envvar="PAIRWRIGHT_DEV_KEY", show_envvar=True, help="Key to bring; empty: any."),
    ] = "",
    seed: Annotated[int | None, typer.Option("--seed", help="Of faults and jitter.")] = None,
    exit_with_parent: Annotated[
        bool, typer.Option("--exit-with-parent", help="End when the process that started this one ends.")
    ] = False,
) -> None:
    """Serve the OpenAI API without a model, for tests: scripted answers, faults, counts.

    The first line says where: {"url": ..., "pid": ...}. GET /_stats counts what came. SIGTERM or Ctrl-C ends it.

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
    told = load_script(script) if script else ServerScript()
    settings = told.changed({name: value for name, value in given.items() if value is not None}, where="options")
    if plausible and replay:
        raise UsageError("`--plausible` and `--replay` are mutually exclusive: both say what is answered.")
    served = ServerApp(
        settings, answer=_plausible_model() if plausible else None, replay=replay, record=record, api_key=api_key
    )
    serve_until_signal(served, _announce, host=host, port=port, with_parent=exit_with_parent)


@app.command("colorshape", short_help="Draw the one-object ColorShape set.")
def colorshape(
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder of shards and labels.jsonl.")],
    images: Annotated[int, typer.Option("--images", min=1, help="Of each colour and shape.")] = 500,
    continuous: Annotated[bool, typer.Option("--continuous", help="Any colour; labels tell its rgb instead.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Same seed: same pictures.")] = 0,
) -> None:
    """Draw the one-object ColorShape set, for retrieval by colour, by shape or by both.

    Embed the shards' pictures in order, then: pairwright evaluate embeddings E.npy --labels labels.jsonl --by colour

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
    told = {"samples": written.pairs, "shards": [str(path) for path in written.files]}
    print(json.dumps({**told, "labels": str(out / "labels.jsonl")}))  # noqa: T201 - stdout is where results go


@app.command("tiny-clip", short_help="Make a small CLIP of random weights for the texts of shards.")
def tiny_clip(
    *,
    data: Annotated[str, typer.Option("--data", help="Shards: {00000..00099}.tar, a tar or a folder of them.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the model; new or empty.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the weights.")] = 0,
) -> None:
    """Make a small CLIP of random weights, with a tokenizer of the words in the shards' texts; nothing is downloaded.

    For trying `pairwright train` and `pairwright evaluate` offline. It reads images of 32 pixels and knows nothing before
    it is trained.

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
    print(json.dumps(asdict(make(data, out, seed=seed))))  # noqa: T201 - stdout is where results go


def _plausible_model() -> "PlausibleModel":
    from pairwright.generators.plausible_model.model import PlausibleModel

    return PlausibleModel()


def _announce(server: "Server") -> None:
    print(json.dumps({"url": server.url, "pid": os.getpid()}), flush=True)  # noqa: T201 - stdout is where results go
