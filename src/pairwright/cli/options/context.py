"""Options about captions of an index that a model reads with each row (``--context``)."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairwright.cli.options.declarations import Command, with_options
from pairwright.datasets.errors import UsageError

if TYPE_CHECKING:
    from pairwright.flows.llm.attention_calibration import AttentionCalibration
    from pairwright.flows.llm.model_access import ModelAccess

CONTEXT_PARAMETERS = "--context, --index, --calibrate and --calibrate-temperature"
_context_option = partial(typer.Option, rich_help_panel="Context for the model")


@dataclass(frozen=True)
class ContextOptions:
    """Which captions a model reads with each row, and how it attends to them."""

    context: Annotated[
        int, _context_option(min=0, help="Captions of --index to send with each row.", show_default="none")
    ] = 0
    index: Annotated[Path | None, _context_option(help="Folder of the index for --context.")] = None
    calibrate: Annotated[
        bool, _context_option("--calibrate", help="Local model: attend to captions by relevance, not position.")
    ] = False
    temperature: Annotated[
        float | None,
        _context_option("--calibrate-temperature", help="Lower: more weight on relevant captions; 5e-5."),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of the options is set."""
        return self != ContextOptions()


def with_context_options(command: Command) -> Command:
    """Add `ContextOptions` to a command as its keyword ``context``."""
    return with_options(ContextOptions, "context")(command)


def add_context(access: "ModelAccess", options: ContextOptions, out: Path) -> "ModelAccess":
    """Return the access to a model that sends captions of an index with each row; unchanged without ``--context``.

    Raises:
        UsageError: an option lacks one that it requires.
    """
    if options.temperature is not None and not options.calibrate:
        raise UsageError("--calibrate-temperature requires --calibrate.")
    if options.calibrate and not options.context:
        raise UsageError("--calibrate requires --context N and --index FOLDER.")
    if not options.context and options.index is None:
        return access
    if not options.context or options.index is None:
        raise UsageError(
            "--context N and --index FOLDER require each other: the N nearest captions of the index are sent."
        )
    from pairwright.flows.llm.context import Context, context_record_path

    extended = replace(access, context=Context(options.index, options.context, context_record_path(out)))
    if not options.calibrate:
        return extended
    return replace(extended, calibrated=_calibration_of(access.section.model, options))


def _calibration_of(model: str, options: ContextOptions) -> "AttentionCalibration":
    from pairwright.flows.llm.attention_calibration import AttentionCalibration
    from pairwright.generators.llm.local.folder import is_local

    if not is_local(model):
        raise UsageError(f"--calibrate requires a local model, and {model} is not local: --model local:FOLDER.")
    return AttentionCalibration() if options.temperature is None else AttentionCalibration(options.temperature)
