"""A step: cached gradients, device reads, precision, averaged weights."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
accelerate = pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from benchmarks.trainer.device_reads import DeviceReads  # noqa: E402 - behind the guard of torch
from pairwright.datasets.errors import ConfigError  # noqa: E402
from pairwright.training.models.extended_clip import ReactClip  # noqa: E402
from pairwright.training.models.trainable_parameters import train_only  # noqa: E402
from pairwright.training.objectives.distributed import ALONE  # noqa: E402
from pairwright.training.recipes.preparation import batch_loss, pair_loss  # noqa: E402
from pairwright.training.recipes.reading import read_recipe  # noqa: E402
from pairwright.training.recipes.settings import PairMethod, Recipe, ScheduleSettings  # noqa: E402
from pairwright.training.training_step import (  # noqa: E402
    GradientCache,
    TrainingStep,
    WeightAverage,
    join_rows,
    schedule_notes,
    split_rows,
)
from tests.training import tiny_models  # noqa: E402
from tests.training.pair_batches import batch  # noqa: E402

RECIPES = ("clip", "negclip", "hp-hn", "fsc-clip", "react")


def prepared(recipe: str, dropout: float = 0.0) -> tuple[Any, Any]:
    """Return the method and a model that it trains."""
    method = read_recipe(recipe).method
    assert isinstance(method, PairMethod)
    torch.manual_seed(0)
    model: Any = tiny_models.clip()
    if recipe == "react":
        model = ReactClip(model, 2)
        with torch.no_grad():
            for block in list[Any](model.blocks.values()):
                block.gate_attention.fill_(0.5)
    train_only(model, "react" if recipe == "react" else "clip")
    for module in model.modules():
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = dropout
    return method, model.train()


def gradients(model: Any) -> dict[str, Any]:
    found = {name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None}
    model.zero_grad()
    return found


def assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    most = max(one.abs().max() for one in expected.values())
    for name, one in expected.items():
        torch.testing.assert_close(found[name], one, rtol=1e-4, atol=1e-6 * most.item(), msg=name)


@pytest.mark.parametrize("rows", [1, 2, 5, 9])
@pytest.mark.parametrize("recipe", RECIPES)
def test_cached_gradients_are_those_of_the_whole_batch(recipe: str, rows: int) -> None:
    method, model = prepared(recipe)
    whole = batch_loss(method, model, batch(), ALONE)
    torch.autograd.backward(whole.loss)
    expected = gradients(model)
    cached = GradientCache(method, model, accelerate.Accelerator(cpu=True), ALONE, rows).backward(batch(), seed=1)
    torch.testing.assert_close(cached.loss, whole.loss, rtol=1e-6, atol=1e-6)
    assert_close(gradients(model), expected)


def test_both_passes_of_a_part_drop_the_same_numbers() -> None:
    method, model = prepared("negclip", dropout=0.5)
    cache = GradientCache(method, model, accelerate.Accelerator(cpu=True), ALONE, 2)
    parts = [cache._embed(part, 3, number) for number, part in enumerate(split_rows(batch(), 2))]
    torch.autograd.backward(pair_loss(method, join_rows(parts), ALONE).loss)
    expected = gradients(model)
    again = cache.backward(batch(), seed=3)
    assert_close(gradients(model), expected)
    assert again.loss != cache.backward(batch(), seed=4).loss, "nothing was dropped"


def step_of(recipe: str, *changes: str) -> Any:
    settings = read_recipe(recipe, ["precision=fp32", "schedule.warmup=0", *changes])
    assert isinstance(settings, Recipe)
    model = prepared(recipe)[1]
    return TrainingStep(settings, model, accelerate.Accelerator(cpu=True), ALONE, 4)


@pytest.mark.parametrize("chunk", [0, 2])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_step_reads_nothing_from_the_device(recipe: str, chunk: int) -> None:
    step = step_of(recipe, f"batches.chunk={chunk}", "ema=0.9", "optimizer.clip=1")
    step.take(batch(), 0)
    with DeviceReads() as reads:
        step.take(batch(seed=1), 1)
    # On a CPU, AdamW reads its count of steps once for each parameter; "fused" on a GPU, it does not.
    assert reads.waits == ["_local_scalar_dense"] * len(step.state.optimizer.state)


@pytest.mark.parametrize("recipe", [pytest.param("negclip", marks=pytest.mark.slow), "fsc-clip"])
def test_a_compiled_model_is_one_graph_for_all_batches_of_fixed_lengths(
    monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    counters = torch._dynamo.utils.counters
    compile_module = torch.nn.Module.compile
    # Tracing is what may break; the code generated from a graph is torch's.
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: compile_module(self, backend="eager"))
    torch._dynamo.reset()
    counters.clear()
    plain, compiled = step_of(recipe), step_of(recipe, "compile=true")
    for seed in range(3):
        given = batch(seed=seed, fixed=True)
        expected = plain.take(batch(seed=seed), seed)[0].loss
        torch.testing.assert_close(compiled.take(given, seed)[0].loss, expected, rtol=1e-4, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


def test_the_average_of_weights_follows_them() -> None:
    step = step_of("clip", "ema=0.75", "optimizer.lr=0.01")
    before = {name: one.detach().clone() for name, one in step.model.named_parameters()}
    step.take(batch(), 0)
    for name, one in step.model.named_parameters():
        torch.testing.assert_close(step.state.average[name], 0.75 * before[name] + 0.25 * one)


def test_a_learning_rate_that_rises_to_the_end_is_reported() -> None:
    (line,) = schedule_notes(ScheduleSettings(warmup=50), 28)
    assert "Warm-up takes 50 steps and the run 28: the learning rate reaches 56% of optimizer.lr." in line
    assert schedule_notes(ScheduleSettings(warmup=0.5), 28) == schedule_notes(ScheduleSettings(warmup=27), 28) == []


def test_only_trained_weights_are_averaged() -> None:
    model = tiny_models.clip()
    train_only(model, "clip-locked-text")
    assert not any(name.startswith("network.text_model") for name in WeightAverage(model, 0.9).weights)


@pytest.mark.parametrize(
    ("recipe", "change", "said"),
    [
        ("focallens-clip", "batches.chunk=8", "batches.chunk is for objectives over pairs"),
        ("focallens-clip", "compile=true", "compile is for objectives over pairs"),
        ("react", "save_openclip=true", "save_openclip is for objectives that finetune a CLIP"),
    ],
)
def test_settings_that_an_objective_cannot_have_are_refused(recipe: str, change: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_recipe(recipe, [change])
