"""Import this first where torch is a build for CPUs and torchvision and torchaudio, from PyPI, are builds for CUDA.

Their compiled parts do not load there, and their imports fail: torchvision describes two operators that it lacks, and
torchaudio loads its library at once. Declared here, the operators can be described; torchaudio is an empty module. Nothing
calls either: the exports have no sound, and images pass through Pillow.
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import torch

if torch.version.cuda is None:
    LIBRARY = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        LIBRARY.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    sys.modules["torchaudio"].__spec__ = ModuleSpec("torchaudio", None)
