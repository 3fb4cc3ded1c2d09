"""Arithmetic and arguments of the GPU benchmark, which need no GPU."""

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from benchmarks.trainer import gpu  # noqa: E402 - behind the guard of torch


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
