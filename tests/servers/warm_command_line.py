"""A warm command line: one process imports what commands need, and each command runs in a fork of it.

Each is a process of its own all the same, with its own arguments, folder, environment, streams and exit status;
a module is started in it as ``python -m`` does, and it ends as Python ends, but for memory, which nobody tidies.
Shared are the imports and the data of the
language, seconds of each, and with them the seed of hashes: whether two processes write the same bytes is a question for
two of `subprocess.run`.
A fork has the settings that modules read when they are imported, so a test that changes the environment is not for it.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

import pyarrow as pa
import typer.main

from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.flows.commands.generate import GenerateRequest, run_generator
from pairwright.flows.graph import STAGES
from pairwright.flows.state.code_versions import code_hash, package_versions, source_hash

ROOT = Path(__file__).parents[2]
# What most commands import; Prefect and what asks models are left to those who use them.
IMPORTED = (
    "pairwright.cli.main",
    "pairwright.flows.build",
    "pairwright.flows.commands.config_templates",
    "pairwright.flows.commands.filter_pairs",
    "pairwright.flows.commands.generate",
    "pairwright.flows.commands.input_survey",
    "pairwright.datasets.exports.formats",
    "pairwright.datasets.mixtures.sources",
    "pairwright.datasets.verification.checks",
    "pairwright.filters.audit.verdict",
    "pairwright.generators.conversations.template_generator",
    "pairwright.generators.edits.written.checks",
    "pairwright.indexes.retrieval.retrieve",
    "pyarrow.parquet",
    "pydantic.type_adapter",
    "scipy.fft",
    "scipy.sparse",
    "typer._adapters",
    "typer._click.decorators",
)
_LONGEST = 1 << 20


class WarmCommandLine:
    """Runs commands as `subprocess.run` does with ``capture_output`` and ``text``."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door

    def run(self, arguments: Sequence[str], cwd: Path, module: str = "pairwright") -> subprocess.CompletedProcess[str]:
        """Run ``pairwright``, or another module, with these arguments in a folder."""
        order = json.dumps([[module, *arguments], str(cwd), dict(os.environ)]).encode()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            socket.send_fds(self._door, [order], [out.fileno(), err.fileno()])
            code = int(self._door.recv(64))
            return subprocess.CompletedProcess([module, *arguments], code, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def warm_command_line(*more: str) -> Iterator[WarmCommandLine]:
    """Start one that imports these modules, too; it ends with the block. What is imported makes each fork slower."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST)
    command = [sys.executable, "-m", "tests.servers.warm_command_line", str(theirs.fileno()), *more]
    with ours, subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]):
        theirs.close()
        try:
            yield WarmCommandLine(ours)
        finally:
            ours.shutdown(socket.SHUT_RDWR)


def _serve(door: socket.socket) -> str:
    """Fork a process for each order; return in such a process the module to run, and nothing at the end of orders."""
    while True:
        order, streams, _, _ = socket.recv_fds(door, _LONGEST, 2)
        if not order:
            return ""
        child = os.fork()
        if not child:
            (module, *arguments), cwd, environment = json.loads(order)
            _become(arguments, cwd, environment, streams)
            door.close()
            return str(module)
        for stream in streams:
            os.close(stream)
        door.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _become(arguments: list[str], cwd: str, environment: dict[str, str], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[0] = cwd
    sys.argv[1:] = arguments


def _unheard(_: str) -> None:
    pass


def _edit_a_caption() -> None:
    """Load what rules need: tagger, WordNet, tables of words and the edit model."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "in.jsonl"), Path(folder, "out.jsonl")
        given.write_text('{"caption": "two dogs on a red bed"}')
        run_generator(GenerateRequest("rules-negatives", {}, 0, ReadOptions(str(given)), "", out, workers=1), _unheard)


def _hash_the_code() -> None:
    """Hash all code of stages, as each build does: that takes as long as a stage."""
    source_hash()
    package_versions()
    for module in {jobs.__module__ for stage in STAGES for jobs in (stage.full, stage.incremental) if jobs}:
        code_hash(module)


def _run_as_main(module: str) -> None:
    """Do what ``python -m`` does; taking all modules apart would take longer than most of the commands."""
    code = 0
    try:
        runpy._run_module_as_main(module)  # type: ignore[attr-defined]
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    with suppress(ImportError):
        for name in sys.argv[2:]:
            importlib.import_module(name)
    _edit_a_caption()
    _hash_the_code()
    pa.array([])  # with the first it imports pandas, where there is one
    # Typer makes the tree of all commands anew for each call, which takes longer than most of the calls.
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(sys.modules[IMPORTED[0]].app)
    gc.freeze()  # what is not looked at is not copied
    if ordered := _serve(socket.socket(fileno=int(sys.argv[1]))):
        _run_as_main(ordered)
