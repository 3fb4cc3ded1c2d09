"""The documentation says what the code says: no stale help, no dead link, no command that is not there."""

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
    """Return ``tools/update_docs.py``; the folder is no package that tests could import."""
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
    """Return a page without its blocks of code, whose brackets are not links."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def calls(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield every call of the command line that a page shows: the command, and its options."""
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
def test_a_default_of_0_is_a_number_or_says_what_it_stands_for(command: str) -> None:
    options = re.findall(r"^  (--[\w-]+)(.*?)(?=^  -|\Z)", help_of(command), re.DOTALL | re.MULTILINE)
    told = {option: " ".join(help_text.split()) for option, help_text in options}
    bare = {
        option
        for option, text in told.items()
        if re.search(r"default: 0(\.0)?[];]", text) and not re.search("0(:| =)", text)
    }
    assert bare <= {"--seed", "--min-success"}


def test_the_page_of_plugins_names_all_that_come_along() -> None:
    told = CliRunner().invoke(app, ["plugins"]).stdout.splitlines()
    shown = (ROOT / "docs" / "verbs" / "plugins.md").read_text(encoding="utf-8")
    assert [line for line in told if "  pairwright  " in line and line not in shown] == []


@pytest.mark.parametrize("command", sorted(tool.commands()))
def test_no_line_of_a_list_of_commands_is_cut_short(command: str) -> None:
    assert not re.search(r"^  \S.*\.\.\.$", help_of(command).partition("\nCommands:")[2], re.MULTILINE)


def test_every_page_of_a_verb_is_of_a_verb_that_exists() -> None:
    assert {page.stem for page in (ROOT / "docs" / "verbs").glob("*.md")} == set(tool.verbs())


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_generated_parts_are_fresh(page: Path) -> None:
    """Stale: `python -m tools.update_docs` rewrites them."""
    text = page.read_text(encoding="utf-8")
    assert tool.refreshed(text) == text


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        aimed = (page.parent / path).resolve() if path else page
        assert aimed.exists(), target
        assert not anchor or anchor in anchors(aimed), target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_only_commands_and_options_that_exist_are_shown(page: Path) -> None:
    for command, options in calls(page.read_text(encoding="utf-8")):
        assert command in tool.commands(), command
        help_text = help_of(command)
        for option in options:
            assert re.search(rf"{option}\b", help_text), f"{command} {option}"


def test_calls_are_found_in_blocks_and_in_lines() -> None:
    page = "pairwright makes data; `pairwright bild x`\n```\n$ pairwright index build a --out=b  # c\n```\n"
    assert list(calls(page)) == [("pairwright index build", ["--out"]), ("pairwright bild", [])]


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        links = [(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(page))]
        ahead += [link for link in links if link.suffix == ".md" and link.is_file()]
    assert set(PAGES) <= reached


def test_the_example_generator_takes_under_thirty_lines() -> None:
    example = (ROOT / "tests" / "plugins" / "miscount.py").read_text(encoding="utf-8")
    assert len(example.splitlines()) < 30
    for page in ("CONTRIBUTING.md", "docs/extending.md"):
        assert example.strip() in (ROOT / page).read_text(encoding="utf-8")


def test_a_part_that_names_nothing_is_an_error() -> None:
    for mark in ("help:pairwright bild", "file:tests/plugins/nothing.py", "table:nothing"):
        with pytest.raises(ValueError, match=r"^no "):
            tool.refreshed(f"<!-- {mark} -->\n<!-- end -->\n")


def test_a_stale_part_is_found_and_mended_and_the_rest_is_left_alone() -> None:
    page = "before\n<!-- help:pairwright verify -->\nlong ago\n<!-- end -->\nafter\n"
    mended = tool.refreshed(page)
    assert mended != page
    assert "Usage: pairwright verify" in mended
    assert mended.startswith("before\n")
    assert mended.endswith("\nafter\n")
    assert tool.refreshed(mended) == mended


def test_help_is_as_wide_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = set()
    for width in ("40", "200"):
        monkeypatch.setenv("COLUMNS", width)
        texts.add(tool.refreshed("<!-- help:pairwright generate negatives -->\n<!-- end -->"))
    assert len(texts) == 1
