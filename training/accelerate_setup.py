"""Process group and precision of a training run, set up by accelerate.

`torchrun`, `mpirun` and `accelerate launch` pass the number of processes in environment variables; `accelerate launch`
also passes its config. Unsupported launch settings raise `UsageError`. Processes without a GPU use the CPU (gloo).
"""

import os

import torch
from accelerate import Accelerator, PartialState  # type: ignore[import-untyped]
from accelerate.state import AcceleratorState  # type: ignore[import-untyped]
from accelerate.utils import (  # type: ignore[import-untyped]
    DistributedDataParallelKwargs,
    get_int_from_env,
    parse_flag_from_env,
)

from pairwright.datasets.errors import UsageError
from pairwright.datasets.worker_processes import available_cores

_SIZES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
_RANKS = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
_MAX_WORKERS = 16
_SHARDED = {
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_FSDP": "FSDP",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "a parallelism config",
}


def start_processes(precision: str) -> Accelerator:
    """Join the process group that this process was launched into, if any.

    Args:
        precision: auto, fp32, bf16 or fp16. auto: what accelerate's config asks for, else bf16 on a GPU that has it, else
            fp32. With all but fp32, a GPU multiplies what stays float32 as TF32.

    Raises:
        UsageError: accelerate's config asks for an unsupported feature (sharded models, gradient accumulation, another
            precision); accelerate joined fewer processes than were launched; the device lacks the precision.
    """
    _refuse_config(precision)
    started = get_int_from_env(_SIZES, 1)
    cpu = _join_process_group(started)
    AcceleratorState._reset_state()  # noqa: SLF001 - a second run would keep the first one's precision
    try:
        mixed = _mixed_precision(precision)
        # Parameters alone differ after a step. Buffers are constants: nothing to broadcast.
        parallel = DistributedDataParallelKwargs(broadcast_buffers=False, gradient_as_bucket_view=True)
        accelerator = Accelerator(mixed_precision=mixed, cpu=cpu, kwargs_handlers=[parallel])
    except ValueError as error:
        raise UsageError(f"precision {precision}: {str(error).splitlines()[0]} Set precision to fp32.") from None
    if accelerator.num_processes != started:
        raise UsageError(
            f"{started} processes were started, but accelerate joined {accelerator.num_processes} on "
            f"{accelerator.device.type}: each would train a separate copy. Launch with `torchrun --nproc-per-node "
            f"{started} -m pairwright train ...`, or unset WORLD_SIZE for one process."
        )
    if mixed == "fp16" and accelerator.device.type == "cpu":
        raise UsageError("fp16 requires a GPU. Set precision to fp32 or bf16.")
    if accelerator.device.type == "cuda":
        torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")
        torch.backends.cudnn.allow_tf32 = precision != "fp32"
    return accelerator


def _mixed_precision(precision: str) -> str:
    """Return accelerate's name of a precision: no, bf16 or fp16."""
    if precision != "auto":
        return "no" if precision == "fp32" else precision
    launched = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if launched in {"bf16", "fp16"}:
        return launched
    return "bf16" if PartialState().device.type == "cuda" and torch.cuda.is_bf16_supported() else "no"


def default_workers(processes: int) -> int:
    """Return the loading processes per training process: an equal share of the cores, from 1 to 16.

    ``processes``: training processes on all machines.
    """
    here: int = min(get_int_from_env(_LOCAL_SIZES, processes), processes)
    return max(1, min(_MAX_WORKERS, available_cores() // here))


def _join_process_group(started: int) -> bool:
    """Join the launched processes and return whether accelerate needs `cpu=True`, without which it joins no others on a CPU."""
    launched = not torch.accelerator.is_available() and get_int_from_env(_RANKS, -1) >= 0
    cpu: bool = launched or parse_flag_from_env("ACCELERATE_USE_CPU")
    try:
        PartialState(cpu)
    except ValueError as error:
        PartialState._reset_state()  # noqa: SLF001 - it is half initialized
        raise UsageError(
            f"{started} launched processes cannot be joined: {str(error).splitlines()[0]}. Launch with `torchrun "
            f"--nproc-per-node {started} -m pairwright train ...`, or unset WORLD_SIZE and RANK for one process."
        ) from None
    return cpu


def _refuse_config(precision: str) -> None:
    for name, what in _SHARDED.items():
        if parse_flag_from_env(name):
            raise UsageError(
                f"accelerate's config asks for {what} ({name}), which is not supported: each process holds the whole model. "
                "Launch with `accelerate launch --multi_gpu --num_processes N -m pairwright train ...`, or choose another "
                "--config_file."
            )
    if (steps := os.environ.get("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "1")) not in {"1", ""}:
        raise UsageError(
            f"accelerate's config asks for gradient_accumulation_steps {steps}, which is not supported: a contrastive "
            "loss compares all rows of a batch. Set it to 1; batches.chunk divides a large batches.size into passes that "
            "fit in memory, with the same gradients."
        )
    asked = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if precision != "auto" and asked not in {"no", "", precision}:
        raise UsageError(
            f"accelerate's config asks for mixed precision {asked}, the recipe sets {precision}. Pass --set "
            f"precision={asked}, or launch with --mixed_precision no."
        )
