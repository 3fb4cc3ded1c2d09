"""Help of commands: options in groups, one line each, model options last; default commands of groups."""

import re
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from pairwright.cli.main import app

TITLE = re.compile(r"^(\w[^\n]*):$", re.MULTILINE)


def help_of(*command: str, width: int = 100) -> str:
    result = CliRunner(env={"NO_COLOR": "1"}).invoke(app, [*command, "--help"], terminal_width=width)
    assert result.exit_code == 0
    return result.stdout


def commands() -> Iterator[tuple[str, ...]]:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        yield from ((name, inner) for inner in command.commands) if isinstance(command, TyperGroup) else ((name,),)


COMMANDS = list(commands())


def test_the_help_of_audit_before_the_model_group_fits_one_screen() -> None:
    assert len(help_of("audit").partition("\nModel (--add-attacks llm):\n")[0].splitlines()) <= 40


@pytest.mark.parametrize("command", [each for each in COMMANDS if "--patience" in help_of(*each)], ids=" ".join)
def test_the_model_options_are_the_last_group_and_no_other_group_has_them(command: tuple[str, ...]) -> None:
    text = help_of(*command)
    title = TITLE.findall(text)[-1]
    assert title.startswith("Model")
    before, _, after = text.partition(f"\n{title}:\n")
    assert "\n  --base-url" not in before  # an example may have it
    assert {"--base-url", "--max-cost", "--prices"} <= set(re.findall(r"^  (--[\w-]+)", after, re.MULTILINE))
    assert title == "Model" or "llm" in title or "model" in title or "--import" in title


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_examples_come_before_options_and_options_are_in_known_groups(command: tuple[str, ...]) -> None:
    text = help_of(*command)
    assert text.index("Example") < text.index("--help")
    known = {
        "Arguments",
        "Input",
        "Output",
        "Limits",
        "Advanced",
        "Options",
        "Answers",
        "Faults",
        "Example",
        "Examples",
    }
    topics = {"Generation", "Refinement", "Audit", "Validation", "Search", "Filters", "Download", "Review", "Training"}
    topics |= {"Evaluation", "Export", "Build", "Index", "Context for the model"}
    unknown = {title for title in TITLE.findall(text) if not title.startswith("Model")} - known - topics
    assert unknown == set()


def test_a_list_of_commands_shows_the_first_line_of_each_docstring() -> None:
    assert re.search(
        r"^  negatives +Generate hard negatives: captions with one edit", help_of("generate"), re.MULTILINE
    )


@pytest.mark.parametrize(("arguments", "default"), [(["evaluate", "none.csv"], "none.csv"), (["generate", "--generator", "none", "a.jsonl", "--out", "b.jsonl"], "no generator named none")])  # fmt: skip
def test_a_group_runs_its_default_command_for_arguments_that_name_none(arguments: list[str], default: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert default in str(result.exception)
