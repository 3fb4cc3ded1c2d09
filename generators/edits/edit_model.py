"""The edit model of a caption pool: its cloze model, and the word balance of each type of edit.

It is learned with the word statistics (stage ``words``, or before a generation from the command line) and stored beside
them. A pool that is too small uses a carried model of general captions.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pairwright.generators.language.cloze.model import ClozeModel


@dataclass(frozen=True)
class EditModel:
    """What is learned of a pool to rank and sample edits.

    Attributes:
        cloze: predicts words and phrases in slots.
        balance: type of edit to the balance of each word, natural logarithms; see `word_balance`.
    """

    cloze: ClozeModel
    balance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
