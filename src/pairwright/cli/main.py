"""The command ``pairwright``: the table of verbs, one module each, and the exit of a failed command with one line.

Verbs import what they need inside their functions, so that ``pairwright --help`` starts fast.
"""

import io
import os
import sys
from typing import Annotated

import typer

from pairwright import __version__
from pairwright.cli import (
    audit,
    build,
    cache,
    demo,
    dev,
    diff,
    doctor,
    export,
    fetch,
    filter_pairs,
    index,
    init,
    inspect,
    mix,
    plan,
    plugins,
    prompts,
    refine,
    retrieve,
    review,
    serve,
    train,
    validate,
    verify,
)
from pairwright.cli.errors import interrupts, system_errors
from pairwright.cli.evaluate import app as evaluate
from pairwright.cli.generate import app as generate
from pairwright.cli.options.declarations import App
from pairwright.cli.options.standard_input import hide_copy
from pairwright.cli.output.console import printable
from pairwright.datasets.errors import PairwrightError

app = App(
    "Make, refine and pack image-text training data.\n\n"
    "Start with `pairwright demo --out demo`: examples that read demo then work as shown. Next: `pairwright init`.",
    name="pairwright",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("plan")(plan.plan)
app.command("build")(build.build)
app.command("serve")(serve.serve)
app.add_typer(index.app, name="index")
app.command("retrieve")(retrieve.retrieve)
app.command("fetch")(fetch.fetch)
app.command("filter")(filter_pairs.filter_pairs)
app.add_typer(generate.app, name="generate")
app.command("refine")(refine.refine)
app.command("audit")(audit.audit)
app.command("validate")(validate.validate)
app.command("train")(train.train)
app.add_typer(evaluate.app, name="evaluate")
app.command("review")(review.review)
app.command("mix")(mix.mix)
app.command("export", cls=export.ExportCommand)(export.export)
app.command("inspect")(inspect.inspect)
app.command("verify")(verify.verify)
app.command("diff")(diff.diff)
app.command("plugins")(plugins.plugins)
app.add_typer(prompts.app, name="prompts")
app.add_typer(cache.app, name="cache")
app.add_typer(dev.app, name="dev")
app.command("doctor")(doctor.doctor)


def _version(value: bool) -> None:  # noqa: FBT001 - called by Typer
    if value:
        typer.echo(f"pairwright {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


def run() -> None:
    """Run the command line: exit with 0 done, 1 failed, 2 wrong usage, 3 below the target, 130 or 143 interrupted."""
    _tolerate_narrow_terminals()
    try:
        with interrupts.track_command():
            app()
    except PairwrightError as error:
        _fail(hide_copy(str(error)), error.exit_code)
    except SystemExit as end:
        if end.code == interrupts.INTERRUPTED:  # Typer's exit for Ctrl-C
            _fail(interrupts.interrupt_message(), interrupts.exit_code())
        raise
    except KeyboardInterrupt:  # before Typer runs the command
        _fail(interrupts.interrupt_message(), interrupts.exit_code())
    except BrokenPipeError:
        # The reader (head, less) has exited: no error. Closing stdout must not raise either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except BaseException as error:
        if os.environ.get("PAIRWRIGHT_DEBUG") or not (isinstance(error, Exception) or system_errors.is_panic(error)):
            raise
        kind = type(error).__name__
        internal = f"internal error ({kind}: {error}). Set PAIRWRIGHT_DEBUG=1 for the traceback; please report it."
        resource = system_errors.system_error_message(error)
        _fail(f"{resource} {interrupts.describe_work()}" if resource else internal, 1)


def _tolerate_narrow_terminals() -> None:
    """Escape characters that the encoding of the terminal lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str, code: int) -> None:
    for line in printable(message).splitlines():
        print(f"pairwright: {line}", file=sys.stderr)  # noqa: T201 - errors go to stderr
    sys.exit(code)
