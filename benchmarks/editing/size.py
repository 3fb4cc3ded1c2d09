"""Size of the rule engine: lines, words and numbers in its code, rows of its tables.

    python -m benchmarks.editing.size [CHECKOUT] [--list]

Words belong in the tables of `generators/lexicon`, and a number that is a choice has its reason beside it. Code is
parsed, not searched: what counts is a string in a comparison, in a collection or in a test of a prefix or suffix. It is
an English word if a table of the lexicon has it as a word and `IDENTIFIERS` does not.
"""

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from pairwright.generators.lexicon.tables import DATA, cell_words, read_rows

FOLDERS: Final = ("edits", "lexicon", "captions")
"""Of `generators/`, in the present layout."""
OLD_FOLDERS: Final = ("rules", "words", "knowledge", "edit_checks")
"""The same, before the engine was one of slots and constraints; a few of its modules did not survive in another form."""
_NAMES: Final = """
object attribute relation replace swap add shuffle noun adjective verb preposition swapped
word words class side part place same other others path act subject body reason with where end left right
plural singular mass male female top front back inside below above far near count color colour size material shape
state male group text title CD
"""
IDENTIFIERS: Final = frozenset(_NAMES.split())
"""Words that are also names: of types of edits, of columns, cells and features of tables, of a tag."""
_TESTS: Final = frozenset({"startswith", "endswith", "removeprefix", "removesuffix", "isdisjoint"})
_WORD_COLUMNS: Final = ("word", "words", "noun", "nouns", "phrase", "verb", "form", "others")


class Found(NamedTuple):
    """Words or a number in code.

    Attributes:
        path: module, relative to `generators/`.
        kind: "list in a function", "comparison in a function", "list in a module", or "constant".
        has_reason: whether a comment or a docstring says why; of constants only.
    """

    path: str
    line: int
    kind: str
    text: str
    has_reason: bool = False


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """Return the words of the lexicon's tables that are no identifiers."""
    tables = (path.stem for path in DATA.glob("*.tsv") if not path.stem.endswith("_weights"))
    cells = (row.get(column, "") for name in tables for row in read_rows(name) for column in _WORD_COLUMNS)
    words = {word for cell in cells for part in cell_words(cell) for word in (part, *part.split())}
    return frozenset(word for word in words if word.isalpha()) - IDENTIFIERS


def modules(checkout: Path) -> list[Path]:
    """Return the modules of the rule engine of a checkout, of the present or of the old layout."""
    root = checkout / "generators"
    folders = FOLDERS if (root / "lexicon").is_dir() else OLD_FOLDERS
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


def occurrences(path: Path, root: Path) -> list[Found]:
    """Return the words and constants in a module."""
    source = path.read_text(encoding="utf-8")
    tree, name = ast.parse(source), path.relative_to(root).as_posix()
    found = [Found(name, node.lineno, *each) for node, each in _words_in(tree, inside=False)]
    return sorted({*found, *_constants(tree, source.splitlines(), name)}, key=lambda each: each.line)


def _words_in(node: ast.AST, *, inside: bool) -> Iterator[tuple[ast.expr, tuple[str, str]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and (words := _words_of(child)):
            is_list = len(words) > 1 or not isinstance(child, ast.Compare | ast.Call)
            kind = "list" if is_list else "comparison"
            if inside or is_list:
                yield child, (f"{kind} in a {'function' if inside else 'module'}", " ".join(words))
            continue
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _words_in(child, inside=inside or is_function)


def _words_of(node: ast.expr) -> list[str]:
    """Return the words of a comparison, a collection of strings, or a test of a prefix or suffix."""
    match node:
        case ast.Compare():
            parts = [node.left, *node.comparators]
        case ast.Set() | ast.Tuple() | ast.List():
            parts = node.elts
        case ast.Call(func=ast.Attribute(attr=name)) if name in _TESTS:
            parts = node.args
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return [word for word in text.split() if word in english_words()]
        case _:
            return []
    flat = [
        each
        for part in parts
        for each in (part.elts if isinstance(part, ast.Set | ast.Tuple | ast.List) else [part])
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    words = [str(each.value) for each in flat]
    return [word for word in words if any(part in english_words() for part in word.split())]


def _constants(tree: ast.Module, lines: list[str], name: str) -> Iterator[Found]:
    """Yield the numeric constants of a module."""
    for at, node in enumerate(tree.body):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        numbers = value.elts if isinstance(value, ast.Tuple) else [value]
        if not all(_is_number(number) for number in numbers):
            continue
        following = tree.body[at + 1] if at + 1 < len(tree.body) else None
        documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        has_reason = documented or "#" in lines[node.lineno - 1] or lines[node.lineno - 2].lstrip().startswith("#")
        yield Found(name, node.lineno, "constant", lines[node.lineno - 1], has_reason)


def _is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def main() -> None:
    """Print the size of the rule engine of a checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--list", action="store_true", help="print each occurrence")
    args = parser.parse_args()
    root, paths = args.checkout / "generators", modules(args.checkout)
    found = [each for path in paths for each in occurrences(path, root)]
    if args.list:
        for each in found:
            print(f"{each.path}:{each.line}: {each.kind}: {each.text}" + (" (has a reason)" if each.has_reason else ""))
    kinds = Counter(
        f"{each.kind} {'with' if each.has_reason else 'without'} a reason" if each.kind == "constant" else each.kind
        for each in found
    )
    tables = [path for path in root.rglob("*.tsv") if not path.stem.endswith("_weights")]
    rows = sum(
        bool(line.strip()) and not line.startswith("#") for path in tables for line in path.read_text().splitlines()
    ) - len(tables)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    print(f"modules {len(paths)}\nlines {lines}\ntables {len(tables)}\nrows of tables {rows}")
    for kind, number in sorted(kinds.items()):
        print(f"{kind} {number}")


if __name__ == "__main__":
    main()
