"""Generator of the parts of the documentation that are derived from the code.

    python -m tools.update_docs            rewrite them
    python -m tools.update_docs --check    change nothing; exit 1 and list the stale pages

A generated part is enclosed by two marks, each on its own line::

    <!-- help:pairwright index build -->     help of a command, 80 columns wide, without its model options
    <!-- model:pairwright prompts ask -->    the model options of a command
    <!-- file:tests/plugins/miscount.py -->  a file of the repository
    <!-- table:config -->                    a table of `TABLES`
    <!-- end -->

Text outside the marks is written by hand. ``tests/test_docs.py`` fails when a part is stale.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import typer
from pydantic import BaseModel
from typer.core import TyperGroup
from typer.testing import CliRunner
from typing_extensions import Doc

from pairwright.cli.main import app
from pairwright.datasets.rejects import REASONS
from pairwright.filters.candidates.benchmark_readers import REASONS as OF_BENCHMARKS
from pairwright.filters.candidates.layouts import LAYOUTS
from pairwright.filters.review.decision_application import REASONS as OF_REVIEW
from pairwright.filters.validation.model_mistakes import REASONS as OF_MISTAKES
from pairwright.filters.validation.verdicts import REASONS as OF_VALIDATION
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.graph import STAGES
from pairwright.flows.mixtures.config import MixtureConfig
from pairwright.generators.conversations.turn_checks import TURN_REASONS as OF_TURNS
from pairwright.generators.edits.constraints.table import CONSTRAINTS, EditExample
from pairwright.generators.edits.written.reasons import REASONS as OF_EDITS
from pairwright.generators.lexicon.tables import DATA
from pairwright.generators.llm.client import request_errors
from pairwright.generators.llm.image_tokens import read_families
from pairwright.generators.llm.output import errors
from pairwright.generators.llm.testing.faults import KINDS as FAULTS
from pairwright.generators.llm.testing.script import AnswerRule, ServerScript
from pairwright.generators.llm_captions import CAPTION_REASONS as OF_CAPTIONS

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 80

MODEL_OPTIONS = re.compile(r"^(?P<title>Model\b[^\n]*:)\n(?: [^\n]*(?:\n|\Z)|\n(?= ))+", re.MULTILINE)
_PART = re.compile(r"<!-- (?P<kind>help|model|file|table):(?P<what>[^\n]+?) -->\n.*?<!-- end -->", re.DOTALL)
_ABOUT = re.compile(r".{22,}?(?=[.:;](?:\s|$))")  # the beginning of a table's comment
_FENCES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".json": "json"}


def verbs() -> list[str]:
    """Return the verbs of the command line in help order."""
    return list(_group().commands)


def commands() -> set[str]:
    """Return every command: ``pairwright``, ``pairwright build``, ``pairwright index build`` ..."""
    found = {"pairwright"}
    for name, command in _group().commands.items():
        found.add(f"pairwright {name}")
        if isinstance(command, TyperGroup):
            found |= {f"pairwright {name} {inner}" for inner in command.commands}
    return found


def pages() -> Iterator[Path]:
    """Yield every page of the documentation, README first."""
    yield from sorted(ROOT.glob("*.md"), key=lambda path: (path.name != "README.md", path.name))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield ROOT / "benchmarks" / "RESULTS.md"


def refreshed(text: str) -> str:
    """Return a page with its generated parts updated.

    Raises:
        ValueError: if a part names an unknown command, file or table.
    """
    return _PART.sub(lambda part: _part(part["kind"], part["what"]), text)


def stale_pages() -> list[Path]:
    """Return the pages with outdated generated parts."""
    return [page for page in pages() if (text := page.read_text(encoding="utf-8")) != refreshed(text)]


@cache
def _group() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def _part(kind: str, what: str) -> str:
    body = {"help": _help, "model": _model_options, "file": _file, "table": _table}[kind](what)
    return f"<!-- {kind}:{what} -->\n{body}\n<!-- end -->"


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def help_of(command: str) -> str:
    """Return the help of a command, `WIDTH` columns wide.

    Raises:
        ValueError: if the command is unknown.
    """
    if command not in commands():
        raise ValueError(f"no command {command!r}")
    return _output_of([*command.split()[1:], "--help"])


def _output_of(arguments: list[str]) -> str:
    # Without these settings colours and width depend on the caller's terminal.
    runner = CliRunner(env={"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": str(WIDTH)})
    result = runner.invoke(app, arguments, prog_name="pairwright", terminal_width=WIDTH, color=False)
    if result.exit_code:
        raise ValueError(f"pairwright {' '.join(arguments)} exits {result.exit_code}")
    return "\n".join(line.rstrip() for line in result.stdout.splitlines())


def _help(command: str) -> str:
    return _fenced("text", shorten_model_options(help_of(command)))


def shorten_model_options(help_text: str) -> str:
    """Return a command's help with a reference instead of its model options, which many commands share."""
    return MODEL_OPTIONS.sub(r"\g<title>\n  See docs/concepts/models.md#options.\n", help_text)


def _model_options(command: str) -> str:
    found = MODEL_OPTIONS.search(help_of(command))
    if found is None:
        raise ValueError(f"no model options in {command}")
    return _fenced("text", found[0])


def _file(name: str) -> str:
    path = ROOT / name
    if not path.is_file():
        raise ValueError(f"no file {name}")
    return _fenced(_FENCES[path.suffix], path.read_text(encoding="utf-8"))


def _table(what: str) -> str:
    if what == "plugins":
        rows = _output_of(["plugins"]).splitlines()
        return _fenced("text", "\n".join(row for row in rows if "  pairwright  " in row))
    if what not in TABLES:
        raise ValueError(f"no table {what}")
    head, body = TABLES[what]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ("---",) * len(head), *body()])


def _shown(text: str) -> str:
    """Return the text with tags in backticks, so that Markdown shows them."""
    return re.sub(r"<\w+>", r"`\g<0>`", text)


def _stage_rows() -> Iterator[tuple[str, ...]]:
    for stage in STAGES:
        builds = "both" if stage.full and stage.incremental else "full" if stage.full else "incremental"
        inputs = ", ".join(f"`{name}`" for name in stage.inputs)
        yield f"`{stage.name}`", stage.about, stage.unit, stage.scope, inputs, stage.depends_on, builds


def _answer_rows() -> Iterator[tuple[str, ...]]:
    """Yield the error codes of answers, then those of requests that reject a row."""
    for name, error in errors.OUTPUT_ERROR_CODES.items():
        yield f"`{name}`", error.means, error.fix
    for name, failure in request_errors.REQUEST_ERROR_CODES.items():
        if failure.kind != "fatal":
            yield f"`{name}`", failure.means, failure.fix


def _reason_rows(reasons: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for name, text in reasons.items():
        yield f"`{name}`", text


def _vision_rows() -> Iterator[tuple[str, ...]]:
    for row in read_families():
        yield f"`{row['pattern']}`".replace("|", "\\|"), row["rule"], row["edge"], row["source"]


def _turn_rows() -> Iterator[tuple[str, ...]]:
    for name, reason in OF_TURNS.items():
        yield f"`{name}`", reason.meaning, _shown(reason.retry_hint) or "no repair request"


def _fault_rows() -> Iterator[tuple[str, ...]]:
    for name, (group, meaning) in FAULTS.items():
        yield f"`{name}`", group, meaning


def _constraint_rows() -> Iterator[tuple[str, ...]]:
    for each in CONSTRAINTS:
        types = ", ".join("all" if name == "*" else f"`{name}`" for name in each.types)
        edits = types if each.kind == "hard_negative" else f"{types} (positives)"
        yield f"`{each.id}`", each.group, edits, f"`{each.reason}`", _edit(each.blocked), _edit(each.allowed)


def _layout_rows() -> Iterator[tuple[str, ...]]:
    for one in LAYOUTS.built_in.values():
        yield f"`{one.name}`", one.about, ", ".join(one.scores), f"`{one.suffix}`" if one.write else "no"


def _edit(example: EditExample) -> str:
    """Return an example of a constraint as one line: the caption, what is written, and what is known of the image."""
    caption = re.sub(r"\[(.*?)\]", r"**\1**", example.caption)
    if example.type.startswith("swap"):
        shown = f"{caption}, exchanged"
    elif "|" in caption:
        shown = f"{caption.partition('|')[0].strip()}, adding **{example.new}**"
    else:
        shown = f"{caption} -> **{example.new}**"
    known = [f"other caption: {text}" for text in example.others]
    if example.boxes:
        boxes = (f"{box.label} at x {box.x1:.1f}-{box.x2:.1f}" for box in example.boxes)
        known.append(f"boxes: {', '.join(boxes)}")
    return f"{shown} ({'; '.join(known)})" if known else shown


def _lexicon_rows() -> Iterator[tuple[str, ...]]:
    for path in sorted(DATA.glob("*.tsv")):
        lines = path.read_text(encoding="utf-8").splitlines()
        comment = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
        about = _ABOUT.match(comment)
        columns = next(line for line in lines if line and not line.startswith("#")).split("\t")
        shown = about[0] if about else comment
        yield f"`{path.name}`", shown.replace("|", "\\|"), ", ".join(f"`{column}`" for column in columns)


def _setting_rows(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for name, info in model.model_fields.items():
        default = "" if info.default in (None, "", (), {}) else f"`{json.dumps(info.default)}`"
        yield f"`{info.alias or name}`", default, (info.description or "").replace("|", "\\|")


def _config_rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, info in model.model_fields.items():
        section = _section(info.annotation)
        default = "required" if info.is_required() else _default(info.default, section)
        texts = (each.documentation for each in info.metadata if isinstance(each, Doc))
        about = info.description or next(texts, "") or (section.__doc__ or "" if section else "")
        yield f"`{prefix}{name}`", default, about.replace("|", "\\|").rstrip(".")
        if section:
            yield from _config_rows(section, f"{prefix}{name}.")


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the model of a key, also inside an optional or a tuple."""
    if get_origin(annotation) in (UnionType, tuple):
        return next((found for inner in get_args(annotation) if (found := _section(inner))), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _default(value: Any, section: type[BaseModel] | None) -> str:
    if section:
        return "unset: no such stage" if value is None else "none" if value == () else "always set"
    plain = list(value) if isinstance(value, tuple) else value
    return f"`{json.dumps(plain)}`"


TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[], Iterator[tuple[str, ...]]]]] = {
    "config": (("key", "default", "meaning"), lambda: _config_rows(BuildConfig)),
    "mixture": (("key", "default", "meaning"), lambda: _config_rows(MixtureConfig)),
    "reasons": (("reason", "fix"), lambda: _reason_rows(REASONS)),
    "edit-reasons": (("reason", "meaning"), lambda: _reason_rows(OF_EDITS)),
    "constraints": (("constraint", "group", "edits", "reason", "blocks", "allows"), _constraint_rows),
    "layouts": (("--format", "files", "scores", "written"), _layout_rows),
    "lexicon": (("table", "content", "columns"), _lexicon_rows),
    "benchmark-reasons": (("reason", "meaning"), lambda: _reason_rows(OF_BENCHMARKS)),
    "review-reasons": (("reason", "meaning"), lambda: _reason_rows(OF_REVIEW)),
    "validation-reasons": (("reason", "meaning"), lambda: _reason_rows(OF_VALIDATION)),
    "mistake-reasons": (("reason", "meaning"), lambda: _reason_rows(OF_MISTAKES)),
    "caption-reasons": (("reason", "meaning"), lambda: _reason_rows(OF_CAPTIONS)),
    "vision-models": (("models", "tokens of an image", "longer edge", "source"), _vision_rows),
    "turn-reasons": (("reason", "meaning", "repair request"), _turn_rows),
    "stages": (("stage", "what it does", "unit", "job per", "reads", "depends also on", "builds"), _stage_rows),
    "answer-reasons": (("reason", "meaning", "fix"), _answer_rows),
    "server-faults": (("kind", "group", "effect"), _fault_rows),
    "server-rule": (("key", "default", "meaning"), lambda: _setting_rows(AnswerRule)),
    "server-script": (("key", "default", "meaning"), lambda: _setting_rows(ServerScript)),
}


def main() -> None:
    """Rewrite the stale pages, or list them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a page is stale")
    check = parser.parse_args().check
    stale = stale_pages()
    for page in stale:
        print(page.relative_to(ROOT), "is stale" if check else "rewritten")
        if not check:
            page.write_text(refreshed(page.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(bool(check and stale))


if __name__ == "__main__":
    main()
