"""Trains a tiny CLIP with OpenCLIP's own script: ``train_openclip.py SHARDS SCRATCH [ARGUMENTS]``.

Prints one JSON object: the losses of the log in order, and versions.
"""

import importlib.metadata
import json
import re
import runpy
import sys
from pathlib import Path

import cpu_torch  # noqa: F401 - before everything that imports torchvision

SHARDS, SCRATCH = map(Path, sys.argv[1:3])
MORE = sys.argv[3:]
TINY = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 32, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
}
FIXED = (
    *(
        "--dataset-type",
        "webdataset",
        "--train-data",
        str(SHARDS),
        "--model",
        "tiny",
        "--workers",
        "1",
        "--epochs",
        "1",
    ),
    *("--batch-size", "16", "--lr", "1e-3", "--warmup", "1", "--log-every-n-steps", "1", "--precision", "fp32"),
    *("--logs", str(SCRATCH), "--name", "run", "--device", "cpu", "--seed", "0"),
)


def main() -> None:
    """Run the script, and print what its log holds."""
    import open_clip

    configs = SCRATCH / "configs"
    configs.mkdir(parents=True, exist_ok=True)
    biased = {"init_logit_bias": -10.0} if "--siglip" in MORE else {}
    (configs / "tiny.json").write_text(json.dumps(TINY | biased))
    open_clip.add_model_config(configs)
    sys.argv = ["main.py", *FIXED, *MORE]
    runpy.run_module("open_clip_train.main", run_name="__main__")
    log = (SCRATCH / "run" / "out.log").read_text()
    losses = [float(number) for number in re.findall(r" Loss: ([\d.]+)", log)]
    names = ("open_clip_torch", "webdataset", "torch")
    versions = {name: importlib.metadata.version(name) for name in names}
    print(json.dumps({"losses": losses, "versions": versions}))


if __name__ == "__main__":
    main()
