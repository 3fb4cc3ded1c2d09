"""Finetuning by two processes, with sharded models (FSDP2 over gloo) and with copies: equal to one process, also when killed."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from PIL import Image  # noqa: E402 - after the skips

from tests.training.finetuning import tiny_vlms  # noqa: E402
from tests.training.finetuning.test_runs import SMALL, losses, run, weights  # noqa: E402
from tests.training.training_cases import clip, language, processes, shards, student, two_processes  # noqa: E402

SHARDED = "trainer.fsdp=true"
CHANGES = [*SMALL, "save_every=4", "keep=3"]


def together(recipe: str, data: str, model: str, out: Path, *changes: str, last: int = 0) -> str:
    """Train in two processes and return what they print; they must end well unless one is killed."""
    module = "tests.training.finetuning.sharded_run"
    done = two_processes(module, recipe, data, model, str(out), str(last), *CHANGES, *changes)
    assert (done.returncode == 0) == (last == 0), done.stderr
    return done.stdout


def close(one: Path, other: Path) -> bool:
    """Compare weights; a sharded T5 is written with its output layer, which has those of the embedding."""
    first, second = weights(one / "model"), weights(other / "model")
    names = [name for name in first.keys() & second.keys() if not name.endswith("k_proj.bias")]
    return first.keys() ^ second.keys() <= {"lm_head.weight"} and all(
        torch.allclose(first[name], second[name], atol=2e-3) for name in names
    )


def answer(model: Path) -> Any:
    from transformers import pipeline

    content = [{"type": "image", "image": Image.new("RGB", (40, 24))}, {"type": "text", "text": "what is it ?"}]
    asked = [{"role": "user", "content": content}]
    return pipeline("image-text-to-text", model=str(model), device="cpu")(text=asked, max_new_tokens=2)[0]


@pytest.mark.slow
def test_a_single_process_of_torchrun_shards_too(tmp_path: Path) -> None:
    """It was refused, though FSDP runs in one process too."""
    data, model = shards(tmp_path / "data"), tiny_vlms.llava(tmp_path / "model")
    run("llava-instruct", data, model, tmp_path / "one", *CHANGES)
    arguments = ("llava-instruct", data, model, str(tmp_path / "sharded"), "0", *CHANGES, SHARDED)
    done = processes(1, "tests.training.finetuning.sharded_run", *arguments)
    assert (done.returncode, done.stdout) == (0, "DistributedType.FSDP 10\n"), done.stderr
    assert losses(tmp_path / "sharded") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
    assert close(tmp_path / "one", tmp_path / "sharded")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_sharded_processes_train_as_one_and_resume_when_killed(tmp_path: Path, kind: str) -> None:
    data, model = shards(tmp_path / "data"), getattr(tiny_vlms, kind)(tmp_path / "model")
    changes = ("gradient_checkpointing=true", "optimizer.clip=1.0")
    run("vlm-instruct", data, model, tmp_path / "one", *CHANGES, *changes)
    printed = together("vlm-instruct", data, model, tmp_path / "two", SHARDED, *changes)
    assert printed.split() == ["DistributedType.FSDP", "10"] * 2
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    assert close(tmp_path / "one", tmp_path / "two")
    together("vlm-instruct", data, model, tmp_path / "killed", SHARDED, *changes, last=6)
    kept = [path.name for path in (tmp_path / "killed" / "checkpoints").iterdir()]
    assert kept == ["checkpoint-4"]
    together("vlm-instruct", data, model, tmp_path / "killed", SHARDED, *changes)
    assert losses(tmp_path / "killed") == pytest.approx(losses(tmp_path / "two"), rel=1e-6)
    assert close(tmp_path / "two", tmp_path / "killed")
    assert "generated_text" in answer(tmp_path / "killed" / "model")


def zero_settings(stage: int, *offloaded: str) -> str:
    pytest.importorskip("deepspeed", reason="ZeRO is DeepSpeed's")
    automatic = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")
    moved = {f"offload_{name}": {"device": "cpu"} for name in offloaded}
    config = dict.fromkeys(automatic, "auto") | {"zero_optimization": {"stage": stage, **moved}}
    return f"trainer.deepspeed={json.dumps(config)}"


@pytest.mark.slow
def test_a_llava_is_joined_of_parts_under_zero_3(tmp_path: Path) -> None:
    """Reading CLIP's temperature, a number, already divided fails: parts are read whole."""
    data, seeing = shards(tmp_path / "data"), clip(tmp_path)
    words = f"method.language={language(tmp_path / 'language')}"
    run("llava-align", data, seeing, tmp_path / "one", *CHANGES, words)
    together("llava-align", data, seeing, tmp_path / "two", zero_settings(3), words)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "kind", "lora"),
    [(2, "llava", ()), (3, "llava", ()), (3, "qwen", ()), (3, "llava", ("method.lora.rank=2",))],
)
def test_zero_trains_as_one_process_resumes_when_killed_and_leaves_a_whole_model(
    tmp_path: Path, stage: int, kind: str, lora: tuple[str, ...]
) -> None:
    """ZeRO-3 divides the weights themselves: those of the finished model are gathered, and adapters merged by one process."""
    data, model = shards(tmp_path / "data"), getattr(tiny_vlms, kind)(tmp_path / "model")
    changes = ("optimizer.clip=1.0", *lora)
    zero = zero_settings(stage)
    alone = run("vlm-instruct", data, model, tmp_path / "one", *CHANGES, *changes)
    together("vlm-instruct", data, model, tmp_path / "killed", zero, *changes, last=6)
    printed = together("vlm-instruct", data, model, tmp_path / "killed", zero, *changes)
    assert "DistributedType.DEEPSPEED 10" in printed
    assert losses(tmp_path / "killed") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    assert close(tmp_path / "one", tmp_path / "killed")
    report = json.loads((tmp_path / "killed" / "report.json").read_text())
    assert (report["trained"], report["frozen"]) == (alone.trained, alone.frozen)
    assert "generated_text" in answer(tmp_path / "killed" / "model")


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "offloaded"), [(2, ("optimizer",)), (3, ("optimizer", "param"))])
def test_zero_that_offloads_to_the_cpu_trains_as_one_process(
    tmp_path: Path, stage: int, offloaded: tuple[str, ...]
) -> None:
    """DeepSpeed compiles its AdamW for the CPU at the first run, which takes minutes."""
    data, model = shards(tmp_path / "data"), tiny_vlms.llava(tmp_path / "model")
    run("vlm-instruct", data, model, tmp_path / "one", *CHANGES, "optimizer.clip=1.0")
    together("vlm-instruct", data, model, tmp_path / "two", zero_settings(stage, *offloaded), "optimizer.clip=1.0")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    assert close(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_copies_with_accumulated_gradients_train_as_one_and_resume_in_a_later_epoch(tmp_path: Path) -> None:
    """An epoch is two whole batches and a part of one, in which two processes repeated rows."""
    data, model = shards(tmp_path / "data", 42), tiny_vlms.llava(tmp_path / "model")
    changes = ("batches.size=16", "batches.window=16", "batches.per_device=4", "batches.workers=1")
    run("llava-instruct", data, model, tmp_path / "one", *CHANGES, *changes)
    together("llava-instruct", data, model, tmp_path / "two", *changes, last=6)
    together("llava-instruct", data, model, tmp_path / "two", *changes)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
    assert close(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
@pytest.mark.parametrize("sharding", ["trainer.fsdp=false", SHARDED])
def test_the_two_tasks_of_step_by_step_have_the_loss_of_one_process(tmp_path: Path, sharding: str) -> None:
    """Also when the T5, whose encoder and decoder share an embedding, is sharded."""
    data, model = shards(tmp_path / "data"), student(tmp_path / "student")
    weighted = ("method.rationale_weight=0.5", "batches.per_device=2")
    run("step-by-step", data, model, tmp_path / "one", *CHANGES, *weighted)
    together("step-by-step", data, model, tmp_path / "two", sharding, *weighted)
    for column in ("loss", "loss_label", "loss_rationale"):
        assert losses(tmp_path / "two", column) == pytest.approx(losses(tmp_path / "one", column), rel=1e-4)


@pytest.mark.slow
def test_a_sharded_encoder_decoder_resumes_when_killed(tmp_path: Path) -> None:
    data, model = shards(tmp_path / "data"), student(tmp_path / "student")
    run("step-by-step", data, model, tmp_path / "one", *CHANGES)
    together("step-by-step", data, model, tmp_path / "killed", SHARDED, last=6)
    assert [path.name for path in (tmp_path / "killed" / "checkpoints").iterdir()] == ["checkpoint-4"]
    together("step-by-step", data, model, tmp_path / "killed", SHARDED)
    for column in ("loss", "loss_label", "loss_rationale"):
        assert losses(tmp_path / "killed", column) == pytest.approx(losses(tmp_path / "one", column), rel=1e-4)
    assert close(tmp_path / "one", tmp_path / "killed")
