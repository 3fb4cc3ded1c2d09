"""Dry run: parameters, memory, steps and data rate from configs alone."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")
pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")
pytest.importorskip("peft", reason="LoRA is peft's")

from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, SiglipConfig  # noqa: E402 - after the skips
from typer.testing import CliRunner  # noqa: E402

from pairwright.cli.main import app  # noqa: E402
from pairwright.datasets.errors import MissingResourceError, UsageError  # noqa: E402
from pairwright.datasets.shards.samples import Sample, SampleImage  # noqa: E402
from pairwright.datasets.shards.writing import write_shards  # noqa: E402
from pairwright.training.finetuning.arguments import training_arguments  # noqa: E402
from pairwright.training.finetuning.plan import FinetuningPlan, make_plan, sharding_of  # noqa: E402
from pairwright.training.finetuning.run import FinetuningRun, finetune  # noqa: E402
from pairwright.training.recipes.reading import read_recipe  # noqa: E402
from pairwright.training.recipes.settings import FinetuningRecipe  # noqa: E402
from tests.datasets.sample_builders import conversation, pair, picture  # noqa: E402
from tests.training.finetuning import tiny_vlms  # noqa: E402
from tests.training.training_cases import clip, language, shards, student  # noqa: E402


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return shards of 48 scenes."""
    return shards(tmp_path_factory.mktemp("plan"))


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the config of LLaVA-1.5-7B, without weights."""
    folder = tmp_path_factory.mktemp("llava-7b")
    sizes = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
    vision = CLIPVisionConfig(**sizes, image_size=336, patch_size=14)
    text = LlamaConfig(vocab_size=32064)  # the default sizes are those of 7B
    LlavaConfig(vision_config=vision, text_config=text, image_seq_length=576).save_pretrained(folder)
    return str(folder)


def plan(recipe: str, data: str, model: str, *changes: str) -> FinetuningPlan:
    settings = read_recipe(recipe, changes)
    assert isinstance(settings, FinetuningRecipe)
    return make_plan(settings, data, model)


def test_llava_7b_fits_eight_gpus_when_sharded_and_not_without(data: str, llava: str) -> None:
    found = plan("llava-7b-8gpu", data, llava)
    assert (found.trained, found.frozen) == (6_759_919_616, 303_507_456)
    assert (found.gpus, found.per_device, found.accumulation, found.sharding) == (8, 16, 1, "full")
    assert (found.rows, found.steps, found.image_tokens) == (48, 1, 576)
    # Weights, gradients and moments in float32 are 16 bytes a trained parameter, over 8 GPUs.
    assert found.memory.optimizer == pytest.approx(8 * found.trained / 8 / 1e9)
    assert found.memory.gradients == pytest.approx(4 * found.trained / 8 / 1e9)
    assert found.memory.total < 72
    copies = plan("llava-7b-8gpu", data, llava, "trainer.fsdp=false")
    assert copies.memory.total > 110
    assert "does NOT fit" in "\n".join(copies.lines())
    assert [line.split()[0] for line in found.lines()[1:]] == [
        "parameters",
        "batch",
        "memory",
        "weights",
        "steps",
        "loader",
    ]
    assert not any(line.endswith("\\") for line in found.lines())
    assert found.rows_per_second * found.tokens == pytest.approx(found.tokens_per_second)


def test_a_siglip_s_vision_tower_and_a_language_model_are_planned_as_a_llava(data: str, tmp_path: Path) -> None:
    SiglipConfig(vision_config={"num_hidden_layers": 2}).save_pretrained(tmp_path / "siglip")
    LlamaConfig(num_hidden_layers=1).save_pretrained(tmp_path / "language")
    found = plan("llava-align", data, str(tmp_path / "siglip"), f"method.language={tmp_path / 'language'}")
    assert (found.model, found.image_tokens) == ("LlavaForConditionalGeneration", (224 // 16) ** 2)
    assert 0 < found.trained < found.frozen
    with pytest.raises(UsageError, match="no CLIP or SigLIP whose vision tower"):
        plan("llava-align", data, str(tmp_path / "language"), f"method.language={tmp_path / 'language'}")


def test_lora_and_zero_reduce_what_they_are_meant_to(data: str, tmp_path: Path) -> None:
    config = LlavaConfig(
        text_config=LlamaConfig(num_hidden_layers=8), vision_config=CLIPVisionConfig(num_hidden_layers=1)
    )
    config.save_pretrained(tmp_path)
    copies = ("trainer.fsdp=false", "batches.per_device=1")
    lora = plan("llava-7b-8gpu", data, str(tmp_path), *copies, "method.lora.rank=16", "method.weights=bf16")
    assert lora.trained < 0.01 * lora.frozen
    assert lora.memory.weights == pytest.approx(2 * (lora.trained + lora.frozen) / 1e9)
    stages: list[Any] = [{"zero_optimization": {"stage": stage}} for stage in range(4)]
    found = [
        plan("llava-7b-8gpu", data, str(tmp_path), *copies, f"trainer.deepspeed={json.dumps(one)}") for one in stages
    ]
    assert [one.sharding for one in found] == ["none", "zero-1", "zero-2", "full"]
    assert found[1].memory.optimizer == found[0].memory.optimizer / 8
    assert found[2].memory.gradients == found[1].memory.gradients / 8
    assert found[3].memory.weights < found[2].memory.weights


def test_zero_holds_the_model_in_16_bits_and_what_it_offloads_is_not_on_the_gpu(data: str, llava: str) -> None:
    """ZeRO-2 as the recipe's comment says: 2 bytes a weight in each process, the other 14 of a trained one divided."""
    zero: dict[str, Any] = {"stage": 2}
    whole = plan("llava-7b-8gpu", data, llava, f"trainer={json.dumps({'deepspeed': {'zero_optimization': zero}})}")
    divided = (2 + 12) * whole.trained / 8 / 1e9
    assert whole.memory.weights == pytest.approx(2 * (whole.trained + whole.frozen) / 1e9)
    assert whole.memory.gradients + whole.memory.optimizer == pytest.approx(divided)
    assert (whole.memory.total < 72, whole.memory.offloaded) == (True, 0)

    zero["offload_optimizer"] = {"device": "cpu"}
    given = f"trainer={json.dumps({'deepspeed': {'zero_optimization': zero}})}"
    moved = plan("llava-7b-8gpu", data, llava, given)
    assert moved.memory.total == pytest.approx(whole.memory.total - divided)
    assert moved.memory.offloaded == pytest.approx(divided)
    assert "offloaded 11.8" in "\n".join(moved.lines())

    zero |= {"stage": 3, "offload_param": {"device": "nvme"}}
    given = f"trainer={json.dumps({'deepspeed': {'zero_optimization': zero}})}"
    everything = plan("llava-7b-8gpu", data, llava, given)
    assert everything.memory.offloaded == pytest.approx(divided + whole.memory.weights / 8)


def test_models_of_parts_and_students_have_plans(data: str, tmp_path: Path) -> None:
    seeing, words = clip(tmp_path), language(tmp_path / "language")
    found = plan("llava-align", data, seeing, f"method.language={words}", "batches.size=8")
    assert (found.model, found.trained) == ("LlavaForConditionalGeneration", 32 * 20 + 20 + 20 * 20 + 20)
    taught = plan("step-by-step", data, student(tmp_path / "student"))
    assert (taught.frozen, taught.image_tokens, taught.steps) == (0, 0, 10_000)


def test_the_command_prints_a_plan_and_writes_nothing(data: str, tmp_path: Path) -> None:
    asked = ("train", "step-by-step", "--data", data, "--model", student(tmp_path / "student"), "--dry-run")
    done = CliRunner().invoke(app, [*asked, "--out", str(tmp_path / "out"), "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["memory"]["optimizer"] > 0
    assert not (tmp_path / "out").exists()


def test_sharding_of_a_config_file(tmp_path: Path) -> None:
    path = tmp_path / "zero.json"
    path.write_text(json.dumps({"zero_optimization": {"stage": 2}}))
    settings = read_recipe("vlm-instruct", [f"trainer.deepspeed={path}"])
    assert isinstance(settings, FinetuningRecipe)
    assert sharding_of(settings) == "zero-2"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["trainer.deepspeed={zero_optimization: {stage: 2}}"], "mutually exclusive"),
        (["trainer.fsdp_config={transformer_layer_cls_to_wrap: [CLIPEncodeLayer]}"], "Did you mean CLIPEncoderLayer"),
        (["trainer.fsdp_config={state_dict_type: all}"], "refuses these settings: KeyError 'ALL'"),
        (["trainer={deepspeed: 7}"], "trainer.deepspeed is 7: input should be a valid dictionary"),
        (["trainer={deepspeed: {zero_optimization: {stage: 7}}}"], "must be 0, 1, 2 or 3"),
        (["trainer={deepspeed: no.json}"], "Expected a string path to an existing deepspeed config"),
        (["batches.size=100"], "not a multiple of 8 processes"),
        (["method.language=none"], "whose vision tower could be used"),
    ],
)
def test_a_plan_refuses_what_a_run_refuses(data: str, llava: str, changes: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        plan("llava-7b-8gpu", data, llava, *changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["trainer.fspd=true"], "trainer.fspd: no such setting of transformers. Did you mean fsdp?"),
        (["trainer.learning_rate=1"], "trainer.learning_rate has a key of its own"),
        (["trainer.per_device_train_batch_size=4"], "has a key of its own"),
        (["trainer.dataloader_num_workers=4"], "has a key of its own"),
        (["trainer.gradient_checkpointing=true"], "has a key of its own"),
        (["trainer.resume_from_checkpoint=run"], "trainer.resume_from_checkpoint has no effect here"),
        (["trainer.fsdp=wrong"], "Unknown `fsdp` option: wrong"),
        (["trainer.fsdp=[1]"], "trainer.fsdp is [1]: input should be a valid"),
        (["trainer.fsdp=true"], "shards the model over several processes"),
        (["trainer={fsdp: true, fsdp_config: no.json}"], "No such file or directory: 'no.json'"),
        (["trainer={fsdp: true, fsdp_config: {auto_wrap_policy: all}}"], "`auto_wrap_policy` must be one of"),
        (["trainer.optim=adamx"], "adamx is not a valid OptimizerNames"),
        (["trainer.optim_args=fast"], "refuses these settings"),
        (
            ["trainer.label_smoothing_factor=some"],
            "trainer.label_smoothing_factor is 'some': input should be a valid number",
        ),
        (["trainer.accelerator_config=7"], "trainer.accelerator_config is 7: input should be a valid dictionary"),
        (["trainer.accelerator_config={fast: 1}"], "unexpected keyword argument 'fast'"),
        (["trainer.lr_scheduler_kwargs={fast: 1}"], "unexpected keyword argument 'fast'"),
        (["trainer={torch_compile: true, torch_compile_backend: fast}"], "not a valid DynamoBackend"),
        (["trainer={fp16_full_eval: true, bf16_full_eval: true}"], "At most one of fp16 and bf16"),
        (["batches.workers=0", "trainer.dataloader_prefetch_factor=2"], "--dataloader_prefetch_factor can only be set"),
    ],
)
def test_a_plan_and_a_run_refuse_the_same_settings_in_the_same_words(
    data: str, tmp_path: Path, changes: list[str], said: str
) -> None:
    settings = read_recipe("vlm-instruct", changes)
    assert isinstance(settings, FinetuningRecipe)
    model = tiny_vlms.llava(tmp_path / "model")
    with pytest.raises(UsageError) as planned:
        make_plan(settings, data, model)
    with pytest.raises(UsageError) as started:
        finetune(FinetuningRun(settings, data, model, tmp_path / "run"))
    assert said in str(planned.value)
    assert str(planned.value) == str(started.value)


def test_a_setting_in_the_notation_of_yaml_gets_the_type_that_transformers_declares(data: str, tmp_path: Path) -> None:
    """YAML reads 1e-1 as a string, with which transformers failed in the first step."""
    changes = ["trainer.label_smoothing_factor=1e-1", "trainer.torch_empty_cache_steps=3"]
    settings = read_recipe("vlm-instruct", changes)
    assert isinstance(settings, FinetuningRecipe)
    found = training_arguments(settings, tmp_path, validated=False)
    assert (found.label_smoothing_factor, found.torch_empty_cache_steps) == (0.1, 3)


def test_a_plan_joins_no_processes_and_needs_no_installed_packages_of_a_run(
    data: str, llava: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelerate import PartialState  # type: ignore[import-untyped]

    before = dict(PartialState._shared_state)
    for name, value in {"WORLD_SIZE": "8", "RANK": "3", "LOCAL_RANK": "3", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    plan("llava-7b-8gpu", data, llava, "trainer.tf32=true")
    changes = ["trainer={tf32: true, deepspeed: {zero_optimization: {stage: 2}}}"]
    assert plan("llava-7b-8gpu", data, llava, *changes).sharding == "zero-2"
    assert dict(PartialState._shared_state) == before
    assert not torch.distributed.is_initialized()


def test_a_run_with_deepspeed_says_that_it_is_not_installed(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    settings = read_recipe("vlm-instruct", ["trainer.deepspeed={zero_optimization: {stage: 2}}"])
    assert isinstance(settings, FinetuningRecipe)
    with pytest.raises(MissingResourceError, match="pip install deepspeed"):
        training_arguments(settings, tmp_path, validated=False)


def test_a_deepspeed_config_that_contradicts_the_recipe_is_refused(data: str, tmp_path: Path) -> None:
    pytest.importorskip("deepspeed")
    config = {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 3}
    changes = [f"trainer.deepspeed={json.dumps(config)}", "batches.size=8", "hardware.gpus=4"]
    with pytest.raises(UsageError, match="train_micro_batch_size_per_gpu=3 vs hf per_device_train_batch_size=2"):
        plan("vlm-instruct", data, tiny_vlms.llava(tmp_path / "model"), *changes)


def test_the_command_refuses_a_wrong_setting_before_a_run(data: str, tmp_path: Path) -> None:
    asked = ("train", "vlm-instruct", "--data", data, "--model", tiny_vlms.llava(tmp_path / "model"), "--dry-run")
    wrong = ("--out", str(tmp_path / "out"), "--set", "trainer.fsdp=wrong")
    with pytest.raises(UsageError, match="Unknown `fsdp` option: wrong"):
        CliRunner().invoke(app, [*asked, *wrong], catch_exceptions=False)


def test_a_plan_names_the_kind_of_a_model_that_cannot_be_finetuned(data: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is of kind clip; this recipe requires an image-text-to-text model"):
        plan("vlm-instruct", data, clip(tmp_path))


def test_the_tokens_of_a_row_are_those_of_all_its_images(data: str, llava: str, tmp_path: Path) -> None:
    def asked(number: int) -> Sample:
        of = pair(number, "", f"{number}.jpg")
        further = tuple(SampleImage("", picture(), "jpg") for _ in range(number % 2))
        said = conversation(of, "<image><image> same ?" if further else "what ?", "yes .")
        return Sample(of, (said,), (), picture(), "jpg", further_images=further)

    samples = [asked(number) for number in (0, 2, 1, 3)]
    several = plan("llava-7b-8gpu", write_shards(samples, tmp_path / "s").pattern, llava)
    assert (several.images, several.image_tokens) == (1.5, 576)
    assert 864 < several.tokens < 880
    assert "576 of an image; 1.5 images a row" in "\n".join(several.lines())
    single = plan("llava-7b-8gpu", data, llava)
    assert single.images == 1
    assert "576 of an image)" in "\n".join(single.lines())
