"""A third-party generator as CONTRIBUTING shows it: found, listed, run alone and in a build."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pairwright.cli.main import app
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.samples import Sample
from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.registry import GENERATORS, Materials, build_generator
from tests.generators.rule_fixtures import pair_of, small_pool, tokens_of

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that puts a distribution with the example in it on the path."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "miscount.py").write_text(Path(__file__).with_name("miscount.py").read_text())
    monkeypatch.syspath_prepend(str(site))

    def put(distribution: str, *, name: str = "miscount", target: str = "miscount:Miscount") -> None:
        info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[pairwright.generators]\n{name} = {target}\n")
        importlib.invalidate_caches()

    yield put
    sys.modules.pop("miscount", None)


def materials() -> Materials:
    return Materials(load_wordnet(), small_pool(), seed=0)


def annotate(caption: str, *others: str, seed: int = 0) -> Annotation:
    """Return what the installed example makes of a caption."""
    pair, maker = pair_of(caption, *others), build_generator("miscount", materials(), {})
    (row,) = maker.annotate(pair, tokens_of(caption), make_rng(seed, 0, maker.name, maker.version, pair.key))
    return row


def test_an_installed_generator_is_listed_with_the_distribution_it_comes_from(install: Install) -> None:
    install("miscount-plugin")
    result = CliRunner().invoke(app, ["plugins", "--json"])
    rows = [row for row in json.loads(result.stdout)["plugins"] if row["name"] == "miscount"]
    assert rows == [
        {"kind": "generator", "name": "miscount", "from": "miscount-plugin", "about": "miscount:Miscount"}
    ]  # fmt: skip


def test_listing_imports_nothing_of_a_third_party(install: Install) -> None:
    install("miscount-plugin")
    assert ("generator", "miscount", "miscount-plugin", "miscount:Miscount") in GENERATORS.rows()
    assert "miscount" not in sys.modules


def test_the_example_changes_one_number_and_says_where(install: Install) -> None:
    install("miscount-plugin")
    row = annotate("Two dogs on a bed.")
    (edit,) = row.edits
    assert row.text in {"Three dogs on a bed.", "Four dogs on a bed.", "Five dogs on a bed."}
    assert (row.status, edit.before, edit.after) == ("kept", "Two", row.text.split()[0])
    assert edit.before_span == (0, 3)


def test_the_example_never_says_a_number_that_another_caption_of_the_image_says(install: Install) -> None:
    install("miscount-plugin")
    made = {annotate("two dogs on a bed", "three dogs and four cats", seed=seed).text for seed in range(20)}
    assert made == {"five dogs on a bed"}


@pytest.mark.parametrize("others", [(), ("two of three, four or five",)], ids=["no number", "no number is free"])
def test_the_example_answers_a_caption_it_cannot_edit_with_a_rejection(install: Install, others: tuple[str]) -> None:
    install("miscount-plugin")
    row = annotate("two dogs on a bed" if others else "a dog on a bed", *others)
    assert (row.status, row.reason, row.text) == ("rejected", "no_edit", "")


def test_options_reach_the_generator_and_unknown_ones_are_refused(install: Install) -> None:
    install("miscount-plugin")
    maker = build_generator("miscount", materials(), {"counts": ["two", "nine"]})
    (row,) = maker.annotate(pair_of("two dogs"), tokens_of("two dogs"), make_rng(0))
    assert row.text == "nine dogs"
    with pytest.raises(UsageError, match="generator miscount does not take the options"):
        build_generator("miscount", materials(), {"numbers": 3})


@pytest.mark.parametrize("second", ["miscount", "rules-negatives"], ids=["third parties", "a built-in one"])
def test_a_name_that_is_taken_twice_is_an_error_that_names_the_owners(install: Install, second: str) -> None:
    install("plugin-one", name=second)
    if second == "miscount":
        install("plugin-two", name=second)
    with pytest.raises(UsageError, match=rf"'{second}' is used more than once \(.*plugin-one"):
        build_generator(second, materials(), {})


@pytest.mark.parametrize("target", ["nowhere_at_all:Miscount", "miscount:Nothing"])
def test_a_generator_that_cannot_be_loaded_is_one_clear_error(install: Install, target: str) -> None:
    install("broken-plugin", target=target)
    with pytest.raises(UsageError, match=r"generator miscount \(.*\) cannot be loaded"):
        build_generator("miscount", materials(), {})


def test_a_build_that_names_the_generator_packs_what_it_made(install: Install, tmp_path: Path) -> None:
    install("miscount-plugin")
    captions = [f"{count} {what} on a bed" for count in ("two", "three", "a") for what in ("dogs", "cats")]
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions))
    config = {
        "name": "third-party",
        "input": {"path": str(tmp_path / "captions.jsonl")},
        "generators": [{"name": "miscount", "options": {"counts": ["two", "three"]}}],
        "workers": 1,
    }
    manifest = build(parse_config(config, where="test"), tmp_path / "out", prefect=False)
    counts = manifest["stages"]["miscount"]
    assert (counts["candidates"], counts["kept"], counts["rejected"]) == (6, 4, {"no_edit": 2})
    shards = find_shards(tmp_path / "out" / "shards")
    assert {text_of(sample) for shard in shards for sample in read_shard(shard)} == {
        ("two dogs on a bed", "three dogs on a bed"),
        ("three dogs on a bed", "two dogs on a bed"),
        ("two cats on a bed", "three cats on a bed"),
        ("three cats on a bed", "two cats on a bed"),
        ("a dogs on a bed", ""),
        ("a cats on a bed", ""),
    }


def text_of(sample: Sample) -> tuple[str, str]:
    """Return the caption and the one negative, or an empty text."""
    return sample.pair.caption, next((row.text for row in sample.annotations), "")


def plugin_build(tmp_path: Path, **sections: object) -> dict[str, Any]:
    captions = [f"{count} {what} on a bed" for count in ("two", "three") for what in ("dogs", "cats")]
    (tmp_path / "captions.jsonl").write_text("".join(json.dumps({"caption": text}) + "\n" for text in captions))
    config = {
        "name": "third-party",
        "input": {"path": str(tmp_path / "captions.jsonl")},
        "generators": [{"name": "miscount", "options": {"counts": ["two", "three"]}}],
        "workers": 1,
        **sections,
    }
    return build(parse_config(config, where="test"), tmp_path / "out", prefect=False)


def test_a_generator_whose_source_changed_runs_again(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python takes a source of the same second for unchanged
    install("miscount-plugin")
    first = plugin_build(tmp_path)
    source = Path(sys.modules["miscount"].__file__ or "")
    source.write_text(source.read_text().replace('"miscount", 1', '"miscount", 2'))
    del sys.modules["miscount"]
    importlib.invalidate_caches()
    second = plugin_build(tmp_path)
    generators = [manifest["stages"]["miscount"]["facts"]["generator"] for manifest in (first, second)]
    assert generators == ["miscount/1", "miscount/2"]


def test_hard_negatives_of_a_third_party_are_refined_too(install: Install, tmp_path: Path) -> None:
    install("miscount-plugin")
    manifest = plugin_build(tmp_path, refine={"cells": 4})
    refined = manifest["stages"]["refine"]
    assert refined["candidates"] == manifest["stages"]["miscount"]["kept"] == 4
    assert manifest["contents"]["texts"]["hard_negatives"] == refined["kept"]


def generate(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["generate", *map(str, arguments)])


@pytest.mark.parametrize("start", [("--generator", "miscount"), ("run", "--generator", "miscount")])
def test_generate_runs_an_installed_generator_by_name(install: Install, tmp_path: Path, start: tuple[str, ...]) -> None:
    install("miscount-plugin")
    (tmp_path / "captions.jsonl").write_text('{"caption": "two dogs on a bed"}\n{"caption": "a dog on a bed"}\n')
    out = tmp_path / "out.jsonl"
    options = ("--out", out, "--option", "counts=[two, nine]", "--seed", 3, "--workers", 1, "--json")
    result = generate(*start, tmp_path / "captions.jsonl", *options)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["captions"], printed["method"]) == (2, "rules")
    assert printed["types"]["replace-attribute"] == {"made": 2, "kept": 1, "rejected": {"no_edit": 1}}
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["negative"] for row in rows if row["status"] == "kept"] == ["nine dogs on a bed"]


def test_generate_needs_no_flag_of_a_build_to_run_a_built_in_generator(tmp_path: Path) -> None:
    (tmp_path / "captions.jsonl").write_text('{"caption": "a dog on a bed"}\n')
    by_name, by_verb = tmp_path / "name.jsonl", tmp_path / "verb.jsonl"
    read = (tmp_path / "captions.jsonl", "--workers", 1, "--out")
    generate("run", "--generator", "rules-negatives", "--option", "per_type=2", *read, by_name)
    generate("negatives", "--per-type", 2, *read, by_verb)
    assert by_name.read_text() == by_verb.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--generator", "miscuont"], "Did you mean miscount"),
        (["--generator", "miscount", "--option", "counts"], "--option 'counts': write KEY=VALUE"),
        (["--generator", "miscount", "--option", "counts=[a"], "not valid YAML"),
        (["--generator", "miscount", "--option", "n=1", "--option", "n=2"], "n is repeated"),
        (["--generator", "miscount", "--option", "numbers=3"], "does not take the options"),
        (["--generator", "miscount", "--model", "m"], "--model does nothing with --generator miscount"),
    ],
)
def test_generate_names_the_option_that_cannot_be_used(
    install: Install, tmp_path: Path, options: list[str], message: str
) -> None:
    install("miscount-plugin")
    (tmp_path / "captions.jsonl").write_text('{"caption": "two dogs on a bed"}\n')
    result = generate("run", *options, tmp_path / "captions.jsonl", "--workers", 1, "--out", tmp_path / "out.jsonl")
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
    assert not (tmp_path / "out.jsonl").exists()
