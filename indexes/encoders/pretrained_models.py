"""What the encoders that are neural models share: device, precision, fingerprint, and the file that names the model.

*Precision.* ``half`` means that the weights are rounded to 16 bits. A GPU then computes in 16 bits, too; a CPU computes
in 32 bits with the rounded weights, so that an index built on a GPU can be searched without one. That is why ``half``
is part of the fingerprint and the device is not.

*Fingerprint.* Over the method's name and version, the weights' bytes as float32, and the settings that change a row.
Files are not hashed but what was loaded from them: a checkpoint keeps its fingerprint when it is stored in another
format, moved, or loaded by another version of a library. It takes 0.6 seconds a gigabyte of float32 weights, each time
an encoder is loaded.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.indexes.encoders.protocols import Vectors

if TYPE_CHECKING:
    import torch

# What a tokenizer does with these says whether it is the same: case, accents, digits, signs, spaces, scripts, long words.
_TOKENIZER_SAMPLES = (
    "",
    "A photo of a dog.",
    "Two CATS' tails, 12,345 km away -- isn't it?",
    "  tabs\tand\nnew lines  ",
    "Crème brûlée à l'Élysée; naïve façade",
    "日本の猫 и собака 🐶 #hashtag @name http://example.org/a_b?c=d&e=%20",
    "antidisestablishmentarianism floccinaucinihilipilification",
    "&amp; <start_of_text> <|endoftext|> [CLS] [MASK] [PAD]",
)


@dataclass(frozen=True)
class SavedModelReference:
    """What ``encoder.json`` holds.

    Attributes:
        name: of the method.
        version: of the method.
        model: absolute path or hub name of the checkpoint; empty for the method's usual one.
        half: weights rounded to 16 bits.
        dim: length of a vector.
        fingerprint: of the encoder that was saved.
    """

    name: str
    version: int
    model: str
    half: bool
    dim: int
    fingerprint: str

    def write(self, path: Path) -> None:
        """Write to ``path``, whole or not at all."""
        write_text(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path, name: str, version: int) -> "SavedModelReference":
        """Read what `write` wrote.

        Raises:
            StorageError: when the file is missing, torn, or of another method or version.
        """
        try:
            saved = cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise StorageError(f"{path}: no such file. Build the index that it belongs to.") from None
        except (OSError, ValueError, TypeError) as error:
            raise StorageError(f"{path}: not a whole encoder file ({error}). Build the index again.") from None
        if (saved.name, saved.version) != (name, version):
            raise StorageError(f"{path}: not of {name} version {version}. Build the index again.")
        return saved

    def check(self, fingerprint: str, path: Path, model: str) -> None:
        """Raise StorageError when the encoder that was loaded is not the one that was saved."""
        if fingerprint != self.fingerprint:
            raise StorageError(
                f"{path}: the index was built with another checkpoint than {model or 'the usual one'} is now (other weights, "
                "tokenizer or settings). Name the folder of the right one, or build the index again."
            )


def absolute_model_name(model: str) -> str:
    """Return a model's name as it is saved: a folder by its absolute path, since a command may run from anywhere."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if model and folder.is_dir() else model


def choose_device(wanted: str) -> "torch.device":
    """Return the device that is wanted, or for an empty word the first GPU, else the CPU.

    Raises:
        UsageError: when torch knows no such device or it is not there.
    """
    import torch

    name = wanted or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UsageError(f"device {name!r}: cannot be used here ({reason}). There is always: cpu.") from None
    return device


def move_to_device(module: "torch.nn.Module", device: "torch.device", *, half: bool) -> None:
    """Bring a float32 model to its device and precision, ready to encode."""
    if half:
        for parameter in module.parameters():
            parameter.data = parameter.data.half()
        if device.type == "cpu":
            module.float()
    module.to(device).eval().requires_grad_(requires_grad=False)


def fingerprint_weights(
    head: Sequence[object], weights: "Iterable[torch.Tensor]", settings: Mapping[str, object]
) -> str:
    """Return 32 hex digits over ``head``, the weights (float32, in any order) and JSON-able settings."""
    # Sorted and without names: libraries rename parameters from version to version; shapes and bytes stay.
    digests = sorted(f"{list(weight.shape)} {_hash_weight(weight)}" for weight in weights)
    text = json.dumps([list(head), digests, settings], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def fingerprint_tokenizer(ids: Callable[[list[str]], list[list[int]]], vocabulary: Mapping[str, int]) -> str:
    """Return 32 hex digits over a tokenizer's vocabulary and what it makes of some texts."""
    text = json.dumps([sorted(vocabulary.items()), ids(list(_TOKENIZER_SAMPLES))])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def replace_lone_surrogates(texts: Sequence[str]) -> list[str]:
    """Return texts that a tokenizer takes: half of a surrogate pair, which is no character, becomes a question mark."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def normalise_rows(rows: NDArray[np.float32], model: str) -> Vectors:
    """Return ``rows`` scaled to length 1, float32.

    Raises:
        InputError: when a row is no direction: not finite, or all zero.
    """
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
    if not np.isfinite(lengths).all() or not lengths.all():
        raise InputError(
            "the model gives a vector that is not finite or all zero",
            where=f"checkpoint {model}",
            fix="Encode without half precision, or use another checkpoint.",
        )
    unit: Vectors = (wide / lengths).astype(np.float32)
    return unit


def _hash_weight(weight: "torch.Tensor") -> str:
    array = np.ascontiguousarray(weight.detach().float().cpu().numpy())
    return hashlib.sha256(array.data if array.size else b"").hexdigest()
