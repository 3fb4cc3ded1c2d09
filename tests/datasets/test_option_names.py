"""Option names in messages, for the command line and for configs."""

import pickle
from pathlib import Path

import pytest

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.flows.commands.pair_inputs import read_auxiliary_pairs


def test_a_command_and_a_config_name_options_in_their_own_syntax() -> None:
    config = OptionNames("under input")
    assert (COMMAND_LINE.option("on_error"), config.option("on_error")) == ("--on-error", "`on_error` under input")
    assert COMMAND_LINE.column("key", "id") == "--columns key=id"
    assert config.column("key", "id") == "`columns: {key: id}` under input"
    assert COMMAND_LINE.choice("format", ("csv", "tsv")) == "--format csv | tsv"
    assert config.choice("format", ("csv", "tsv")) == "`format` under input, one of csv | tsv"
    assert COMMAND_LINE.setting("format", "csv") == "--format csv (in a config, format: csv)"
    assert config.setting("format", "csv") == "`format: csv` under input"
    assert COMMAND_LINE.flag("both_sides", "under negatives") == "--both-sides"
    assert config.flag("both_sides") == "`both_sides: true` under input"
    assert config.flag("both_sides", "under negatives") == "`both_sides: true` under negatives"


@pytest.mark.parametrize(
    ("name", "text", "fix"),
    [
        ("pool.csv", "foo,bar\na dog,x\n", "Name the caption column `caption`."),
        ("pool.csv", "text,title\na dog,x\n", "Remove one of them."),
        ("pool.txt", "a dog\n", "Add a header line (caption) and rename the file to .tsv."),
        (
            "pool.json",
            '[{"conversations": []}]',
            "`pairwright mix`, `export` and `verify` read them; here, give captions.",
        ),
        ("pool.dat", "a dog\n", "Name it .jsonl, .csv, .tsv or .parquet."),
        ("pool.jsonl", '[{"caption": "a dog"}]\n', "Name it .json."),
    ],
)
def test_messages_about_a_file_without_options_name_none(name: str, text: str, fix: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_auxiliary_pairs(ReadOptions(str(tmp_path / name)), lambda _: None))
    assert caught.value.fix == fix
    assert "--" not in str(caught.value)


def test_read_options_name_command_line_options_by_default_and_survive_pickling() -> None:
    assert ReadOptions("a.csv").option_names == COMMAND_LINE
    options = ReadOptions("a.csv", option_names=OptionNames("under input"))
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own bytes
