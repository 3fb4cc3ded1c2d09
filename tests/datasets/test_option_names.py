"""How options are named in messages: a command's as options, a config's as keys and where they stand."""

import pickle
from pathlib import Path

import pytest

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.flows.commands.auxiliary_inputs import read_auxiliary_pairs


def test_a_command_and_a_config_name_the_same_options_each_in_its_words() -> None:
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
        ("pool.csv", "foo,bar\na dog,x\n", "Call the column of the captions `caption`."),
        ("pool.csv", "text,title\na dog,x\n", "Leave one of them."),
        ("pool.txt", "id,caption\n1,a dog\n", "Name it .csv."),
        ("pool.dat", "a dog\n", "Name it .jsonl, .csv, .tsv or .parquet."),
        ("pool.jsonl", '[{"caption": "a dog"}]\n', "Name it .json."),
    ],
)
def test_of_a_file_that_is_read_as_it_is_no_option_is_named(name: str, text: str, fix: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        list(read_auxiliary_pairs(ReadOptions(str(tmp_path / name)), lambda _: None))
    assert caught.value.fix == fix
    assert "--" not in str(caught.value)


def test_options_of_reading_are_a_commands_unless_said_and_reach_another_process_with_their_words() -> None:
    assert ReadOptions("a.csv").wording == COMMAND_LINE
    options = ReadOptions("a.csv", wording=OptionNames("under input"))
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own bytes
