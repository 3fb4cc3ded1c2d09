"""``pairwright doctor``: checks of the installation and its settings."""

from typing import Annotated

import typer

from pairwright.cli.errors.exit_codes import FAILED
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit, note

CheckRow = tuple[str, str, str]


def doctor(
    *,
    fix: Annotated[bool, typer.Option("--fix", help="Download and compile WordNet, without root.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check the installation and its settings.

    Checked are packages, tagger, WordNet, encoder, LLM settings and Prefect.

    \b
    Examples:
      pairwright doctor
      pairwright doctor --fix
    """
    if fix:
        from pairwright.generators.language.wordnet_setup import set_up_language

        set_up_language(note)
    rows = [
        _python(),
        *_packages(),
        *_language(),
        ("encoder", "ok", "lexical (no download)"),
        _llm(),
        *_prefect(),
    ]
    result = {
        "ok": all(state != "missing" for _, state, _ in rows),
        "checks": [{"name": name, "state": state, "detail": detail} for name, state, detail in rows],
    }
    emit(result, columns(rows, indent=""), as_json=as_json)
    if not result["ok"]:
        raise typer.Exit(FAILED)


def _python() -> CheckRow:
    import platform

    from pairwright import __version__

    return ("pairwright", "ok", f"{__version__} on Python {platform.python_version()}")


def _packages() -> list[CheckRow]:
    from importlib import metadata

    needed = ["faiss-cpu", "nltk", "openai", "polars", "prefect", "spacy", "webdataset"]
    optional = {"img2dataset": "download", "transformers": "clip", "torch": "train", "ray": "ray"}
    rows: list[CheckRow] = []
    for name in [*needed, *optional]:
        try:
            rows.append((name, "ok", metadata.version(name)))
        except metadata.PackageNotFoundError:
            if name in optional:
                rows.append((name, "optional", f"not installed: pip install 'pairwright[{optional[name]}]'"))
            else:
                rows.append((name, "missing", "pip install pairwright"))
    return rows


def _language() -> list[CheckRow]:
    from pairwright.generators.language.tagger import tagger_status
    from pairwright.generators.language.wordnet import wordnet_status

    return [
        (name, "ok" if ready else "missing", detail)
        for name, (ready, detail) in (("tagger", tagger_status()), ("wordnet", wordnet_status()))
    ]


def _llm() -> CheckRow:
    import os

    from pairwright.datasets.redaction import redact_url

    base = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    if os.environ.get("OPENAI_API_KEY"):
        return ("llm", "ok", f"OPENAI_API_KEY is set; requests would go to {redact_url(base)}")
    return ("llm", "optional", "OPENAI_API_KEY is not set; generators use rules and templates")


def _prefect() -> list[CheckRow]:
    from pairwright.flows.prefect.preflight import prefect_problems

    return [("prefect start", "missing", problem) for problem in prefect_problems()] or [
        ("prefect start", "ok", "no known problem; telemetry is off")
    ]
