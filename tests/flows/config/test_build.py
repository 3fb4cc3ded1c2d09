"""The build config: checked at the edge, with messages that mend."""

from pathlib import Path

import pytest
import yaml

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.datasets.records import MAX_EDITABLE_CAPTION
from pairwright.flows.commands.config_templates import render_template, template_names
from pairwright.flows.commands.input_survey import InputSettings
from pairwright.flows.config.build import dump_config, load_config, parse_config
from pairwright.flows.state.inputs import read_options

LEAST = {"name": "birds", "input": {"path": "captions.jsonl"}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inptu": {}}, "unknown key `inptu`. Did you mean `input`?"),
        ({"input": {"path": "x", "colums": {}}}, "unknown key `input.colums`. Did you mean `columns`?"),
        ({"retrieve": {"queries": "q.txt", "kk": 3}}, "unknown key `retrieve.kk`. Did you mean `k`?"),
        ({"zzz": 1}, "Known here: name, seed, input"),
        ({"index": {"near": 0.9}}, "`index.near` was removed. Use `near_duplicates`."),
        (
            {"negatives": {"last_resorts": False}},
            "`negatives.last_resorts` was removed. Remove it: no relation is negated",
        ),
        ({"input": {}}, "`input.path` is missing"),
        ({"name": "a/b"}, "`name` is 'a/b': must consist of letters, digits"),
        ({"input": "captions.jsonl"}, "`input` is 'captions.jsonl': must be a section"),
        ({"input": {"path": ""}}, "`input.path` is '': must not be empty"),
        ({"input": {"path": ["a", "b"]}}, "`input.path` is ['a', 'b']: must be a string. Change it."),
        ({"slurm": {"time": 7200}}, "`slurm.time` is 7200: must be a string, in quotes where YAML reads a number"),
        ({"negatives": {"types": "replace-object"}}, "`negatives.types` is 'replace-object': must be a list"),
        ({"negatives": {"types": []}}, "`negatives.types` is []: must have at least one entry"),
        ({"negatives": {"quota": {"swap-object": "many"}}}, "`negatives.quota.swap-object` is 'many': "),
        (
            {"negatives": {"types": ["swap-object", "swap-object"]}},
            "`negatives`: types: duplicate swap-object.",
        ),
        (
            {"negatives": {"types": ["swap-object"], "quota": {"add-object": 5}}},
            "`negatives`: quota: add-object is not among the types.",
        ),
        ({"negatives": {"types": ["shuffle"], "both_sides": True}}, "both_sides: shuffle has no positives"),
        ({"negatives": {"see_image": True}}, "see_image requires method: llm"),
        ({"positives": {"see_image": True}}, "see_image requires method: llm"),
        ({"negatives": {"method": "llm", "see_image": True, "both_sides": True}}, "mutually exclusive"),
        ({"negatives": {"types": ["negation"]}}, "negation and vocabulary require each other"),
        ({"negatives": {"vocabulary": ["coco"]}}, "negation and vocabulary require each other"),
        ({"negatives": {"floor": 0}}, "`negatives.floor` is 0"),
        ({"positives": {"types": ["swap-object"] * 2}}, "types: duplicate swap-object"),
        ({"conversations": {"types": ["brief", "brief"]}}, "types: duplicate brief"),
        ({"shards": {"image_format": "jpeg"}}, 'Did you mean jpg? There are: "", jpg, png, webp.'),
        ({"seed": 2**63}, "`seed` is 9223372036854775808"),
        (
            {"negatives": {"types": ["replace"]}},
            "`negatives.types.0` is 'replace'. Did you mean replace-object? There are: ",
        ),
        ({"refine": {}}, "refine requires hard negatives"),
        ({"seed": -1}, "`seed` is -1"),
        ({"part_size": -1}, "`part_size` is -1"),
    ],
)
def test_a_wrong_config_is_refused_with_its_place(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config({**LEAST, **change}, where="build.yaml")
    assert message in str(refused.value)
    assert all(line.startswith("build.yaml: ") for line in str(refused.value).splitlines())


def test_the_prompts_of_answer_forms_can_be_changed_and_switched_off(tmp_path: Path) -> None:
    path = tmp_path / "build.yaml"
    section = (
        "conversations: {types: [short, choice], short_prompt: off, choice_prompt: One letter., prompt_place: above}"
    )
    path.write_text(f"name: birds\ninput: {{path: captions.jsonl}}\n{section}\n")
    conversations = load_config(path).conversations
    assert conversations is not None
    options = conversations.options()
    assert (options["short_prompt"], options["choice_prompt"]) == ("", "One letter.")
    assert (options["prompt_place"], options["prompt_turns"]) == ("above", "each")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", r":\d+: not YAML"),
        ("- 1", "contains no settings"),
        ("", "contains no settings"),
        ("name: a\nname: b\n", r":2: .*duplicate key `name`"),
        ("input: {path: a, path: b}", r":1: .*duplicate key `path`"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "b.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path / "b.yaml")


def test_a_missing_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.yaml")


def test_a_data_file_is_refused_as_a_config(tmp_path: Path) -> None:
    """It would else be a line of YAML to mend."""
    (tmp_path / "captions.jsonl").write_text('{"caption": "a"}\n{"caption": "b"}\n')
    with pytest.raises(
        ConfigError, match=r"captions\.jsonl: is a data file, not a config\. Write one with `pairwright init`"
    ):
        load_config(tmp_path / "captions.jsonl")


def test_a_config_is_written_and_read_back_the_same() -> None:
    config = parse_config({**LEAST, "negatives": {}, "refine": {}}, where="t")
    assert parse_config(yaml.safe_load(dump_config(config)), where="t") == config


LLM = {"model": "m", "cache": "answers.sqlite"}


def test_paths_are_relative_to_the_config_file(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(yaml.safe_dump({**LEAST, "retrieve": {"queries": "q.txt"}, "llm": LLM}))
    config = load_config(tmp_path / "b.yaml")
    assert config.llm
    assert config.llm.cache == str(tmp_path / "answers.sqlite")
    assert config.input.path == str(tmp_path / "captions.jsonl")
    assert config.retrieve
    assert config.retrieve.queries == str(tmp_path / "q.txt")


@pytest.mark.parametrize("name", template_names())
def test_a_template_becomes_a_config_for_any_input(tmp_path: Path, name: str) -> None:
    given = str(tmp_path / "data" / "it's: my #1 {file}.jsonl")
    text = render_template(
        name, input_path=given, survey=InputSettings({"key": "image_id"}), config=tmp_path / "b.yaml"
    )
    (tmp_path / "b.yaml").write_text(text)
    config = load_config(tmp_path / "b.yaml")
    assert config.input.path == given
    assert config.input.columns == {"key": "image_id"}
    assert "#" in text


def test_the_url_of_an_input_is_written_as_it_is(tmp_path: Path) -> None:
    text = render_template("negatives", input_path="s3://pool/captions.json", config=tmp_path / "b.yaml")
    assert "path: s3://pool/captions.json\n" in text


def test_an_unknown_template_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There are: all"):
        render_template("al", input_path="", config=tmp_path / "b.yaml")


def test_a_build_limits_the_length_of_captions() -> None:
    config = parse_config({"name": "a", "input": {"path": "a.jsonl"}, "negatives": {}}, where="a.yaml")
    longer = parse_config(
        {"name": "a", "input": {"path": "a.jsonl", "max_caption": 9}, "negatives": {}}, where="a.yaml"
    )
    assert read_options(config.input).max_caption == MAX_EDITABLE_CAPTION
    assert read_options(longer.input).max_caption == 9


@pytest.mark.parametrize(
    ("sections", "has_additions"),
    [
        ({"negatives": {}}, True),
        ({"negatives": {}, "refine": None}, True),
        ({"negatives": {}, "refine": {}}, False),
        ({"negatives": {"both_sides": True}, "refine": {}}, True),
        ({"negatives": {"both_sides": "true"}, "refine": {}}, True),
        ({"negatives": {"both_sides": "false"}, "refine": {}}, False),
        ({"negatives": {"types": ["add-object"]}, "refine": {}}, True),
    ],
)
def test_a_build_that_refines_makes_no_one_sided_additions_unless_they_are_named(
    sections: dict[str, object], *, has_additions: bool
) -> None:
    config = parse_config({**LEAST, **sections}, where="x.yaml")
    assert config.negatives
    assert ("add-object" in config.negatives.types) is has_additions
    assert parse_config(yaml.safe_load(dump_config(config)), where="x.yaml") == config
