"""Recipe reader: settings, changes and error messages."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the folder's fixtures need torch")

from pairwright.datasets.errors import ConfigError, PairwrightError, UsageError
from pairwright.training.recipes.names import recipe_names
from pairwright.training.recipes.reading import read_recipe
from pairwright.training.recipes.settings import ScheduleSettings
from pairwright.training.training_step import learning_rate_factor, warmup_steps


@pytest.mark.parametrize("name", recipe_names())
def test_each_recipe_of_ours_is_read_and_names_its_method(name: str) -> None:
    kind = read_recipe(name).method.kind
    assert kind == ("conversations" if name.startswith(("llava", "vlm")) else name)


def test_fsc_clip_has_the_settings_of_the_paper() -> None:
    recipe = read_recipe("fsc-clip")
    assert (recipe.optimizer.lr, recipe.optimizer.weight_decay, recipe.batches.size) == (5e-6, 0.1, 256)
    assert (recipe.schedule.epochs, recipe.schedule.warmup) == (5, 50)


def test_a_change_reaches_a_setting_within_a_section() -> None:
    recipe = read_recipe("clip", ["optimizer.lr=1e-3", "method.lora.rank=2", "precision=bf16"])
    assert recipe.optimizer.lr == 1e-3
    assert recipe.method.model_dump()["lora"] == {"rank": 2, "alpha": 1.0}
    assert recipe.precision == "bf16"


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("negclp", "seed=1", "Did you mean negclip?"),
        ("clip", "optimiser.lr=1", "unknown key `optimiser`. Did you mean `optimizer`?"),
        ("clip", "optimizer.rate=1", "unknown key `optimizer.rate`. Known here: lr, weight_decay"),
        ("hp-hn", "method.negative_weight=1", "`method.negative_weight`. Did you mean `negatives_weight`?"),
        ("clip", "method.negatives=3", "unknown key `method.negatives`"),
        (
            "clip",
            "early_stop.patience=1",
            "`early_stop` was removed. Generative models: `trainer.load_best_model_at_end`",
        ),
        ("clip", "batches.mirror=0.5", "`batches.mirror` was removed. Remove it"),
        (
            "clip",
            "method.kind=clap",
            "`method.kind` is 'clap'. Did you mean clip? There are: clip, conversations, focallens-clip",
        ),
        ("clip", "method.kind=[clip]", "Did you mean clip? There are: clip, conversations"),
        ("llava-instruct", "method.frezee=[]", "unknown key `method.frezee`. Did you mean `freeze`?"),
        ("step-by-step", "batches.crop=1", "unknown key `batches.crop`"),
        ("react", "batches.size=1", "compares the samples of a step"),
        ("clip", "batches.size=many", "`batches.size` is 'many'"),
        ("clip", "method={kind: clip, lora: {rank: 4}, locked_text: true}", "mutually exclusive"),
    ],
)
def test_what_no_recipe_can_hold_is_refused_with_what_it_should_be(name: str, change: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_recipe(name, [change])
    assert said in str(refused.value)


@pytest.mark.parametrize("change", ["optimizer.lr", "=3", "a..b=3"])
def test_a_change_without_key_and_value_is_refused(change: str) -> None:
    with pytest.raises(UsageError, match=r"key=value"):
        read_recipe("clip", [change])


@pytest.mark.parametrize("text", ["method: [", "just words", ""])
def test_a_file_that_is_no_recipe_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(PairwrightError, match=r"mine\.yaml"):
        read_recipe(str(path))


def test_a_key_given_twice_and_a_data_file_are_refused_as_in_a_config(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("method: {kind: clip}\nseed: 1\nseed: 2\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml:3: not YAML: duplicate key `seed`"):
        read_recipe(str(path))
    rows = tmp_path / "captions.jsonl"
    rows.write_text("{}\n")
    with pytest.raises(ConfigError, match="is a data file"):
        read_recipe(str(rows))


def test_the_rate_rises_in_a_line_and_falls_in_half_a_cosine_to_nothing() -> None:
    rates = [learning_rate_factor(step, 4, 20) for step in range(21)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[12] == pytest.approx(0.5)
    assert rates[20] == 0
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_a_warm_up_below_one_is_a_share_of_the_steps() -> None:
    assert tuple(warmup_steps(ScheduleSettings(warmup=share), 200) for share in (0.03, 50, 0)) == (6, 50, 0)
