"""Third-party readers and exports, installed from the code blocks of docs/extending.md."""

import csv
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pairwright.cli.main import app
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.exports.formats import EXPORTS
from pairwright.datasets.readers.formats import READERS, guess_format
from pairwright.datasets.shards.writing import write_shards
from tests.datasets.sample_builders import pair, picture, sample

PAGE = Path(__file__).parents[2] / "docs/extending.md"
CAPTIONS = "1.jpg#0\tTwo dogs on a red bed.\n1.jpg#1\tA brown dog near a small cat.\n"
Install = Callable[..., None]


def code_block(module: str) -> str:
    """Return the Python block of the page that shows ``module``."""
    shown = re.search(rf"<!-- file:tests/plugins/{module}\.py -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown, f"{PAGE} does not show {module}.py"
    return shown[1]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that puts a distribution with one of the documented modules on the path."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    installed = []

    def put(group: str, name: str, target: str, distribution: str = "plugin") -> None:
        module = target.partition(":")[0]
        installed.append(module)
        if not target.startswith("nowhere"):
            (site / f"{module}.py").write_text(code_block(module))
        info = site / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pairwright.{group}]\n{name} = {target}\n")
        importlib.invalidate_caches()

    yield put
    for module in installed:
        sys.modules.pop(module, None)


@pytest.fixture
def reader(install: Install, tmp_path: Path) -> Path:
    """Install the documented reader and return a file of its format."""
    install("readers", "flickr", "flickr_captions:READER")
    path = tmp_path / "results.token"
    path.write_text(CAPTIONS)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("module", ["flickr_captions", "open_clip_table"])
def test_a_documented_plugin_takes_fewer_than_thirty_lines(module: str) -> None:
    assert len(code_block(module).splitlines()) < 30


@pytest.mark.parametrize(
    ("group", "name", "target", "kind"),
    [
        ("readers", "flickr", "flickr_captions:READER", "reader"),
        ("exports", "open-clip", "open_clip_table:EXPORT", "export"),
    ],
)
def test_an_installed_plugin_is_listed_without_being_imported(
    install: Install, group: str, name: str, target: str, kind: str
) -> None:
    install(group, name, target)
    rows = json.loads(run("plugins", "--json").stdout)["plugins"]
    assert {"kind": kind, "name": name, "from": "plugin", "about": target} in rows
    assert target.partition(":")[0] not in sys.modules


@pytest.mark.parametrize("options", [["--format", "flickr"], []], ids=["by name", "by file ending"])
def test_generate_reads_a_file_of_an_installed_reader(reader: Path, options: list[str], tmp_path: Path) -> None:
    out = tmp_path / "negatives.jsonl"
    result = run("generate", "negatives", reader, *options, "--out", out)
    assert result.exit_code == 0, result.output
    captions = {json.loads(line)["caption"] for line in out.read_text().splitlines()}
    assert captions == {line.split("\t")[1] for line in CAPTIONS.splitlines()}


def test_an_installed_reader_is_found_by_file_ending_under_the_name_of_its_entry_point(
    install: Install, tmp_path: Path
) -> None:
    install("readers", "another-name", "flickr_captions:READER")
    (tmp_path / "results.token").write_text(CAPTIONS)
    result = run("generate", "negatives", tmp_path / "results.token", "--out", tmp_path / "negatives.jsonl")
    assert result.exit_code == 0, result.output


def test_rows_that_an_installed_reader_rejects_are_counted(reader: Path, tmp_path: Path) -> None:
    reader.write_text(CAPTIONS + "a line without a tab\n")
    result = run("filter", reader, "--min-words", 1, "--on-error", "skip", "--out", tmp_path / "kept.parquet", "--json")
    assert json.loads(result.stdout)["rejected"] == {"missing_caption": 1}


def test_a_folder_is_read_with_an_installed_reader_by_name(reader: Path, tmp_path: Path) -> None:
    folder = tmp_path / "captions"
    folder.mkdir()
    reader.rename(folder / reader.name)
    result = run("filter", folder, "--min-words", 1, "--format", "flickr", "--out", tmp_path / "kept.parquet", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["kept"] == 2


def test_an_installed_reader_does_not_change_how_known_files_are_read(reader: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"caption": "a dog"}\n')
    assert guess_format(tmp_path / "a.jsonl") == "jsonl"
    assert "flickr_captions" not in sys.modules
    assert guess_format(reader) == "flickr"


def test_two_readers_with_one_file_ending_are_an_error_that_names_both(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install("readers", "flickr", "flickr_captions:READER")
    install("readers", "flickr30k", "flickr_captions:OTHER", "another-plugin")
    module = importlib.import_module("flickr_captions")
    monkeypatch.setattr(module, "OTHER", replace(module.READER, name="flickr30k"), raising=False)
    (tmp_path / "results.token").write_text(CAPTIONS)
    with pytest.raises(InputError, match=r"flickr, flickr30k.*--format"):
        guess_format(tmp_path / "results.token")


def test_a_json_file_that_no_built_in_reader_recognises_is_sniffed_by_installed_ones(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install("readers", "flickr", "flickr_captions:READER")
    module = importlib.import_module("flickr_captions")
    monkeypatch.setattr(module, "READER", replace(module.READER, sniff_json=lambda data: "captions" in data))
    (tmp_path / "a.json").write_text('{"captions": {}}')
    assert guess_format(tmp_path / "a.json") == "flickr"
    (tmp_path / "b.json").write_text('[{"captions": "a dog"}]')
    assert guess_format(tmp_path / "b.json") == "json"


def test_export_writes_the_format_of_an_installed_export(install: Install, tmp_path: Path) -> None:
    install("exports", "open-clip", "open_clip_table:EXPORT")
    write_shards([sample(number, image=picture()) for number in range(2)], tmp_path / "shards")
    out = tmp_path / "train.tsv"
    result = run("export", tmp_path / "shards", "--to", "open-clip", "--out", out)
    assert result.exit_code == 0, result.output
    with out.open(newline="", encoding="utf-8") as handle:
        header, *rows = csv.reader(handle, delimiter="\t")
    assert header == ["filepath", "title"]
    assert rows == [[f"{pair(n).key}.jpg", f"a red circle above {n} squares"] for n in range(2)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--out", "train.json"], r"ends in \.tsv"),
        (["--out", "train.tsv", "--samples", "5"], "--samples and --megabytes are for webdataset|hf"),
        (["--out", "train.tsv", "--image-format", "png"], "open-clip writes no images"),
    ],
)
def test_options_that_an_installed_export_does_not_use_are_refused(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], problem: str
) -> None:
    install("exports", "open-clip", "open_clip_table:EXPORT")
    write_shards([sample(0, image=picture())], tmp_path / "shards")
    monkeypatch.chdir(tmp_path)
    result = run("export", "shards", "--to", "open-clip", *options)
    assert isinstance(result.exception, UsageError)
    assert re.search(problem, str(result.exception))


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("nowhere_at_all:READER", "cannot be loaded"),
        ("flickr_captions:nothing", "cannot be loaded"),
        ("flickr_captions:read", "is a function; expected a Reader"),
    ],
)
def test_a_reader_that_cannot_be_used_is_one_clear_error(install: Install, target: str, problem: str) -> None:
    install("readers", "flickr", target)
    with pytest.raises(UsageError, match=rf"reader flickr \({target}\) {problem}"):
        READERS.get("flickr")


def test_a_plugin_with_a_built_in_name_is_an_error_that_names_its_distribution(install: Install) -> None:
    install("exports", "llava", "open_clip_table:EXPORT", "taken")
    with pytest.raises(UsageError, match=r"the export name 'llava' is used more than once \(pairwright, taken\)"):
        EXPORTS.get("llava")


def test_the_help_of_export_names_the_built_in_formats() -> None:
    # Names with a hyphen may be broken at it.
    assert ",".join(EXPORTS.built_in) in "".join(run("export", "--help").output.split())


def test_the_documented_layout_is_recognised_by_its_content(install: Install, tmp_path: Path) -> None:
    install("layouts", "yes-no", "yes_no:LAYOUT")
    row = {"picture": "7.jpg", "yes": "a red cup", "no": "a blue cup"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    done = run("refine", tmp_path / "rows.jsonl", "--out", tmp_path / "out.jsonl", "--json")
    assert done.exit_code == 3, done.output  # one row is too few to be kept
    (written,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert [written[name] for name in ("image", "caption", "negative")] == list(row.values())
    assert "yes-no" in run("plugins").stdout
