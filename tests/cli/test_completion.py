"""Shell completion for bash: installation and suggestions."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPLETE = {"_PAIRWRIGHT_COMPLETE": "complete_bash"}


@pytest.fixture
def pairwright(tmp_path: Path) -> Path:
    """A script ``pairwright``, as an installation puts it into the path."""
    script = tmp_path / "bin" / "pairwright"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom pairwright.cli.main import run\nrun()\n")
    script.chmod(0o755)
    return script


def completed(pairwright: Path, *words: str) -> list[str]:
    env = {**os.environ, **COMPLETE, "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return subprocess.run([pairwright], env=env, capture_output=True, text=True, check=True).stdout.split()


def test_commands_options_and_choices_are_completed(pairwright: Path) -> None:
    assert completed(pairwright, "pairwright", "re") == ["retrieve", "refine", "review"]
    assert completed(pairwright, "pairwright", "generate", "neg") == ["negatives"]
    assert "--method" in completed(pairwright, "pairwright", "generate", "negatives", "--me")
    assert completed(pairwright, "pairwright", "generate", "negatives", "--method", "") == ["rules", "llm"]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_after_install_completion(tmp_path: Path, pairwright: Path) -> None:
    """In an interactive bash that reads the ~/.bashrc which the command wrote."""
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{pairwright.parent}:{os.environ['PATH']}"}
    install = "pairwright --install-completion && true"  # Typer looks for the shell that runs it; `&&` keeps bash there
    message = subprocess.run(["bash", "-c", install], env=env, capture_output=True, text=True, check=True)
    assert "bash completion installed" in message.stdout
    script = (
        f"source {tmp_path}/.bashrc; COMP_WORDS=(pairwright gen); COMP_CWORD=1; "
        "$(complete -p pairwright | sed 's/.*-F \\([^ ]*\\).*/\\1/') pairwright; echo ${COMPREPLY[@]}"
    )
    shown = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["generate"]
