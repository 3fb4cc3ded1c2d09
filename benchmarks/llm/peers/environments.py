"""The peers, and the environment that each stands in: made once in a cache folder, with pip, at pinned versions."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


@dataclass(frozen=True)
class Peer:
    """One way to do the job.

    Attributes:
        script: in this folder.
        variant: told to it.
        pins: what pip installs for it; empty: it runs where this program does.
        env: variables that it needs; ``{site}`` stands for its folder of packages.
    """

    script: str
    variant: str = "-"
    pins: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


# Without the extra `inference`, which brings vLLM, SGLang and their CUDA: 8 GiB of no use to a remote endpoint.
_DATATROVE = ("datatrove[io]==0.10.1", "aiohttp==3.14.5", "aiofiles==25.1.0", "aiosqlite==0.22.1", "httpx==0.28.1")
# Its token counts want a file from the network, which litellm, one of its dependencies, carries in its package.
_TOKENS = {"TIKTOKEN_CACHE_DIR": "{site}/litellm/litellm_core_utils/tokenizers"}
# It imports requests, which newer dependencies do not bring; of openai 3 it would log every request.
_DISTILABEL = ("distilabel[openai]==1.5.3", "requests==2.34.2", "openai==2.30.0")

PEERS: dict[str, Peer] = {
    "pairwright": Peer("ask_pairwright.py", "direct"),
    "pairwright-sdk": Peer("ask_pairwright.py", "sdk"),
    "openai": Peer("ask_openai.py", "httpx"),
    "openai-aiohttp": Peer("ask_openai.py", "aiohttp"),
    "datatrove": Peer("ask_datatrove.py", "plain", _DATATROVE),
    "datatrove-checkpoints": Peer("ask_datatrove.py", "checkpoints", _DATATROVE),
    "curator": Peer("ask_curator.py", "-", ("bespokelabs-curator==0.1.31",), _TOKENS),
    "DataDesigner": Peer("ask_datadesigner.py", "-", ("data-designer==0.9.6",)),
    "distilabel": Peer("ask_distilabel.py", "-", _DISTILABEL),
    "litellm": Peer("ask_litellm.py", "-", ("litellm==1.108.7",), _TOKENS),
}

_QUIET = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "NEMO_TELEMETRY_ENABLED": "false",
    "TELEMETRY_ENABLED": "false",
    "OPENAI_API_KEY": "none",
    "PYTHONPATH": str(ROOT),  # where `benchmarks` is found from
    "TOKENIZERS_PARALLELISM": "false",
}


class CannotBeUsed(Exception):  # noqa: N818 - reads as what it is
    """A peer cannot be installed here; the text says why."""


def python_of(peer: Peer, cache: Path) -> Path:
    """Return the interpreter of a peer, whose environment is made where it is missing.

    Raises:
        CannotBeUsed: pip fails; the text is its last line.
    """
    if not peer.pins:
        return Path(sys.executable)
    folder = _folder(peer, cache)
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return python
    print(f"installing {' '.join(peer.pins)} ...", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *peer.pins],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CannotBeUsed((done.stderr.strip().splitlines() or [f"pip: exit code {done.returncode}"])[-1])
    ready.touch()
    return python


def environment_of(peer: Peer, cache: Path) -> dict[str, str]:
    """Return its variables: no telemetry, no downloads, a home of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    if not peer.pins:
        return kept | _QUIET | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}  # this checkout
    home = _folder(peer, cache) / "home"
    home.mkdir(exist_ok=True)
    site = next(_folder(peer, cache).glob("lib/python3*/site-packages"))
    return kept | _QUIET | {"HOME": str(home)} | {name: text.format(site=site) for name, text in peer.env.items()}


def versions_of(peer: Peer, cache: Path) -> str:
    """Return the versions that matter, as one line."""
    python = python_of(peer, cache)
    wanted = [
        "openai",
        "aiohttp",
        "httpx",
        "httpx2",
        "litellm",
        *(pin.split("=")[0].split("[")[0] for pin in peer.pins),
    ]
    code = (
        "import importlib.metadata as m, json, sys\n"
        "have = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
        f"print(json.dumps({{n: have[n] for n in dict.fromkeys({wanted!r}) if n in have}}))"
    )
    found = json.loads(subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE).stdout)
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def _folder(peer: Peer, cache: Path) -> Path:
    name = peer.pins[0].split("=")[0].split("[")[0]
    pins = "\n".join((*peer.pins, sys.version))
    return cache / f"{name}-{hashlib.sha256(pins.encode()).hexdigest()[:8]}"
