"""Structure of the project in numbers: files and lines of code by room, imports of a command, words to avoid.

    python -m benchmarks.structure [CHECKOUT]

Compares two checkouts when it is run on each. Lines of code exclude blank lines, comments and docstrings. A module is
entered when one of its functions is called; ``generate negatives`` runs on one caption in a fresh process. The words to
avoid are those of an earlier style of writing, counted in sources, tests and docs.
"""

import ast
import io
import re
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOMS = ["datasets", "indexes", "generators", "filters", "flows", "training", "src/pairwright/cli"]
PARTS = ["generators/llm"]
WORDS = (
    r"told|tells?|mend(?:s|ed|ing)?|anew|stands?|stood|betray(?:s|ed|ing)?|reckon(?:s|ed|ing)?|company|troubles?|beside|"
    r"turn(?:s|ed)? away|take(?:s|n)? away|give(?:s|n)? away|pass(?:es|ed)? over|left out|coin's toss|take(?:s|n)? the place|"
    r"what there is|without eyes|no ceiling|(?-i:is none)|somebody|whoever|chance|said of"
)
PROBE = """
import runpy, sys, threading
entered = set()
def enter(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_globals.get("__name__", ""))
sys.argv = ["pairwright", "generate", "negatives", {input!r}, "--out", {out!r}]
threading.setprofile(enter)
sys.setprofile(enter)
try:
    runpy.run_module("pairwright", run_name="__main__")
except SystemExit:
    pass
sys.setprofile(None)
print(sum(name.startswith("pairwright.") for name in entered), sum(name.startswith("pairwright.") for name in sys.modules))
"""


def code_lines(source: str) -> int:
    """Return the number of lines that hold code: no blank lines, comments or docstrings."""
    strings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            strings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in ignored:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


def rooms(root: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield each room's name, its files, its lines of code and the number of files of its largest folder."""
    for room in [*ROOMS, *PARTS]:
        paths = sorted((root / room).rglob("*.py"))
        folders = [path.parent for path in paths]
        lines = sum(code_lines(path.read_text(encoding="utf-8")) for path in paths)
        yield room, len(paths), lines, max(folders.count(folder) for folder in set(folders))


def words(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the number of words to avoid in the sources, the tests and the docs."""
    groups = {
        "sources": [path for room in ROOMS for path in (root / room).rglob("*.py")],
        "tests": list((root / "tests").rglob("*.py")),
        "docs": [*root.glob("*.md"), *(root / "docs").rglob("*.md")],
    }
    for name, paths in groups.items():
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths if path.name != "CHANGELOG.md")
        yield name, len(re.findall(rf"\b(?:{WORDS})\b", text, re.IGNORECASE))


def modules_of_negatives(root: Path) -> tuple[int, int]:
    """Return of how many modules ``generate negatives`` calls a function, and how many it imports."""
    with tempfile.TemporaryDirectory() as folder:
        captions = Path(folder) / "captions.jsonl"
        captions.write_text('{"caption": "a man riding a brown horse on the beach"}\n', encoding="utf-8")
        probe = PROBE.format(input=str(captions), out=str(Path(folder) / "out.jsonl"))
        environment = {"PYTHONPATH": str(root / "src"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [sys.executable, "-c", probe], env=environment, check=True, capture_output=True, text=True
        )
        entered, imported = done.stdout.split()[-2:]
        return int(entered), int(imported)


def main() -> None:
    """Print the tables."""
    root = Path(sys.argv[1] if sys.argv[1:] else ".").resolve()
    print(f"{'room':<22}{'files':>8}{'code lines':>12}{'largest folder':>16}")
    total = [0, 0]
    for room, files, lines, largest in rooms(root):
        print(f"{room:<22}{files:>8}{lines:>12,}{largest:>16}")
        if room not in PARTS:
            total = [total[0] + files, total[1] + lines]
    print(f"{'all':<22}{total[0]:>8}{total[1]:>12,}")
    entered, imported = modules_of_negatives(root)
    print(f"modules of `generate negatives`: {entered} entered, {imported} imported")
    print("words to avoid: " + ", ".join(f"{name} {count:,}" for name, count in words(root)))


if __name__ == "__main__":
    main()
