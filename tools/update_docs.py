"""Rewrites the parts of the documentation that are generated, so that they say what the code says.

    python -m tools.update_docs            rewrite them
    python -m tools.update_docs --check    change nothing; exit 1 and name the stale pages

A generated part stands between two marks, each on a line of its own::

    <!-- help:pairwright index build -->     the command's help, 80 columns wide everywhere
    <!-- file:tests/plugins/miscount.py -->  a file of the repository
    <!-- table:config -->                    the keys of a build config; table:mixture, those of a
                                              mixture's; table:reasons, why readers refuse rows;
                                              table:edit-reasons, table:turn-reasons, table:answer-reasons
                                              table:review-reasons and table:validation-reasons, why texts are turned away
    <!-- end -->

Everything outside the marks is written by hand. ``tests/test_docs.py`` fails while a part is stale.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import typer
from pydantic import BaseModel
from typer.core import TyperGroup
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.rejects import REASONS
from pairwright.filters.review.decision_application import REASONS as OF_REVIEW
from pairwright.filters.validation.records import REASONS as OF_VALIDATION
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.mixtures.config import MixtureConfig
from pairwright.generators.conversations.rejection_reasons import TURN_REASONS as OF_TURNS
from pairwright.generators.edit_checks.reasons import REASONS as OF_EDITS
from pairwright.generators.llm.client import request_errors
from pairwright.generators.llm.output import errors

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 80

_PART = re.compile(r"<!-- (?P<kind>help|file|table):(?P<what>[^\n]+?) -->\n.*?<!-- end -->", re.DOTALL)
_FENCES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".json": "json"}


def verbs() -> list[str]:
    """Return the verbs of the command line, in the order of its help."""
    return list(_group().commands)


def commands() -> set[str]:
    """Return every command that can be called: ``pairwright``, ``pairwright build``, ``pairwright index build`` ..."""
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


def refreshed(text: str) -> str:
    """Return a page with its generated parts written anew.

    Raises:
        ValueError: when a part names a command or a file that does not exist.
    """
    return _PART.sub(lambda part: _part(part["kind"], part["what"]), text)


def stale_pages() -> list[Path]:
    """Return the pages whose generated parts are not what they would be written as now."""
    return [page for page in pages() if (text := page.read_text(encoding="utf-8")) != refreshed(text)]


@cache
def _group() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def _part(kind: str, what: str) -> str:
    body = {"help": _help, "file": _file, "table": _table}[kind](what)
    return f"<!-- {kind}:{what} -->\n{body}\n<!-- end -->"


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def help_of(command: str) -> str:
    """Return what ``command --help`` prints on a terminal of `WIDTH` columns.

    Raises:
        ValueError: when there is no such command.
    """
    if command not in commands():
        raise ValueError(f"no command {command!r}")
    # Colours and width would otherwise follow whoever runs this.
    runner = CliRunner(env={"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": str(WIDTH)})
    arguments = [*command.split()[1:], "--help"]
    result = runner.invoke(app, arguments, prog_name="pairwright", terminal_width=WIDTH, color=False)
    if result.exit_code:
        raise ValueError(f"{command} --help exits {result.exit_code}")
    return "\n".join(line.rstrip() for line in result.stdout.splitlines())


def _help(command: str) -> str:
    return _fenced("text", help_of(command))


def _file(name: str) -> str:
    path = ROOT / name
    if not path.is_file():
        raise ValueError(f"no file {name}")
    return _fenced(_FENCES[path.suffix], path.read_text(encoding="utf-8"))


def _table(what: str) -> str:
    tables: dict[str, tuple[tuple[str, ...], Callable[[], Iterator[tuple[str, ...]]]]] = {
        "config": (("key", "default", "what it does"), lambda: _config_rows(BuildConfig)),
        "mixture": (("key", "default", "what it does"), lambda: _config_rows(MixtureConfig)),
        "reasons": (("reason", "what to do"), lambda: ((f"`{name}`", fix) for name, fix in REASONS.items())),
        "review-reasons": (("reason", ""), lambda: ((f"`{name}`", means) for name, means in OF_REVIEW.items())),
        "validation-reasons": (
            ("reason", "the row falls because"),
            lambda: ((f"`{name}`", means) for name, means in OF_VALIDATION.items()),
        ),
        "edit-reasons": (("reason", ""), lambda: ((f"`{name}`", means) for name, means in OF_EDITS.items())),
        "answer-reasons": (("reason", "", "what to do"), _answer_rows),
        "turn-reasons": (
            ("reason", "", "what the model is told"),
            lambda: (
                (f"`{name}`", each.means, _shown(each.tell) or "it is not asked again")
                for name, each in OF_TURNS.items()
            ),
        ),
    }
    if what not in tables:
        raise ValueError(f"no table {what}")
    head, rows = tables[what]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ("---",) * len(head), *rows()])


def _shown(text: str) -> str:
    """Return a text in which a tag is shown and not taken for one."""
    return re.sub(r"<\w+>", r"`\g<0>`", text)


def _answer_rows() -> Iterator[tuple[str, ...]]:
    """Give what may be wrong with an answer, then how a request may end without one that stops no run."""
    for name, trouble in errors.OUTPUT_ERROR_CODES.items():
        yield f"`{name}`", trouble.means, trouble.fix
    for name, failure in request_errors.REQUEST_ERROR_CODES.items():
        if failure.kind != "fatal":
            yield f"`{name}`", failure.means, failure.fix


def _config_rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, info in model.model_fields.items():
        section = _section(info.annotation)
        default = "required" if info.is_required() else _default(info.default, section)
        about = info.description or (section.__doc__ or "" if section else "")
        yield f"`{prefix}{name}`", default, about.replace("|", "\\|").rstrip(".")
        if section:
            yield from _config_rows(section, f"{prefix}{name}.")


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a key holds: itself, optional, or as the items of a list."""
    if get_origin(annotation) in (UnionType, tuple):
        return next((found for inner in get_args(annotation) if (found := _section(inner))), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _default(value: Any, section: type[BaseModel] | None) -> str:
    if section:
        return "left out: no such stage" if value is None else "none" if value == () else "always there"
    plain = list(value) if isinstance(value, tuple) else value
    return f"`{json.dumps(plain)}`"


def main() -> None:
    """Rewrite the stale pages, or name them."""
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
