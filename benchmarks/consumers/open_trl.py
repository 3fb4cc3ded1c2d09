"""Open an export with `datasets` and take one training step with TRL: sft or dpo; prints one JSON object.

python open_trl.py FOLDER SCRATCH sft|dpo
"""

import json
import sys

import cpu_torch  # noqa: F401 - first
import trl
from tiny_vlm import make_model, make_processor

from datasets import load_dataset

folder, scratch, stage = sys.argv[1:]
rows = load_dataset(folder, split="train")
options = {
    "output_dir": f"{scratch}/trained",
    "max_steps": 1,
    "per_device_train_batch_size": 2,
    "use_cpu": True,
    "bf16": False,
    "report_to": [],
    "save_strategy": "no",
    "max_length": None,
}
if stage == "sft":
    trainer = trl.SFTTrainer(
        make_model(), trl.SFTConfig(**options), train_dataset=rows, processing_class=make_processor()
    )
else:
    trainer = trl.DPOTrainer(
        make_model(), make_model(), args=trl.DPOConfig(**options), train_dataset=rows, processing_class=make_processor()
    )
loss = trainer.train().training_loss
images = sum(len(row["images"]) for row in rows.select(range(min(100, len(rows)))))
print(json.dumps({"version": trl.__version__, "rows": len(rows), "images": images, "loss": loss}))
