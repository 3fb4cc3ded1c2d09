"""Open an export with LLaMA-Factory and take one training step: sft or dpo; prints one JSON object.

python open_llamafactory.py FOLDER SCRATCH sft|dpo
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import cpu_torch  # noqa: F401 - first
import tiny_vlm
from llamafactory.train.tuner import run_exp

folder, scratch, stage = sys.argv[1:]
model = Path(scratch) / "model"
tiny_vlm.save(model)
info = json.loads(Path(folder, "dataset_info.json").read_text())
name = next(each for each, about in info.items() if bool(about.get("ranking")) == (stage == "dpo"))
run_exp(
    {
        "model_name_or_path": str(model),
        "stage": stage,
        "do_train": True,
        "finetuning_type": "full",
        "template": "llava",
        "dataset_dir": folder,
        "media_dir": folder,
        "dataset": name,
        "output_dir": f"{scratch}/trained",
        "overwrite_cache": True,
        "cutoff_len": 2048,
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "save_strategy": "no",
        "logging_steps": 1,
        "report_to": "none",
        "use_cpu": True,
        "preprocessing_num_workers": 1,
        "remove_unused_columns": False,
    }
)
result = json.loads(Path(scratch, "trained", "train_results.json").read_text())
with Path(folder, info[name]["file_name"]).open() as lines:
    rows = sum(1 for _ in lines)
print(json.dumps({"version": version("llamafactory"), "rows": rows, "loss": result["train_loss"]}))
