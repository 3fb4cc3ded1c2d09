"""Open an export with ms-swift and take one training step: sft or dpo; prints one JSON object.

python open_ms_swift.py FOLDER SCRATCH sft|dpo
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

folder, scratch, stage = sys.argv[1:]
os.environ["ROOT_IMAGE_DIR"] = folder

import cpu_torch  # noqa: E402, F401
import tiny_vlm  # noqa: E402 - ms-swift reads the variable when it is imported
from swift.dataset import load_dataset  # noqa: E402

model = Path(scratch) / "model"
tiny_vlm.save(model)
file = str(Path(folder, f"{stage}.jsonl"))
rows, _ = load_dataset([file], strict=True)
arguments = [
    *("--model", str(model), "--model_type", "llava1_5_hf", "--template", "llava1_5_hf"),
    *("--dataset", file, "--output_dir", f"{scratch}/trained", "--max_steps", "1", "--max_length", "8192"),
    *("--per_device_train_batch_size", "2", "--gradient_accumulation_steps", "1"),
    *("--torch_dtype", "float32", "--tuner_type", "full", "--report_to", "none", "--use_cpu", "true"),
    *("--save_strategy", "no", "--logging_steps", "1", "--split_dataset_ratio", "0", "--attn_impl", "eager"),
    *("--strict", "true", "--dataloader_num_workers", "0"),
]
if stage == "sft":
    from swift.pipelines import sft_main

    result = sft_main(arguments)
else:
    from swift.pipelines import rlhf_main

    result = rlhf_main([*arguments, "--rlhf_type", "dpo"])
loss = next(each["loss"] for each in result["log_history"] if "loss" in each)
print(json.dumps({"version": version("ms-swift"), "rows": len(rows), "loss": loss}))
