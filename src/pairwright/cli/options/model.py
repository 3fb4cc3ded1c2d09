"""Options of a language model, which `with_model_options` adds to a command: settings, estimate, retry, batches."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from annotated_types import Ge
from typing_extensions import Doc

from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.output.console import note
from pairwright.datasets.errors import UsageError
from pairwright.flows.config.llm_options import LLMOptions

if TYPE_CHECKING:
    from pairwright.flows.config.llm_section import LLMSection
    from pairwright.flows.llm.model_access import ModelAccess


SeeImageOption = Annotated[
    bool, typer.Option("--see-image", help="Model: send the image too; pairs without one are rejected.")
]
_FIRST = (  # in the help; then the other settings
    *("model", "base_url", "cache", "dry_run", "max_cost", "max_requests", "retry_failed", "batch", "batch_cancel"),
    *("prompts", "structured"),
)


@dataclass(frozen=True)
class ModelOptions(LLMOptions):
    """The model options of a command: the settings of a model, and what concerns one run."""

    dry_run: Annotated[bool, Doc("Print an estimate of requests, tokens, cost and time; send no requests.")] = False
    retry_failed: Annotated[
        bool, Doc("Retry the rows in OUT's .failed.jsonl (billed again); other rows come from the cache.")
    ] = False
    batch_cancel: Annotated[bool, Doc("Cancel the running batches, and do nothing else.")] = False

    def section(self) -> "LLMSection":
        """Return the settings as a section of a config.

        Raises:
            UsageError: there is no model, or a value is invalid.
        """
        from pydantic import ValidationError

        from pairwright.flows.config.llm_section import LLMSection

        if not self.model:
            raise UsageError("a model is required. Name it with --model.")
        try:
            return LLMSection(**{each.name: getattr(self, each.name) for each in fields(LLMOptions)})
        except ValidationError as error:
            first = error.errors()[0]
            if not first["loc"]:  # it concerns several options
                raise UsageError(f"{first['ctx']['error']}.") from None
            option = _option_name(str(first["loc"][0]))
            if first["type"] == "value_error":  # our own message; the value may be a secret
                raise UsageError(f"{option}: {first['ctx']['error']}.") from None
            raise UsageError(f"{option} {first['input']!r}: {first['msg']}.") from None

    def access(self, out: Path, seed: int = 0) -> "ModelAccess":
        """Return the access to the model of a run with this seed that writes ``out``; errors as in `section`."""
        from pairwright.flows.llm.model_access import ModelAccess, cache_path

        resumable_on_interrupt()
        section = self.section()
        return ModelAccess(section, cache_path(section, out.parent), self.retry_failed, seed)

    @property
    def sends_nothing(self) -> bool:
        """Whether no requests are sent and nothing is written: for an estimate, or to cancel batches."""
        return self.dry_run or self.batch_cancel

    def warn_unused_prompts(self) -> None:
        """Print which files of --prompts replace no prompt although their names suggest it.

        Raises:
            PairwrightError: the folder, or a file in it, cannot be used.
        """
        if self.prompts:
            from pairwright.generators.prompts.book import PromptBook

            for name, hint in PromptBook(Path(self.prompts)).misnamed().items():
                note(f"{Path(self.prompts) / name}.yaml replaces no built-in prompt. {hint}")

    def refuse(self, why: str, starting: str = "") -> None:
        """Refuse options that would have no effect.

        Args:
            why: end of the message, ``with`` or ``without`` an option.
            starting: beginning of the names of the fields; empty for all.

        Raises:
            UsageError: one of them is set.
        """
        unset = ModelOptions()
        for each in fields(self):
            if each.name.startswith(starting) and getattr(self, each.name) != getattr(unset, each.name):
                fix = why.removeprefix("without ") if why.startswith("without ") else ""
                fix = f"Omit it, or add {fix}." if fix else "Omit it."
                raise UsageError(f"{_option_name(each.name)} does nothing {why}. {fix}")


def _option_name(field: str) -> str:
    return "--parameter" if field == "parameters" else f"--{field.replace('_', '-')}"


def _parse_parameter(written: str) -> tuple[str, Any]:
    """Return ``temperature=0`` as a name and a value: JSON, else text; None where it is empty."""
    import json

    name, sign, value = written.partition("=")
    if not (sign and name.strip()):
        raise UsageError(f"--parameter {written!r}: write NAME=VALUE, such as temperature=0.")
    try:
        return name.strip(), json.loads(value) if value.strip() else None
    except json.JSONDecodeError:
        return name.strip(), value


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `ModelOptions` to a command, which receives them as its keyword ``model_options``."""

    @functools.wraps(command)
    def with_options(*args: Any, **given: Any) -> None:
        values = {each.name: given.pop(each.name) for each in fields(ModelOptions)}
        values["parameters"] = dict(map(_parse_parameter, values["parameters"]))
        command(*args, **given, model_options=ModelOptions(**values))

    own = [each for name, each in inspect.signature(command).parameters.items() if name != "model_options"]
    with_options.__signature__ = inspect.Signature([*own, *_parameters()])  # type: ignore[attr-defined]  # read by Typer
    return with_options


def _parameters() -> list[inspect.Parameter]:
    """Return the parameters of a command that Typer makes the options from."""
    hints = get_type_hints(ModelOptions, include_extras=True)
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=_default(name), annotation=_annotation(name, hints[name])
        )
        for name in sorted(hints, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    ]


def _default(name: str) -> Any:
    return [] if name == "parameters" else getattr(ModelOptions, name)


def _annotation(name: str, hint: Any) -> Any:
    """Return the annotation of an option: the type of its field, the text as help, an inclusive lower bound."""
    type_, *about = get_args(hint)
    settings: dict[str, Any] = {"help": next(each.documentation for each in about if isinstance(each, Doc))}
    if name == "parameters":
        settings |= {
            "metavar": "NAME=VALUE",
            "help": "Request parameter in place of the prompt's own; NAME= removes it.",
        }
        type_ = list[str]
    if type_ is int:
        settings["min"] = next(each.ge for each in about if isinstance(each, Ge))
    return Annotated[type_, typer.Option(_option_name(name), **settings)]
