"""Training runs: learning, exact resuming, and error messages."""

import csv
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from safetensors.torch import load_file  # noqa: E402 - behind the guard of torch

from pairwright.datasets.errors import InputError, PairwrightError, StorageError, UsageError  # noqa: E402
from pairwright.datasets.records import Turn  # noqa: E402
from pairwright.datasets.shards.layout import find_shards  # noqa: E402
from pairwright.datasets.shards.reading import read_shard  # noqa: E402
from pairwright.datasets.shards.samples import Sample  # noqa: E402
from pairwright.datasets.shards.writing import write_shards  # noqa: E402
from pairwright.training.loading.shard_index import StoredSample, index_shards  # noqa: E402
from pairwright.training.metrics_log import LogRow  # noqa: E402
from pairwright.training.models.clip import Clip  # noqa: E402
from pairwright.training.models.extended_clip import FocalLensClip, ReactClip  # noqa: E402
from pairwright.training.models.focallens_mllm import FocalLensMllm  # noqa: E402
from pairwright.training.models.generative import ImageTextModel  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from pairwright.training.recipes.names import recipe_names  # noqa: E402
from pairwright.training.recipes.reading import read_recipe  # noqa: E402
from pairwright.training.recipes.settings import Recipe  # noqa: E402
from tests.training.training_cases import clip, llava, run, shards, two_processes  # noqa: E402

PAIRS = ("clip", "negclip", "hp-hn", "fsc-clip")
SPEED = ("samples_per_second", "waiting")


class Given(NamedTuple):
    """Shards and a model to begin with."""

    data: str
    model: str


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Of 48 scenes."""
    folder = tmp_path_factory.mktemp("training")
    return Given(shards(folder / "shards"), clip(folder))


class Killed(Exception):  # noqa: N818 - it is what happens
    """The run is interrupted."""


def weights(out: Path, inner: str = "") -> dict[str, Any]:
    return load_file(out / "model" / inner / "model.safetensors")


def equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def log(out: Path) -> list[dict[str, str]]:
    with (out / "log.csv").open(newline="") as file:
        return [{name: value for name, value in row.items() if name not in SPEED} for row in csv.DictReader(file)]


@pytest.mark.parametrize("recipe", PAIRS)
def test_a_recipe_of_pairs_runs_and_leaves_a_clip(given: Given, tmp_path: Path, recipe: str) -> None:
    report = run(recipe, *given, tmp_path / "run")
    assert (report.steps, report.cut) == (2, 0)
    assert report.left_out == {}
    assert type(open_model(report.model)) is Clip
    assert json.loads((tmp_path / "run" / "report.json").read_text()) == report.as_json()
    assert report.as_json()["loss"] == report.loss
    assert "main" not in report.as_json()


def test_every_built_in_recipe_is_tested_here() -> None:
    others = {"react", "focallens-clip", "focallens-mllm"}
    ours = {name for name in recipe_names() if isinstance(read_recipe(name), Recipe)}  # tests/training/finetuning
    assert ours == {*PAIRS, *others}


@pytest.mark.parametrize(
    ("recipe", "change", "kind"),
    [("react", "method.blocks=1", ReactClip), ("focallens-clip", "method.turns=2", FocalLensClip)],
)
def test_a_clip_gets_what_a_method_adds_and_can_be_trained_further(
    given: Given, tmp_path: Path, recipe: str, change: str, kind: type[Clip]
) -> None:
    first = run(recipe, *given, tmp_path / "first", change)
    assert type(open_model(first.model)) is kind
    second = run(recipe, given.data, first.model, tmp_path / "second", change)
    assert second.trained == first.trained
    with pytest.raises(UsageError, match=rf"is of kind {kind.kind}; this recipe requires clip"):
        run("clip", given.data, first.model, tmp_path / "third")


def test_react_leaves_the_clip_as_it_was(given: Given, tmp_path: Path) -> None:
    run("react", *given, tmp_path, "method.blocks=2", "schedule.steps=4")
    assert equal(weights(tmp_path), load_file(Path(given.model) / "model.safetensors"))
    added = load_file(tmp_path / "model" / "added.safetensors")
    assert all(gate.abs() > 0 for name, gate in added.items() if "gate" in name)


def test_focallens_mllm_begins_with_a_llava_and_can_be_trained_further(given: Given, tmp_path: Path) -> None:
    begun = llava(tmp_path / "llava")
    aim = f"method.target={given.model}"
    first = run("focallens-mllm", given.data, begun, tmp_path / "first", aim, "schedule.steps=12", "log_every=4")
    losses = [float(row["loss"]) for row in log(tmp_path / "first")]
    assert losses[-1] < losses[0]
    model = open_model(first.model)
    assert isinstance(model, FocalLensMllm)
    opened = open_model(begun)
    assert isinstance(opened, ImageTextModel)
    before, after = opened.network.state_dict(), model.llava.state_dict()
    still = {name for name, one in before.items() if torch.equal(one, after[name])}
    assert still == {name for name in before if "vision_tower" in name or name == "lm_head.weight"}
    assert equal(dict(model.target.state_dict()), dict(Clip.load(given.model).state_dict()))
    second = run("focallens-mllm", given.data, first.model, tmp_path / "second")
    assert second.trained == first.trained


def test_focallens_mllm_refuses_models_that_it_cannot_start_from(given: Given, tmp_path: Path) -> None:
    begun = llava(tmp_path / "llava")
    with pytest.raises(UsageError, match=r"is of kind clip; this recipe requires a LLaVA"):
        run("focallens-mllm", *given, tmp_path / "one", f"method.target={given.model}")
    with pytest.raises(UsageError, match=r"pass --set method\.target=PATH"):
        run("focallens-mllm", given.data, begun, tmp_path / "two")
    first = run("focallens-mllm", given.data, begun, tmp_path / "three", f"method.target={given.model}")
    with pytest.raises(UsageError, match=r"remove method\.target"):
        run("focallens-mllm", given.data, first.model, tmp_path / "four", f"method.target={given.model}")


def test_rows_with_one_answer_are_no_negatives_of_each_other(given: Given, tmp_path: Path) -> None:
    def said(sample: Sample, text: str) -> Sample:
        conversations = [each for each in sample.annotations if each.kind == "conversation"]
        turns = (Turn("human", "what colour is it ?"), Turn("assistant", text))
        return replace(sample, annotations=tuple(replace(each, turns=turns) for each in conversations))

    known = [sample for path in find_shards(Path(given.data)) for sample in read_shard(path)][:16]
    same = write_shards([said(sample, "red") for sample in known], tmp_path / "same").pattern
    assert run("focallens-clip", same, given.model, tmp_path / "one").loss == 0
    two = write_shards(
        [said(sample, ("red", "blue")[place % 2]) for place, sample in enumerate(known)], tmp_path / "two"
    ).pattern
    assert run("focallens-clip", two, given.model, tmp_path / "other").loss > 0


def test_the_loss_falls_and_so_does_each_part(given: Given, tmp_path: Path) -> None:
    rows = list[LogRow]()
    run("hp-hn", *given, tmp_path, "schedule.steps=36", "log_every=6", on_row=rows.append)
    assert rows[-1]["loss"] < 0.8 * rows[0]["loss"]
    assert all(rows[-1][f"loss_{name}"] < rows[0][f"loss_{name}"] for name in ("contrastive", "negatives", "positives"))


@pytest.mark.parametrize("recipe", ["fsc-clip", pytest.param("clip", marks=pytest.mark.slow)])
def test_a_killed_and_resumed_run_ends_with_the_same_weights_and_log(given: Given, tmp_path: Path, recipe: str) -> None:
    changes = ("schedule.steps=14", "save_every=5", "log_every=2", "batches.crop=0.5", "ema=0.9", "batches.chunk=3")
    whole = run(recipe, *given, tmp_path / "whole", *changes)

    def kill(row: LogRow) -> None:
        if row["step"] == 8:
            raise Killed

    with pytest.raises(Killed):
        run(recipe, *given, tmp_path / "killed", *changes, on_row=kill)
    assert [path.name for path in (tmp_path / "killed" / "checkpoints").iterdir()] == ["step-00000005"]
    resumed = run(recipe, *given, tmp_path / "killed", *changes, "batches.workers=1", resume=True)
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "killed"))
    averages = [load_file(tmp_path / name / "model-ema" / "model.safetensors") for name in ("whole", "killed")]
    assert equal(*averages)
    assert not equal(averages[0], weights(tmp_path / "whole"))
    assert log(tmp_path / "whole") == log(tmp_path / "killed")
    assert resumed.loss == whole.loss


def test_resuming_a_finished_run_changes_nothing(given: Given, tmp_path: Path) -> None:
    first = run("clip", *given, tmp_path)
    before = weights(tmp_path)
    again = run("clip", *given, tmp_path, resume=True)
    assert (again.loss, again.steps) == (first.loss, first.steps)
    assert equal(before, weights(tmp_path))


def test_a_run_is_a_function_of_its_seed(given: Given, tmp_path: Path) -> None:
    one, same, other = (
        run("negclip", *given, tmp_path / str(number), f"seed={seed}", "batches.crop=0.5").loss
        for number, seed in enumerate((1, 1, 2))
    )
    assert one == same != other


def test_lora_trains_few_parameters_and_leaves_a_plain_clip(given: Given, tmp_path: Path) -> None:
    report = run("clip", *given, tmp_path, "method.lora.rank=2")
    assert 0 < report.trained < report.frozen / 3
    before = load_file(Path(given.model) / "model.safetensors")
    after = weights(tmp_path)
    changed = {name for name in after if not torch.equal(after[name], before[name])}
    assert changed
    assert all("proj" in name or "fc" in name or "patch_embedding" in name for name in changed)


def test_averaged_and_openclip_models_are_saved_beside_the_model(given: Given, tmp_path: Path) -> None:
    run("negclip", *given, tmp_path, "method.lora.rank=2", "ema=0.5", "save_openclip=true")
    trained = weights(tmp_path)
    averaged = load_file(tmp_path / "model-ema" / "model.safetensors")
    before = load_file(Path(given.model) / "model.safetensors")
    assert averaged.keys() == trained.keys() == before.keys(), "low-rank matrices are merged"
    name = "vision_model.encoder.layers.0.self_attn.q_proj.weight"
    assert not torch.equal(averaged[name], trained[name])
    openclip = load_file(tmp_path / "model-openclip" / "open_clip_model.safetensors")
    rows = openclip["visual.transformer.resblocks.0.attn.in_proj_weight"]
    assert torch.equal(rows[: len(trained[name])], trained[name])


def test_a_locked_text_tower_does_not_change(given: Given, tmp_path: Path) -> None:
    run("clip", *given, tmp_path, "method.locked_text=true")
    before, after = load_file(Path(given.model) / "model.safetensors"), weights(tmp_path)
    assert all(torch.equal(before[name], after[name]) for name in after if name.startswith("text_"))
    assert any(not torch.equal(before[name], after[name]) for name in after if name.startswith("vision_"))


def test_a_folder_with_a_run_is_neither_overwritten_nor_resumed_with_other_settings(
    given: Given, tmp_path: Path
) -> None:
    run("clip", *given, tmp_path)
    with pytest.raises(UsageError, match=r"already holds a run\. Pass --resume"):
        run("clip", *given, tmp_path)
    with pytest.raises(UsageError, match=r"started with optimizer\.lr 0\.001, not 0\.5"):
        run("clip", *given, tmp_path, "optimizer.lr=0.5", resume=True)
    with pytest.raises(UsageError, match=r"no run to resume"):
        run("clip", *given, tmp_path / "empty", resume=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("precision=fp16",), "Set precision to fp32"),
        (("batches.max_tokens=77",), "Set max_tokens to 40"),
        (("method.online.pool=nothing.parquet",), "method.online.pool: nothing.parquet"),
    ],
)
def test_conflicting_settings_are_refused_before_the_first_step(
    given: Given, tmp_path: Path, changes: tuple[str, ...], said: str
) -> None:
    if "fp16" in changes[0] and torch.cuda.is_available():
        pytest.skip("a GPU has fp16")
    with pytest.raises(UsageError) as refused:
        run("negclip", *given, tmp_path / "run", *changes)
    assert said in str(refused.value)
    run("negclip", *given, tmp_path / "run")  # the folder is free


def test_shards_without_what_a_recipe_needs_are_refused(given: Given, tmp_path: Path) -> None:
    bare = shards(tmp_path / "bare", 8, texts=False)
    for recipe, lacking in (("negclip", "negatives"), ("hp-hn", "negatives"), ("focallens-clip", "conversations")):
        with pytest.raises(InputError, match=rf"no sample has what the recipe needs \(8: .*the sections? `{lacking}`"):
            run(recipe, bare, given.model, tmp_path / "run")


@pytest.mark.parametrize("missing", ["none.tar", "{00000..00002}.tar", "none.jsonl", "folder"])
def test_shards_that_are_not_there_are_reported_before_a_model_is_opened(tmp_path: Path, missing: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"no such file|3 of 3 shards missing|no \.tar in it"):
        run("clip", str(tmp_path / missing), str(tmp_path / "no-model"), tmp_path / "run")


def test_a_run_s_folder_stands_for_its_model(given: Given, tmp_path: Path) -> None:
    first = run("clip", *given, tmp_path / "first")
    run("negclip", given.data, str(tmp_path / "first"), tmp_path / "one")
    run("negclip", given.data, first.model, tmp_path / "two")
    assert equal(weights(tmp_path / "one"), weights(tmp_path / "two"))


def test_a_run_is_not_resumed_with_other_shards_of_the_same_size(given: Given, tmp_path: Path) -> None:
    run("clip", *given, tmp_path / "run")
    with pytest.raises(UsageError, match=r"changes the batches"):
        run("clip", shards(tmp_path / "other", seed=4), given.model, tmp_path / "run", resume=True)


@pytest.mark.parametrize("damage", [b"", b"garbage", "another"])
def test_a_damaged_optimizer_state_is_reported_with_its_place(
    given: Given, tmp_path: Path, damage: bytes | str
) -> None:
    """A traceback of pickle, or "Aborted!" for an empty file."""
    run("clip", *given, tmp_path)
    (file,) = tmp_path.glob("checkpoints/*/optimizer.pt")
    if isinstance(damage, bytes):
        file.write_bytes(damage)
    else:
        other = torch.optim.AdamW([torch.zeros(3, requires_grad=True)])
        torch.save({"optimizer": other.state_dict(), "scaler": None}, file)
    with pytest.raises(StorageError, match=r"step-00000002 cannot be read \(.*\)\. Remove the run folder"):
        run("clip", *given, tmp_path, resume=True)


def test_truncated_texts_are_counted(given: Given, tmp_path: Path) -> None:
    cut = run("clip", *given, tmp_path, "batches.max_tokens=5").cut
    assert 0 < cut <= 16
    assert run("clip", *given, tmp_path, "batches.max_tokens=5", resume=True).cut == cut


def test_a_loss_that_is_not_finite_ends_the_run_with_advice(given: Given, tmp_path: Path) -> None:
    with pytest.raises(PairwrightError, match=r"the loss at step \d+ is (nan|inf)\. Try a lower optimizer\.lr"):
        run("clip", *given, tmp_path, "optimizer.lr=1e30", "schedule.steps=20")


def test_batches_smaller_than_requested_are_reported(given: Given, tmp_path: Path) -> None:
    said: list[str] = []
    run("clip", *given, tmp_path / "even", "batches.size=32", on_message=said.append)
    assert said == ["Steps have 24 samples, not 32: an epoch of 48 is divided evenly over 2 steps."]
    run("clip", *given, tmp_path / "full", "batches.size=16", on_message=said.append)
    assert len(said) == 1
    with pytest.raises(
        UsageError, match=r"too few for one step: 48, of at least 64 \(ends: \w+, ranks: 1, batch of each: 64\)"
    ):
        run("clip", *given, tmp_path / "repeat", "batches.size=64", "batches.ends=repeat")


def test_samples_that_lack_texts_or_are_skipped_are_counted_at_the_start_and_in_the_report(
    given: Given, tmp_path: Path
) -> None:
    held = bodies(given.data)
    without = sum(not body.get("hard_negatives") for body in held)
    assert 0 < without < 48
    said: list[str] = []
    report = run("negclip", *given, tmp_path / "one", on_message=said.append)
    assert report.lacking == {"no_hard_negatives": without}
    assert said == [f"{without} of 48 samples used without hard negatives."]
    assert json.loads((tmp_path / "one" / "report.json").read_text())["lacking"] == report.lacking
    mixed = both(given.data, shards(tmp_path / "bare", 7, seed=9, texts=False), tmp_path / "mixed")
    report = run("hp-hn", mixed, given.model, tmp_path / "two")
    assert report.lacking == {"no_hard_negatives": without, "no_hard_texts": 7}
    said.clear()
    report = run("focallens-clip", mixed, given.model, tmp_path / "three", on_message=said.append)
    assert (report.left_out, report.samples) == ({"no_triplets": 7}, 48)
    assert said == ["7 samples skipped: no triplets."]


def bodies(data: str) -> list[dict[str, Any]]:
    """Return the JSON of all samples."""
    index = index_shards(data)
    return [dict(found.body) for found in index.find(range(sum(index.counts))) if isinstance(found, StoredSample)]


def both(one: str, other: str, folder: Path) -> str:
    """Put two sets of shards into one folder."""
    folder.mkdir()
    for number, tar in enumerate([*find_shards(Path(one)), *find_shards(Path(other))]):
        shutil.copy(tar, folder / f"{number:05}.tar")
    return str(folder)


@pytest.mark.parametrize("kind", ["gpu", "cpu", "python"])
def test_out_of_memory_names_the_settings_that_help(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def full(*_: Any, **__: Any) -> None:
        if kind == "gpu":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        if kind == "cpu":
            torch.empty(1 << 60, dtype=torch.uint8)
        bytearray(1 << 60)

    monkeypatch.setattr("pairwright.training.training_step.batch_loss", full)
    with pytest.raises(PairwrightError, match=r"^out of memory at step 1, ") as error:
        run("fsc-clip", *given, tmp_path / "run")
    assert "batches.size 8" in str(error.value)
    assert "method.negatives, method.lora, or more processes" in str(error.value)
    monkeypatch.setattr("pairwright.training.trainer.prepare", full)
    with pytest.raises(PairwrightError, match=r"^out of memory before the first step, "):
        run("fsc-clip", *given, tmp_path / "other")


def test_other_errors_are_not_taken_for_a_lack_of_memory(given: Given, tmp_path: Path, monkeypatch: Any) -> None:
    def broken(*_: Any, **__: Any) -> None:
        torch.zeros(2) @ torch.zeros(3)

    monkeypatch.setattr("pairwright.training.training_step.batch_loss", broken)
    with pytest.raises(RuntimeError, match="size"):
        run("clip", *given, tmp_path)


def test_a_worker_that_was_killed_is_reported_with_the_settings_that_help(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("pairwright.training.loading.loader.load_parts", killed)
    with pytest.raises(PairwrightError, match=r"loading process was killed.*batches.workers"):
        run("clip", *given, tmp_path, "batches.workers=1")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["hp-hn", "fsc-clip", "focallens-clip", "focallens-mllm"])
def test_two_processes_train_as_one_with_the_same_whole_batch(given: Given, tmp_path: Path, recipe: str) -> None:
    changes = ["schedule.steps=6", "log_every=1", "optimizer.lr=1e-3"]
    model = given.model
    if recipe == "focallens-mllm":
        model = llava(tmp_path / "llava")
        changes.append(f"method.target={given.model}")
    run(recipe, given.data, model, tmp_path / "one", *changes)
    asked = ["train", recipe, "--data", given.data, "--model", model, "--out", str(tmp_path / "two"), "--json"]
    if recipe == "fsc-clip":
        changes.append("batches.chunk=3")
    small = ("batches.size=8", "batches.workers=0", "batches.crop=1", "schedule.warmup=0", "precision=fp32", *changes)
    finished = two_processes("pairwright", *asked, *(part for change in small for part in ("--set", change)))
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["steps"] == 6
    for one, two in zip(log(tmp_path / "one"), log(tmp_path / "two"), strict=True):
        for name in one:
            if one[name]:
                assert float(two[name]) == pytest.approx(float(one[name]), rel=2e-3, abs=1e-6), name
    inner = "llava" if recipe == "focallens-mllm" else ""
    ones, twos = weights(tmp_path / "one", inner), weights(tmp_path / "two", inner)
    started = load_file(Path(model) / "model.safetensors")
    for name, value in ones.items():
        # What an attention adds to all keys alike has no gradient but rounding, which AdamW takes for one.
        if not name.endswith("k_proj.bias"):
            assert (twos[name] - value).abs().mean() <= 0.05 * (value - started[name]).abs().mean() + 1e-7, name


@pytest.mark.slow
def test_two_processes_of_which_one_was_killed_resume_to_the_same_weights_and_log(given: Given, tmp_path: Path) -> None:
    changes = ("schedule.steps=14", "save_every=5", "log_every=2", "batches.crop=0.5", "batches.workers=1")
    for folder, last in (("whole", "0"), ("parts", "8"), ("parts", "0")):
        out = str(tmp_path / folder)
        done = two_processes("tests.training.killed_run", *given, out, last, *changes)
        assert (done.returncode == 0) == (last == "0"), done.stderr
        if last == "8":
            assert "SIGKILL" in done.stderr
            assert [path.name for path in (tmp_path / folder / "checkpoints").iterdir()] == ["step-00000005"]
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert log(tmp_path / "whole") == log(tmp_path / "parts")
