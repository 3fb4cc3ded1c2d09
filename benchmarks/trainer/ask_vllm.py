"""Greedy answers of a checkpoint by vLLM, in its own environment: a line of JSON for each colour.

python ask_vllm.py FOLDER IMAGE...
"""

import base64
import json
import sys
from pathlib import Path

from vllm import LLM, SamplingParams

QUESTION, LONGEST = "what colour is it ?", 12


def answer(folder: str, images: list[str]) -> None:
    """Print ids of the prompt and of the answer about each image."""
    model = LLM(
        folder, max_model_len=256, max_num_batched_tokens=512, max_num_seqs=2, dtype="float32", enforce_eager=True
    )
    for image in images:
        url = "data:image/png;base64," + base64.b64encode(Path(image).read_bytes()).decode()
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": QUESTION}]
        asked = [{"role": "user", "content": content}]
        (found,) = model.chat(asked, SamplingParams(temperature=0, max_tokens=LONGEST), use_tqdm=False)
        print(json.dumps([list(found.prompt_token_ids), list(found.outputs[0].token_ids)]), flush=True)


if __name__ == "__main__":  # vLLM starts processes that import this file
    answer(sys.argv[1], sys.argv[2:])
