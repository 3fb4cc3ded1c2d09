"""Shared code of model encoders: device, precision, fingerprint, and ``encoder.json``.

*Precision.* ``half`` rounds the weights to 16 bits. A GPU then computes in 16 bits; a CPU computes in 32 bits with the
rounded weights, so that an index built on a GPU can be searched without one. So ``half`` is part of the fingerprint, and
the device is not.

*Fingerprint.* A hash of name and version of the method, the weights as float32, and the settings that affect a row.
Loaded weights are hashed, not files: a checkpoint keeps its fingerprint in another format or location, or with another
version of a library. Hashing takes 0.6 seconds per gigabyte of float32 weights whenever an encoder is loaded.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import InputError, StorageError, UsageError
from pairwright.indexes.encoders.protocols import Vectors

if TYPE_CHECKING:
    import torch

# Texts that identify a tokenizer: case, accents, digits, signs, spaces, scripts, long words.
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
    """Content of ``encoder.json``.

    Attributes:
        name: name of the encoder.
        version: version of the encoder.
        model: absolute path or hub name of the checkpoint; empty for the default.
        half: weights rounded to 16 bits.
        dim: length of a vector.
        fingerprint: fingerprint of the saved encoder.
    """

    name: str
    version: int
    model: str
    half: bool
    dim: int
    fingerprint: str

    def write(self, path: Path) -> None:
        """Write to ``path`` atomically."""
        write_text(path, json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def read(cls, path: Path, name: str, version: int) -> "SavedModelReference":
        """Read a file that `write` wrote.

        Raises:
            StorageError: if the file is missing, damaged, or of another encoder or version.
        """
        try:
            saved = cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise StorageError(f"{path}: no such file. Build the index again.") from None
        except (OSError, ValueError, TypeError) as error:
            raise StorageError(f"{path}: damaged encoder file ({error}). Build the index again.") from None
        if (saved.name, saved.version) != (name, version):
            raise StorageError(f"{path}: not of {name} version {version}. Build the index again.")
        return saved

    def check(self, fingerprint: str, path: Path, model: str) -> None:
        """Raise StorageError if the loaded encoder is not the saved one."""
        if fingerprint != self.fingerprint:
            raise StorageError(
                f"{path}: the index was built with another checkpoint than {model or 'the default one'} (other weights, "
                "tokenizer or settings). Pass the folder of the right one with --model, or build the index again."
            )


class PretrainedEncoder:
    """Base class of encoders whose index refers to a checkpoint by name and fingerprint.

    A subclass has ``name`` and ``version``, and a constructor with ``model``, ``device`` and ``half``.

    Attributes:
        model: folder or name of the checkpoint; empty for the default.
        half: weights rounded to 16 bits.
        fingerprint: hash of the weights and all settings that affect a row, 32 hexadecimal digits.
        truncated: number of texts so far that were truncated.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    def __init__(self, model: str, *, half: bool) -> None:
        self.model = absolute_model_name(model)
        self.half = half
        self.fingerprint = ""
        self.truncated = 0

    @property
    def dim(self) -> int:
        """Length of a vector."""
        raise NotImplementedError

    def save(self, path: Path) -> None:
        """Write name and fingerprint of the checkpoint to ``path``, not its weights."""
        SavedModelReference(self.name, self.version, self.model, self.half, self.dim, self.fingerprint).write(path)

    @classmethod
    def load(cls, path: Path, *, device: str = "", model: str = "") -> Self:
        """Load the encoder referenced by ``path``.

        Args:
            path: file written by `save`.
            device: as in the constructor.
            model: new location of the checkpoint, if it has been moved.

        Raises:
            StorageError: if the file is damaged, or the checkpoint has changed.
            MissingResourceError: if a package or the checkpoint is missing.
        """
        saved = SavedModelReference.read(path, cls.name, cls.version)
        encoder = cls(model or saved.model, device=device, half=saved.half)  # type: ignore[call-arg]  # of a subclass
        saved.check(encoder.fingerprint, path, encoder.model)
        return encoder


def absolute_model_name(model: str) -> str:
    """Return the absolute path of a model folder; other names unchanged."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if model and folder.is_dir() else model


def choose_device(wanted: str) -> "torch.device":
    """Return the device ``wanted``, or by default the first GPU, else the CPU.

    Raises:
        UsageError: if the device is unknown or not available.
    """
    import torch

    name = wanted or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UsageError(f"device {name!r}: cannot be used ({reason}). cpu is always available.") from None
    return device


def move_to_device(module: "torch.nn.Module", device: "torch.device", *, half: bool) -> None:
    """Move a float32 model to its device and precision, in evaluation mode."""
    if half:
        for parameter in module.parameters():
            parameter.data = parameter.data.half()
        if device.type == "cpu":
            module.float()
    module.to(device).eval().requires_grad_(requires_grad=False)


def fingerprint_weights(
    head: Sequence[object], weights: "Iterable[torch.Tensor]", settings: Mapping[str, object]
) -> str:
    """Return a hash of ``head``, the weights (float32, in any order) and JSON-compatible settings, 32 hexadecimal digits."""
    # Sorted and without names: libraries rename parameters between versions.
    digests = sorted(f"{list(weight.shape)} {_hash_weight(weight)}" for weight in weights)
    text = json.dumps([list(head), digests, settings], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def fingerprint_tokenizer(ids: Callable[[list[str]], list[list[int]]], vocabulary: Mapping[str, int]) -> str:
    """Return a hash of the vocabulary of a tokenizer and its tokens of sample texts, 32 hexadecimal digits."""
    text = json.dumps([sorted(vocabulary.items()), ids(list(_TOKENIZER_SAMPLES))])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def replace_lone_surrogates(texts: Sequence[str]) -> list[str]:
    """Replace lone surrogates, which tokenizers reject, by question marks."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def normalise_rows(rows: NDArray[np.float32], model: str) -> Vectors:
    """Return normalised ``rows``, float32.

    Raises:
        InputError: if a row is not finite or all zero.
    """
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.square(wide).sum(axis=1, keepdims=True))
    if not np.isfinite(lengths).all() or not lengths.all():
        raise InputError(
            "the model returned a vector that is not finite or all zero",
            where=f"checkpoint {model}",
            fix="Encode without half precision, or use another checkpoint.",
        )
    unit: Vectors = (wide / lengths).astype(np.float32)
    return unit


def _hash_weight(weight: "torch.Tensor") -> str:
    array = np.ascontiguousarray(weight.detach().float().cpu().numpy())
    return hashlib.sha256(array.data if array.size else b"").hexdigest()
