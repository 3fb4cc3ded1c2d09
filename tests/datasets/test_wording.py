"""How options are named in messages: a command's as options, a config's as keys and where they stand."""

import pickle

from pairwright.datasets.reading import ReadOptions
from pairwright.datasets.wording import COMMAND_LINE, Wording


def test_a_command_and_a_config_name_the_same_options_each_in_its_words() -> None:
    config = Wording("under input")
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


def test_options_of_reading_are_a_commands_unless_said_and_reach_another_process_with_their_words() -> None:
    assert ReadOptions("a.csv").wording == COMMAND_LINE
    options = ReadOptions("a.csv", wording=Wording("under input"))
    assert pickle.loads(pickle.dumps(options)) == options  # noqa: S301 - our own bytes
