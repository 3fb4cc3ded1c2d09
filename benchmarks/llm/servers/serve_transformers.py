"""Runs ``transformers serve`` where Qwen2.5-VL's processor is that of images alone: that of videos needs torchvision.

python serve_transformers.py serve --port PORT
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[3])

from transformers.cli.transformers import main  # noqa: E402 - needs the path

import tests.training.finetuning.tiny_vlms  # noqa: E402, F401 - registers the processor

main()
