"""Open a folder for the Hub with `datasets`, decode every image; prints one JSON object.

python open_hub_folder.py FOLDER SCRATCH
"""

import json
import sys

import datasets

folder, _ = sys.argv[1:]
rows = datasets.load_dataset(folder, split="train")
images = sum(row["image"] is not None and row["image"].size[0] > 0 for row in rows)
print(json.dumps({"library": "datasets", "version": datasets.__version__, "rows": len(rows), "images": images}))
