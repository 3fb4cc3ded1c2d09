"""Documentation: current help, working links, existing commands, options and paths."""

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app

ROOT = Path(__file__).resolve().parents[1]


def load_tool() -> ModuleType:
    """Return ``tools/update_docs.py`` as a module; its folder is not a package."""
    spec = importlib.util.spec_from_file_location("update_docs", ROOT / "tools" / "update_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load_tool()
help_of = cache(tool.help_of)
PAGES: list[Path] = list(tool.pages())
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"^\s*(?:\$ )?pairwright(?P<rest>(?: [^\s`|#]+)*)", re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings in GitHub's form."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def calls(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands shown on a page, each with its options."""
    shown = [*FENCE.findall(text), *INLINE.findall(FENCE.sub("", text))]
    for match in CALL.finditer("\n".join(shown)):
        words = match["rest"].split()
        command = "pairwright"
        while words and re.fullmatch("[a-z][a-z-]*", words[0]) and tool_has_deeper(command):
            command += f" {words.pop(0)}"
        yield command, [word.partition("=")[0] for word in words if word.startswith("--")]


def tool_has_deeper(command: str) -> bool:
    return any(known.startswith(f"{command} ") for known in tool.commands())


@pytest.mark.parametrize("verb", tool.verbs())
def test_every_verb_has_a_page_with_the_help_of_all_its_commands(verb: str) -> None:
    text = (ROOT / "docs" / "verbs" / f"{verb}.md").read_text(encoding="utf-8")
    for command in sorted(tool.commands()):
        if command.split()[1:2] == [verb]:
            assert f"<!-- help:{command} -->" in text


@pytest.mark.parametrize("command", sorted(tool.commands()))
def test_a_default_of_0_is_a_number_or_is_explained(command: str) -> None:
    options = re.findall(r"^  (--[\w-]+)(.*?)(?=^  -|\Z)", help_of(command), re.DOTALL | re.MULTILINE)
    texts = {option: " ".join(help_text.split()) for option, help_text in options}
    bare = {
        option
        for option, text in texts.items()
        if re.search(r"default: 0(\.0)?[];]", text) and not re.search(r"\b0( =|:)", text)
    }
    assert bare <= {"--seed", "--min-success"}


def test_the_plugins_page_lists_all_built_in_plugins() -> None:
    printed = CliRunner().invoke(app, ["plugins"]).stdout.splitlines()
    built_in = [line.rstrip() for line in printed if "  pairwright  " in line]
    shown = (ROOT / "docs" / "verbs" / "plugins.md").read_text(encoding="utf-8")
    assert len(built_in) > 20
    assert [line for line in built_in if line not in shown] == []


@pytest.mark.parametrize("command", sorted(tool.commands()))
def test_no_line_of_a_command_list_is_truncated(command: str) -> None:
    assert not re.search(r"^  \S.*\.\.\.$", help_of(command).partition("\nCommands:")[2], re.MULTILINE)


def test_every_verb_page_belongs_to_a_verb() -> None:
    assert {page.stem for page in (ROOT / "docs" / "verbs").glob("*.md")} == set(tool.verbs())


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_generated_parts_are_fresh(page: Path) -> None:
    """Stale: `python -m tools.update_docs` rewrites them."""
    text = page.read_text(encoding="utf-8")
    assert tool.refreshed(text) == text


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_resolve(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_shown_commands_and_options_exist(page: Path) -> None:
    for command, options in calls(page.read_text(encoding="utf-8")):
        assert command in tool.commands(), command
        help_text = help_of(command)
        for option in options:
            assert re.search(rf"{option}\b", help_text), f"{command} {option}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_shown_batch_scripts_begin_as_sbatch_demands(page: Path) -> None:
    """Slurm refuses a script whose first line does not name its interpreter."""
    blocks = FENCE.findall(page.read_text(encoding="utf-8"))
    scripts = [block.partition("\n")[2] for block in blocks if "\n#SBATCH" in block]
    assert all(script.startswith("#!") for script in scripts)


def test_commands_are_found_in_code_blocks_and_inline_code() -> None:
    page = "pairwright makes data; `pairwright bild x`\n```\n$ pairwright index build a --out=b  # c\n```\n"
    assert list(calls(page)) == [("pairwright index build", ["--out"]), ("pairwright bild", [])]


def test_every_page_is_linked_from_the_readme_directly_or_indirectly() -> None:
    reached, pending = set(), [ROOT / "README.md"]
    while pending:
        page = pending.pop()
        if page in reached:
            continue
        reached.add(page)
        links = [(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(page))]
        pending += [link for link in links if link.suffix == ".md" and link.is_file()]
    assert set(PAGES) <= reached


def test_the_index_links_the_page_of_every_verb() -> None:
    linked = set(LINK.findall(prose(ROOT / "docs" / "index.md")))
    assert {f"verbs/{verb}.md" for verb in tool.verbs()} <= linked


def test_paths_named_in_contributing_exist() -> None:
    """A path is inline code with a slash: a folder ends in one, a file has an ending."""
    spans = INLINE.findall(prose(ROOT / "CONTRIBUTING.md"))
    paths = [span for span in spans if re.fullmatch(r"[\w./-]+/([\w-]+\.\w+)?", span)]
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_first_screen_of_the_readme_is_at_most_40_lines() -> None:
    """The first screen ends where the second section begins."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    sections = [number for number, line in enumerate(lines) if line.startswith("## ")]
    assert sections[1] <= 40


def test_quickstarts_are_at_most_one_screen_of_text() -> None:
    for page in (ROOT / "docs" / "quickstart").glob("*.md"):
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 60, page.name


def test_the_example_generator_has_under_thirty_lines_and_is_shown_unchanged() -> None:
    example = (ROOT / "tests" / "plugins" / "miscount.py").read_text(encoding="utf-8")
    assert len(example.splitlines()) < 30
    assert example.strip() in (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def test_a_part_with_an_unknown_name_is_an_error() -> None:
    for mark in ("help:pairwright bild", "file:tests/plugins/nothing.py", "table:nothing"):
        with pytest.raises(ValueError, match=r"^no "):
            tool.refreshed(f"<!-- {mark} -->\n<!-- end -->\n")


def test_a_stale_part_is_updated_and_other_text_is_unchanged() -> None:
    page = "before\n<!-- help:pairwright verify -->\noutdated\n<!-- end -->\nafter\n"
    updated = tool.refreshed(page)
    assert updated != page
    assert "Usage: pairwright verify" in updated
    assert updated.startswith("before\n")
    assert updated.endswith("\nafter\n")
    assert tool.refreshed(updated) == updated


def test_shown_help_refers_to_the_page_of_model_options_and_keeps_all_others() -> None:
    help_text = "Usage: x\n\nInput:\n  --a  First.\n\nModel (--method llm):\n  --model  Name.\n           More.\n\nOutput:\n  --b\n"
    assert tool.shorten_model_options(help_text) == (
        "Usage: x\n\nInput:\n  --a  First.\n\n"
        "Model (--method llm):\n  See docs/concepts/models.md#options.\n\nOutput:\n  --b\n"
    )


def test_help_does_not_depend_on_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = set()
    for width in ("40", "200"):
        monkeypatch.setenv("COLUMNS", width)
        texts.add(tool.refreshed("<!-- help:pairwright generate negatives -->\n<!-- end -->"))
    assert len(texts) == 1
