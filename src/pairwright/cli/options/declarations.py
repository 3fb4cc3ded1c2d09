"""Declaration of options: groups of a command's help, and sets of options that several commands share.

An option belongs to the group that its declaration names (`input_option`, `output_option`, ...); one declared with
`typer.Option` belongs to the topic of its verb. Options added by `with_model_options` are printed last.
"""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from pairwright.datasets.errors import UsageError

INPUT, OUTPUT, LIMITS, ADVANCED = "Input", "Output", "Limits", "Advanced"


def refuse_url(value: Any) -> Any:
    """Refuse a URL as an output of a command that writes to disk: it would make a folder ``s3:`` here.

    Raises:
        UsageError: for the URL of a store.
    """
    if isinstance(value, Path):
        from pairwright.datasets.remote.object_store import is_remote
        from pairwright.datasets.remote.store_path import to_path

        if is_remote(value):
            raise UsageError(f"{to_path(value)}: this output is written to disk. Give a local path, and copy it later.")
    return value


input_option = functools.partial(typer.Option, rich_help_panel=INPUT)
output_option = functools.partial(typer.Option, rich_help_panel=OUTPUT, callback=refuse_url)
limit_option = functools.partial(typer.Option, rich_help_panel=LIMITS)
advanced_option = functools.partial(typer.Option, rich_help_panel=ADVANCED)

_TOPICS = {  # verb: title of the group of its own options
    "generate": "Generation",
    "index": "Index",
    "refine": "Refinement",
    "audit": "Audit",
    "validate": "Validation",
    "retrieve": "Search",
    "filter": "Filters",
    "fetch": "Download",
    "review": "Review",
    "train": "Training",
    "evaluate": "Evaluation",
    "export": "Export",
    "build": "Build",
}
_MODEL_CONDITIONS = {  # parameter of a command: the value with which it asks a model
    "method": "--method llm",
    "by": "--by llm",
    "add_attacks": "--add-attacks llm",
    "outputs": "without --import",
    "generator": "a generator that asks a model",
}

Command = Callable[..., None]


def with_options(options: type, parameter: str, names: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Return a decorator that adds the fields of a dataclass to a command as options.

    Args:
        options: dataclass whose fields are annotated with `typer.Option`.
        parameter: keyword of the command that receives the instance.
        names: fields to add; empty: all. The others keep their defaults.
    """
    chosen = [field for field in fields(options) if not names or field.name in names]
    hints = get_type_hints(options, include_extras=True)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_added(*args: Any, **values: Any) -> None:
            instance = options(**{field.name: values.pop(field.name) for field in chosen})
            command(*args, **values, **{parameter: instance})

        added = [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=_default(each), annotation=hints[each.name]
            )
            for each in chosen
        ]
        own = [each for name, each in inspect.signature(command).parameters.items() if name != parameter]
        with_added.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # read by Typer
        return with_added

    return decorate


def _default(field: "Field[Any]") -> Any:
    if field.default is not MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is MISSING else field.default_factory()


class GroupedCommand(TyperCommand):
    """A command that takes each option once, and whose help lists options in groups, those of a model last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice but holds one value: the first would be lost without a word."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        once = [
            param.opts[-1]
            for param in given
            if param.param_type_name == "option" and not getattr(param, "is_flag", False) and not param.multiple
        ]
        if repeated := next((name for name in once if once.count(name) > 1), None):
            ctx.fail(f"Option '{repeated}' is given twice and takes one value.")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the groups of options."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], INPUT: [], self._topic(ctx): [], OUTPUT: []}
        groups |= {LIMITS: [], ADVANCED: []}
        of_model = _model_option_names()
        if not of_model <= {param.name for param in self.params}:
            of_model = frozenset()
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                group = "Arguments"
            elif param.name in of_model:
                group = self._model_title()
            elif param.name == "help":
                group = OUTPUT if groups[OUTPUT] else self._topic(ctx)
            else:
                group = getattr(param, "rich_help_panel", None) or self._topic(ctx)
            groups.setdefault(group, []).append(_short_record(record))
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _topic(self, ctx: Any) -> str:
        return _TOPICS.get([*ctx.command_path.split(), "", ""][1], "Options")

    def _model_title(self) -> str:
        names = {param.name for param in self.params}
        condition = next((text for name, text in _MODEL_CONDITIONS.items() if name in names), "")
        return f"Model ({condition})" if condition else "Model"


@functools.cache
def _model_option_names() -> frozenset[str]:
    from pairwright.cli.options.model import with_model_options

    def command(*, model_options: object) -> None:
        del model_options

    return frozenset(inspect.signature(with_model_options(command)).parameters)


def _short_record(record: tuple[str, str]) -> tuple[str, str]:
    """Return a line of the help without ranges, which errors name, and without ``required`` of arguments."""
    names, text = record
    text = re.sub(r"(?:; )?(?:[\d.]+<=)?x[<>]=[\d.]+(?=\])", "", text)
    text = re.sub(r"\s*\[(?:required)?\]$", "", text) if not names.startswith("-") else text.replace("  []", "")
    return names.replace(" range>", ">"), re.sub(r"\[default: \((.+)\)\]$", r"[default: \1]", text)


class DefaultCommandGroup(TyperGroup):
    """A group that runs a default command for arguments that name none, as in ``evaluate scores.jsonl``."""

    default = ""

    def is_default(self, args: Sequence[str]) -> bool:
        """Return whether arguments that name no command are for the default one."""
        raise NotImplementedError

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command."""
        if args and args[0] not in self.commands and self.is_default(args):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


class App(typer.Typer):
    """A Typer application whose commands have plain help in groups; a list shows the first line of each.

    Args:
        about: one line about a group of commands.
        settings: of `typer.Typer`.
    """

    def __init__(self, about: str, **settings: Any) -> None:
        super().__init__(
            help=about,
            short_help=about.partition("\n")[0].rstrip("."),
            no_args_is_help=True,
            rich_markup_mode=None,
            **settings,
        )

    def command(  # type: ignore[override]  # the other settings pass through
        self, name: str | None = None, *, cls: type[TyperCommand] = GroupedCommand, **settings: Any
    ) -> Callable[[Command], Command]:
        """Return a decorator that registers a command, listed with the first line of its docstring."""

        def register(command: Command) -> Command:
            summary = (command.__doc__ or "").partition("\n")[0].rstrip(".")
            return super(App, self).command(name, cls=cls, **{"short_help": summary, **settings})(command)

        return register
