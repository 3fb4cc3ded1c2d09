"""Finetuning runs: learning, checkpoints, resuming, outputs that transformers opens, and error messages."""

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from PIL import Image  # noqa: E402 - after the skips
from safetensors.torch import load_file, save_file  # noqa: E402

from pairwright.datasets.errors import InputError, UsageError  # noqa: E402
from pairwright.datasets.shards.layout import find_shards  # noqa: E402
from pairwright.datasets.shards.reading import read_shard  # noqa: E402
from pairwright.datasets.shards.samples import Sample, SampleImage  # noqa: E402
from pairwright.datasets.shards.writing import write_shards  # noqa: E402
from pairwright.filters.metrics.answer_judging import ImageQuestion  # noqa: E402
from pairwright.training.evaluation.evaluated_models import identify_model, open_models  # noqa: E402
from pairwright.training.evaluation.image_answers import generate_answers  # noqa: E402
from pairwright.training.finetuning.networks import tie_embedding_modules  # noqa: E402
from pairwright.training.finetuning.run import FinetuningRun, finetune  # noqa: E402
from pairwright.training.models.generative import EncoderDecoder, ImageTextModel  # noqa: E402
from pairwright.training.models.registry import open_model  # noqa: E402
from pairwright.training.recipes.reading import read_recipe  # noqa: E402
from pairwright.training.recipes.settings import FinetuningRecipe  # noqa: E402
from pairwright.training.trainer import TrainingReport  # noqa: E402
from tests.datasets.sample_builders import conversation, pair, picture  # noqa: E402
from tests.training import tiny_models  # noqa: E402
from tests.training.finetuning import tiny_vlms  # noqa: E402
from tests.training.training_cases import clip, language, shards, student  # noqa: E402

SMALL = [
    "batches.size=8",
    "batches.workers=0",
    "optimizer.lr=1e-2",
    "schedule.steps=10",
    "schedule.warmup=0",
    "log_every=1",
    "precision=fp32",
]
GROUPED = "batches.group_by_length=true"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return shards of 48 scenes."""
    return shards(tmp_path_factory.mktemp("finetuning"))


def run(recipe: str, data: str, model: str, out: Path, *changes: str, **named: Any) -> TrainingReport:
    settings = read_recipe(recipe, [*SMALL, *changes])
    assert isinstance(settings, FinetuningRecipe)
    return finetune(FinetuningRun(settings, data, model, out, **named))


def losses(out: Path, column: str = "loss") -> list[float]:
    with (out / "log.csv").open(newline="") as file:
        return [float(row[column]) for row in csv.DictReader(file) if row[column]]


def weights(folder: Path) -> dict[str, Any]:
    return load_file(folder / "model.safetensors")


def changed(before: str, after: Path) -> set[str]:
    one, other = weights(Path(before)), weights(after)
    assert one.keys() == other.keys()
    return {name for name in one if not torch.equal(one[name], other[name])}


@pytest.mark.parametrize(
    ("kind", "recipe"), [("llava", "llava-instruct"), ("llava_next", "llava-instruct"), ("qwen", "vlm-instruct")]
)
def test_a_model_learns_and_opens_in_the_pipeline_of_transformers(
    data: str, tmp_path: Path, kind: str, recipe: str
) -> None:
    from transformers import pipeline

    model = getattr(tiny_vlms, kind)(tmp_path / "model")
    report = run(recipe, data, model, tmp_path / "run")
    assert (report.unit, report.samples, report.steps, report.skipped) == ("conversations", 48, 10, {})
    assert losses(tmp_path / "run")[-1] < 0.9 * losses(tmp_path / "run")[0]
    touched = changed(model, tmp_path / "run" / "model")
    seeing = {name for name in touched if "vision" in name or "visual" in name}
    assert touched > seeing
    assert bool(seeing) == (kind == "qwen")
    files = {path.name for path in (tmp_path / "run" / "model").iterdir()}
    assert files >= {
        "config.json",
        "model.safetensors",
        "processor_config.json",
        "tokenizer.json",
        "chat_template.jinja",
    }
    assert not [name for name in files if name.endswith((".bin", ".pt"))]
    asked = [{"role": "user", "content": [{"type": "image", "image": Image.new("RGB", (40, 24), "red")}]}]
    asked[0]["content"].append({"type": "text", "text": "what colour is it ?"})  # type: ignore[attr-defined]
    found = pipeline("image-text-to-text", model=report.model, device="cpu")(text=asked, max_new_tokens=3)
    assert isinstance(found[0]["generated_text"], list)


@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_a_model_learns_from_conversations_about_two_images(tmp_path: Path, kind: str) -> None:
    def asked(number: int) -> Sample:
        of = pair(number, "", f"{number}.jpg")
        said = conversation(of, "<image>\nwhat colour is it ?", "red .", "<image>\nis it a circle ?", "no .")
        further = (SampleImage("", picture("green"), "jpg"),)
        return Sample(of, (said,), (), picture(), "jpg", further_images=further)

    data = write_shards(map(asked, range(16)), tmp_path / "shards").pattern
    model = getattr(tiny_vlms, kind)(tmp_path / "model")
    report = run("vlm-instruct", data, model, tmp_path / "run", "schedule.steps=4")
    assert (report.samples, report.left_out, report.skipped, report.cut) == (16, {}, {}, 0)
    assert losses(tmp_path / "run")[-1] < 0.9 * losses(tmp_path / "run")[0]


def test_a_llava_of_parts_is_aligned_and_then_instructed_and_answers(data: str, tmp_path: Path) -> None:
    seeing, words = clip(tmp_path), f"method.language={language(tmp_path / 'language')}"
    first = run("llava-align", data, seeing, tmp_path / "align", words)
    opened = open_model(first.model)
    assert isinstance(opened, ImageTextModel)
    assert type(opened.network).__name__ == "LlavaForConditionalGeneration"
    tower = {name.removeprefix("vision_model."): one for name, one in weights(Path(seeing)).items()}
    kept = opened.network.model.vision_tower.state_dict()
    assert all(torch.equal(one, tower[name.removeprefix("vision_model.")]) for name, one in kept.items())
    assert first.trained == sum(one.numel() for one in opened.network.model.multi_modal_projector.parameters())
    assert "vision_tower.vision_model.embeddings.class_embedding" in weights(Path(first.model))
    second = run("llava-instruct", data, str(tmp_path / "align"), tmp_path / "instruct")
    assert first.trained < second.trained
    picture = tmp_path / "p.png"
    Image.new("RGB", (40, 24), "red").save(picture)
    (subject,) = open_models([identify_model(str(tmp_path / "instruct"))], "cpu")
    question = ImageQuestion("a", str(picture), "what colour is it ?", "red", "")
    assert len(generate_answers(subject, [question, question], longest=3)) == 2
    with pytest.raises(UsageError, match="this recipe requires an image-text-to-text model"):
        run("llava-instruct", data, seeing, tmp_path / "three")
    with pytest.raises(UsageError, match=r"remove method\.language"):
        run("llava-align", data, first.model, tmp_path / "four", words)


@pytest.mark.parametrize(
    ("more", "kept"),
    [(("save_every=3",), {"checkpoint-3", "checkpoint-6"}), (("save_every=4", GROUPED), {"checkpoint-4"})],
)
def test_a_resumed_run_ends_as_an_uninterrupted_one(
    data: str, tmp_path: Path, more: tuple[str, ...], kept: set[str]
) -> None:
    """Between epochs and within one; batches of rows of similar length were others after a resume within a later epoch."""
    model = tiny_vlms.llava(tmp_path / "model")
    changes = ("schedule.steps=8", "keep=3", "batches.window=16", "batches.size=16", *more)
    run("vlm-instruct", data, model, tmp_path / "whole", *changes)

    class Killed(Exception):  # noqa: N818 - it is what happens
        """The run is interrupted."""

    def kill(line: str) -> None:
        if line.startswith("  step 7 "):
            raise Killed

    with pytest.raises(Killed):
        run("vlm-instruct", data, model, tmp_path / "parts", *changes, on_message=kill)
    assert {path.name for path in (tmp_path / "parts" / "checkpoints").iterdir()} == kept
    run("vlm-instruct", data, model, tmp_path / "parts", *changes, resume=True)
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    assert not changed(str(tmp_path / "whole" / "model"), tmp_path / "parts" / "model")
    with pytest.raises(UsageError, match=r"started with optimizer\.lr 0\.01, not 0\.5"):
        run("vlm-instruct", data, model, tmp_path / "parts", *changes, "optimizer.lr=0.5", resume=True)


@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_accumulated_gradients_are_those_of_the_whole_batch(data: str, tmp_path: Path, kind: str) -> None:
    model = getattr(tiny_vlms, kind)(tmp_path / "model")
    for name, changes in (("one", ()), ("four", ("batches.per_device=2", "gradient_checkpointing=true"))):
        run("vlm-instruct", data, model, tmp_path / name, *changes, "schedule.steps=3")
    assert losses(tmp_path / "four") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)


def test_evaluation_during_the_run_keeps_the_best_weights_if_asked(data: str, tmp_path: Path) -> None:
    model = tiny_vlms.llava(tmp_path / "model")
    best = ("trainer.load_best_model_at_end=true", "save_every=2", "schedule.steps=8", "optimizer.lr=0.3", "keep=4")
    run("llava-instruct", data, model, tmp_path / "run", *best, validation=data)
    looks = losses(tmp_path / "run", "validation")
    assert len(looks) == 4
    chosen = tmp_path / "run" / "checkpoints" / f"checkpoint-{2 * looks.index(min(looks)) + 2}"
    expected, found = (load_file(folder / "model.safetensors") for folder in (chosen, tmp_path / "run" / "model"))
    assert sum(one.double().sum() for one in found.values()) == sum(one.double().sum() for one in expected.values())
    with pytest.raises(UsageError, match="load_best_model_at_end"):
        run("llava-instruct", data, model, tmp_path / "other", best[0])


def test_a_run_shorter_than_a_row_of_the_log_has_its_loss(data: str, tmp_path: Path) -> None:
    """It was reported as 0."""
    model = tiny_vlms.llava(tmp_path / "model")
    done = run("llava-instruct", data, model, tmp_path / "run", "log_every=10", "schedule.steps=2")
    assert losses(tmp_path / "run") == [pytest.approx(done.loss)]
    assert done.loss > 0


def test_lora_trains_few_parameters_and_leaves_a_plain_model(data: str, tmp_path: Path) -> None:
    model = tiny_vlms.llava(tmp_path / "model")
    report = run("llava-instruct", data, model, tmp_path / "run", "method.lora.rank=2", "schedule.steps=4")
    assert 0 < report.trained < report.frozen / 5
    touched = changed(model, tmp_path / "run" / "model")
    assert touched
    assert all("language_model" in name or "multi_modal_projector" in name for name in touched)
    assert (tmp_path / "run" / "adapter" / "adapter_config.json").is_file()


@pytest.mark.parametrize("changes", [(), ("method.lora.rank=2",)])
def test_a_llava_is_written_with_the_names_of_the_hub(data: str, tmp_path: Path, changes: tuple[str, ...]) -> None:
    """A model that had been assembled, or saved by transformers without being loaded, did not open in vLLM."""
    model = tmp_path / "model"
    tiny_vlms.llava(model)
    known = weights(model)
    assert "vision_tower.vision_model.embeddings.class_embedding" in known
    save_file({name.replace("vision_model.", ""): one for name, one in known.items()}, model / "model.safetensors")
    report = run("llava-instruct", data, str(model), tmp_path / "run", "schedule.steps=1", *changes)
    assert weights(Path(report.model)).keys() == known.keys()


def test_text_only_and_broken_samples_do_not_stop_a_run(data: str, tmp_path: Path) -> None:
    known = [sample for path in find_shards(Path(data)) for sample in read_shard(path)][:16]
    seen = [replace(known[0], image=b"no image"), *known[1:8]]
    (tmp_path / "mixed").mkdir()
    for name, samples in (("seen", seen), ("texts", [replace(one, image=None, image_ext="") for one in known[8:]])):
        (shard,) = find_shards(Path(write_shards(samples, tmp_path / name).pattern))
        shutil.copy(shard, tmp_path / "mixed" / f"{name}.tar")
    given, texts = str(tmp_path / "mixed"), str(tmp_path / "texts")
    model = tiny_vlms.llava(tmp_path / "model")
    report = run("llava-instruct", given, model, tmp_path / "run", "batches.size=2", GROUPED)
    assert (report.samples, report.skipped) == (16, {"bad_image": 1})
    assert json.loads((tmp_path / "run" / "skipped.jsonl").read_text())["why"].startswith("bad_image")
    run("llava-align", texts, model, tmp_path / "align", "schedule.steps=2")
    with pytest.raises(InputError, match="bad_image"):
        run("llava-instruct", given, model, tmp_path / "stop", on_error="stop")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("trainer.optim=nothing",), "refuses these settings"),
        (("batches.per_device=3",), "batches.size 8 is not a multiple of 1 processes x per_device 3"),
        (("trainer.learning_rat=1",), "Did you mean learning_rate?"),
        (("trainer.learning_rate=1",), "trainer.learning_rate has a key of its own"),
        (("method.freeze=[nothing.*]",), "has no parameter nothing.*"),
        (("method.chat_template=none.jinja",), "none.jinja': path does not point to a file"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(data: str, tmp_path: Path, changes: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        run("llava-instruct", data, tiny_vlms.llava(tmp_path / "model"), tmp_path / "run", *changes)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "objectives", ["multi-task", *(pytest.param(name, marks=pytest.mark.slow) for name in ("single-task", "label"))]
)
def test_a_student_learns_labels_and_rationales(data: str, tmp_path: Path, objectives: str) -> None:
    words = student(tmp_path / "student")
    report = run("step-by-step", data, words, tmp_path / "run", f"method.objectives={objectives}")
    assert losses(tmp_path / "run")[-1] < 0.8 * losses(tmp_path / "run")[0]
    with (tmp_path / "run" / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert isinstance(open_model(report.model), EncoderDecoder)
    if objectives == "multi-task":
        total = float(rows[3]["loss_label"]) + float(rows[3]["loss_rationale"])
        assert total == pytest.approx(float(rows[3]["loss"]), rel=1e-4)


def test_the_first_loss_of_a_student_is_that_of_the_objective(data: str, tmp_path: Path) -> None:
    """Eq. 2.3 by the objective's own function on the same rows, with accumulation and a weight."""
    from pairwright.training.finetuning.dataset import EpochOrder, open_dataset
    from pairwright.training.loading.rationales import RationaleCollator
    from pairwright.training.objectives.step_by_step import WrittenTexts, multi_task_loss

    words = student(tmp_path / "student")
    changes = ("batches.per_device=2", "method.rationale_weight=0.5", "schedule.steps=1")
    run("step-by-step", data, words, tmp_path / "run", *changes)
    model = open_model(words)
    assert isinstance(model, EncoderDecoder)
    collator = RationaleCollator("multi-task", "train", model.processor)
    dataset = open_dataset(data, collator)
    first = list(EpochOrder(dataset.index.counts, 100_000, 0))[:8]
    batch = collator([dataset[number] for number in first])
    logits = model.network(**{name: batch[name] for name in ("input_ids", "attention_mask", "labels")}).logits
    both = [
        WrittenTexts(logits[rows], batch["labels"][rows], batch["labels"][rows] >= 0)
        for rows in (~batch["rationale"], batch["rationale"])
    ]
    assert losses(tmp_path / "run")[0] == pytest.approx(multi_task_loss(both[0], both[1], 0.5).loss.item(), rel=1e-6)


def test_a_file_of_rationale_rows_trains_a_student(tmp_path: Path) -> None:
    rows = io.StringIO()
    for number in range(8):
        for objective, output in (("label", "red"), ("rationale", "it is red")):
            row = {
                "id": str(number),
                "objective": objective,
                "input": "what is it ?",
                "output": output,
                "split": "train",
            }
            rows.write(json.dumps(row) + "\n")
    (tmp_path / "rows.jsonl").write_text(rows.getvalue())
    report = run("step-by-step", str(tmp_path / "rows.jsonl"), student(tmp_path / "student"), tmp_path / "run")
    assert (report.samples, report.steps) == (8, 10)


def test_an_embedding_that_encoder_and_decoder_share_is_once_in_the_state() -> None:
    """A sharded model with several names for one weight could be saved, and not be resumed."""
    model = tiny_models.student()
    tie_embedding_modules(model)
    state = model.state_dict()
    assert [name for name in state if "shared" in name or "embed_tokens" in name] == ["shared.weight"]
    state["shared.weight"] = state["shared.weight"] + 1
    assert not any(model.load_state_dict(state))
    for tower in (model.get_encoder(), model.get_decoder()):
        assert torch.equal(tower.get_input_embeddings().weight, state["shared.weight"])


@pytest.mark.slow
def test_rows_of_the_log_are_reported_below_the_run_folder(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transformers wrote them to the working folder, and a resumed run started another report."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    words, out = student(tmp_path / "student"), tmp_path / "run"
    run("step-by-step", data, words, out, "schedule.steps=1", report_to=("wandb",))
    assert not (tmp_path / "wandb").exists()
    (folder,) = (out / "wandb").glob("offline-run-*")
    assert folder.name.endswith((out / "reporting_id").read_text().strip())
