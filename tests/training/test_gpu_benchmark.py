"""Arithmetic and arguments of the GPU benchmarks, which need no GPU, and a tiny run of the LLaVA's."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

pytest.importorskip("accelerate", reason="the trainer's processes are those of accelerate")

from benchmarks.trainer import gpu, gpu_llava  # noqa: E402 - behind the guards
from pairwright.training.finetuning.networks import assemble_llava  # noqa: E402
from tests.training.training_cases import processes, shards  # noqa: E402


def test_flops_are_those_of_the_matrix_products_of_vit_b_32() -> None:
    def product(rows: int, inner: int, columns: int) -> int:
        return 2 * rows * inner * columns

    def tower(tokens: int, width: int) -> int:
        attention = 4 * product(tokens, width, width) + 2 * product(tokens, width, tokens)
        return 12 * (attention + product(tokens, width, 4 * width) + product(tokens, 4 * width, width))

    image = product(49, 3 * 32 * 32, 768) + tower(50, 768) + product(1, 768, 512)
    text = tower(77, 512) + product(1, 512, 512)
    assert gpu.training_flops() == 3 * (image + 4 * text)


@pytest.mark.parametrize(
    ("device", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA L40", 181),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("NVIDIA A10", 0),
    ],
)
def test_the_peak_is_that_of_the_device_and_not_of_one_with_a_similar_name(device: str, peak: float) -> None:
    """An L40 had the peak of an L4, an H100 NVL that of an H100."""
    assert gpu.peak_tflops(device) == peak


def test_a_run_without_a_measured_row_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It divided by zero after the training."""
    monkeypatch.setattr("sys.argv", ["gpu", "--steps", "1"])
    with pytest.raises(SystemExit):
        gpu.main()
    assert "--steps must be 2 or more" in capsys.readouterr().err


def test_without_a_gpu_the_benchmark_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["gpu"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="requires a CUDA GPU"):
        gpu.main()


@pytest.mark.parametrize("further", [20, 200])
def test_flops_of_a_llava_are_those_that_torch_counts(tmp_path: Path, further: int) -> None:
    """But for the tower's last layer, and gradients of a projection's input, which nothing needs."""
    from torch.utils.flop_counter import FlopCounterMode

    sizes = gpu_llava.TINY
    gpu_llava.write_parts(shards(tmp_path / "data", 4), tmp_path, sizes)
    network = assemble_llava(str(tmp_path / "clip"), str(tmp_path / "language")).network
    network.set_attn_implementation("eager")
    network.model.vision_tower.requires_grad_(False)
    ids = torch.tensor([[network.config.image_token_index] * 4 + [5] * further])
    with FlopCounterMode(display=False) as counter:
        network(input_ids=ids, labels=ids, pixel_values=torch.zeros(1, 3, sizes.image, sizes.image)).loss.backward()
    assert sizes.row_flops(4 + further) == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_a_llava_is_measured_in_one_process_and_without_a_gpu_only_if_tiny(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["gpu_llava"])
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(SystemExit):
        gpu_llava.main()
    assert "torchrun --nproc-per-node 1" in capsys.readouterr().err
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="requires a CUDA GPU"):
        gpu_llava.main()


@pytest.mark.slow
def test_a_tiny_llava_is_measured_on_a_cpu(tmp_path: Path) -> None:
    small = ("--tiny", "--batch", "4", "--steps", "4", "--set", "batches.workers=0", "precision=fp32")
    done = processes(1, "benchmarks.trainer.gpu_llava", *small, "--data", shards(tmp_path / "data"))
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first == "tiny, 865,152 parameters trained, 138,240 frozen; MULTI_CPU"
    assert " s a step of 4 rows, " in second
    assert " of 1 TFLOPS" in third
