"""The command ``pairwright``: one file a verb beside this one; here they are named, and errors become one line.

Verbs import what they need inside their functions, so that ``pairwright --help`` answers at once.
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
from pairwright.cli.evaluate import precomputed
from pairwright.cli.generate import annotations
from pairwright.cli.output.console import printable
from pairwright.datasets.errors import PairwrightError

app = typer.Typer(
    name="pairwright",
    help="Make, refine and pack image-text training data.\n\nStart with `pairwright demo --out demo`, then `pairwright init`.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("demo", short_help="Build a dataset from an embedded corpus.")(demo.demo)
app.command("init", short_help="Write a commented build config.")(init.init)
app.command("plan", short_help="Tell what a build would ask and cost.")(plan.plan)
app.command("build", short_help="Build a dataset as a config says.")(build.build)
app.command("serve", short_help="Build by a schedule.")(serve.serve)
app.add_typer(index.app, name="index", short_help="Build, check, extend and merge an index.")
app.command("retrieve", short_help="Search an index with queries.")(retrieve.retrieve)
app.command("fetch", short_help="Download the images of pairs.")(fetch.fetch)
app.command("filter", short_help="Leave out pairs.")(filter_pairs.filter_pairs)
app.add_typer(annotations.app, name="generate")
app.command("refine", short_help="Drop negatives that text alone betrays.")(refine.refine)
app.command("audit", short_help="Attack a set without its images.")(audit.audit)
app.command("validate", short_help="Find negatives that are true after all.")(validate.validate)
app.command("train", short_help="Train a model on shards.")(train.train)
app.add_typer(precomputed.app, name="evaluate")
app.command("review", short_help="Judge negatives by eye.")(review.review)
app.command("mix", short_help="Mix conversations of several sources.")(mix.mix)
app.command("export", short_help="Write another tool's layout.")(export.export)
app.command("inspect", short_help="Look at a dataset.")(inspect.inspect)
app.command("verify", short_help="Check a build, shards, or a LLaVA file.")(verify.verify)
app.command("diff", short_help="Tell what differs between two builds.")(diff.diff)
app.command("plugins", short_help="List generators, readers, encoders, exports.")(plugins.plugins)
app.add_typer(prompts.app, name="prompts", short_help="Look at prompts for models, and ask one of yours.")
app.add_typer(cache.app, name="cache", short_help="Look at kept answers of models, and move them.")
app.add_typer(dev.app, name="dev")
app.command("doctor", short_help="Tell what is installed, and mend it.")(doctor.doctor)


def _version(value: bool) -> None:  # noqa: FBT001 - Typer calls it so
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
    """Run the command line: exit 0 done, 1 failed, 2 wrong usage, 3 done but below the asked quality, 130 and 143 stopped."""
    _tolerate_narrow_terminals()
    try:
        with interrupts.track_command():
            app()
    except PairwrightError as error:
        _fail(str(error), error.exit_code)
    except SystemExit as end:
        if end.code == interrupts.INTERRUPTED:  # what Typer makes of Ctrl-C
            _fail(interrupts.interrupt_message(), interrupts.exit_code())
        raise
    except KeyboardInterrupt:  # while Typer itself makes ready
        _fail(interrupts.interrupt_message(), interrupts.exit_code())
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing is wrong. Closing stdout must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except BaseException as error:
        if os.environ.get("PAIRWRIGHT_DEBUG") or not (isinstance(error, Exception) or system_errors.is_panic(error)):
            raise
        kind = type(error).__name__
        internal = f"internal error ({kind}: {error}). PAIRWRIGHT_DEBUG=1 shows where; please report it."
        _fail(system_errors.system_error_message(error) or internal, 1)


def _tolerate_narrow_terminals() -> None:
    # A terminal that cannot show a letter is no failure.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str, code: int) -> None:
    for line in printable(message).splitlines():
        print(f"pairwright: {line}", file=sys.stderr)  # noqa: T201 - errors go to stderr
    sys.exit(code)
