"""Encoders by name: one table of the built-in ones, and third-party ones by entry point.

A distribution declares an encoder in its pyproject.toml:

    [project.entry-points."pairwright.encoders"]
    my-encoder = "my_package.my_module:ENCODER"

where ``ENCODER`` is an `EncoderEntry`. It is imported when it is named, not when it is listed.

An index folder keeps its encoder in one file: ``encoder.npz`` (`lexical`: the fitted state), ``encoder.json`` (`minilm`,
`clip`: name and fingerprint of the checkpoint; the weights are not copied), or ``encoder.NAME.state`` (third-party).
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.datasets.plugins import PluginRegistry, call_plugin
from pairwright.indexes.encoders import clip, lexical, minilm
from pairwright.indexes.encoders.clip import ClipEncoder
from pairwright.indexes.encoders.lexical import DEFAULT_DIM, LexicalEncoder
from pairwright.indexes.encoders.minilm import MiniLMEncoder
from pairwright.indexes.encoders.protocols import ImageEncoder, TextEncoder

STATE_FILE = "encoder.npz"
MODEL_FILE = "encoder.json"
_PLUGIN_FILE = re.compile(r"encoder\.([\w-]+)\.state")


@dataclass(frozen=True)
class EncoderEntry:
    """An encoder of the table.

    Attributes:
        about: description in ``pairwright plugins``; names the extra to install, if any.
        fit: ``fit(options, captions)`` returns a new encoder; it may ignore the captions of the pool.
        load: ``load(path, device=..., model=...)`` returns the encoder that ``TextEncoder.save`` wrote to ``path``.
        encodes_images: whether the encoder is also an `ImageEncoder`.
        takes_model: whether it accepts the options ``model``, ``device`` and ``half``.
    """

    about: str
    fit: Callable[["EncoderOptions", Iterable[str]], TextEncoder]
    load: Callable[..., TextEncoder]
    encodes_images: bool = False
    takes_model: bool = False


def _fit_lexical(options: "EncoderOptions", captions: Iterable[str]) -> TextEncoder:
    return LexicalEncoder.fit(captions, dim=options.dim, seed=options.seed)


def _load_lexical(path: Path, **_options: str) -> TextEncoder:
    return LexicalEncoder.load(path)


def _fit_minilm(options: "EncoderOptions", _captions: Iterable[str]) -> TextEncoder:
    return MiniLMEncoder(options.model, device=options.device, half=options.half, batch_size=options.batch_size)


def _fit_clip(options: "EncoderOptions", _captions: Iterable[str]) -> TextEncoder:
    return ClipEncoder(options.model, device=options.device, half=options.half, batch_size=options.batch_size)


BUILT_IN = {
    lexical.NAME: EncoderEntry("captions: hashed TF-IDF, without a download", _fit_lexical, _load_lexical),
    minilm.NAME: EncoderEntry(
        "captions: MiniLM sentence vectors (pip install 'pairwright[minilm]')",
        _fit_minilm,
        MiniLMEncoder.load,
        takes_model=True,
    ),
    clip.NAME: EncoderEntry(
        "captions and images: CLIP, OpenCLIP and SigLIP checkpoints (pip install 'pairwright[clip]')",
        _fit_clip,
        ClipEncoder.load,
        encodes_images=True,
        takes_model=True,
    ),
}

ENCODERS = PluginRegistry(
    "encoder",
    ("pairwright.encoders",),
    BUILT_IN,
    lambda entry: entry.about,
    EncoderEntry,
    lambda entry, label: replace(
        entry, fit=partial(call_plugin, entry.fit, label), load=partial(call_plugin, entry.load, label)
    ),
)


@dataclass(frozen=True)
class EncoderOptions:
    """Name and options of an encoder.

    Attributes:
        name: a name in `ENCODERS`.
        dim: length of the vectors; ``lexical`` only, models have a fixed one.
        seed: seed of the projection; ``lexical`` only.
        model: checkpoint of ``minilm`` or ``clip``, a folder or a name on the Hugging Face hub; empty for the default.
        device: torch device of a model (``cpu``, ``cuda``, ``cuda:1``); empty for the first GPU, else the CPU.
        half: round the weights of ``minilm`` and ``clip`` to 16 bits, and compute in 16 bits on a GPU.
        batch_size: texts or images per forward pass; affects speed and memory, rows only by float rounding.
    """

    name: str = lexical.NAME
    dim: int = DEFAULT_DIM
    seed: int = 0
    model: str = ""
    device: str = ""
    half: bool = False
    batch_size: int = 128

    def __post_init__(self) -> None:
        ENCODERS.find_entry_point(self.name)
        if self.batch_size < 1:
            raise UsageError(f"batch size {self.batch_size}: must be at least 1.")
        if (self.model or self.device or self.half) and not ENCODERS.get(self.name).takes_model:
            raise UsageError(
                f"encoder {self.name}: takes no model, device or half. Use minilm or clip to encode with a model."
            )

    @property
    def encodes_images(self) -> bool:
        """Whether the encoder also encodes images."""
        return ENCODERS.get(self.name).encodes_images


def fit_encoder(options: EncoderOptions, captions: Iterable[str]) -> TextEncoder:
    """Return a new encoder for a pool of captions.

    ``captions`` is always consumed, since the caller processes the pairs as they are read.

    Raises:
        UsageError: if an option is invalid, or a third-party encoder cannot be loaded or has another name.
        MissingResourceError: if a package or a checkpoint is missing.
        InputError: if there are no captions (``lexical``), or the checkpoint is of another kind.
    """
    encoder = ENCODERS.get(options.name).fit(options, captions)
    if encoder.name != options.name or not re.fullmatch(r"[\w-]+", encoder.name):
        raise UsageError(
            f"encoder {options.name}: its attribute `name` is {encoder.name!r}."
            " It must equal the name of the entry point and consist of letters, digits, - and _."
        )
    deque(captions, maxlen=0)
    return encoder


def load_encoder(directory: Path, *, device: str = "", model: str = "") -> TextEncoder | None:
    """Return the encoder of an index folder, or None if it has precomputed vectors without an encoder.

    Args:
        directory: folder of the index.
        device: as in `EncoderOptions`.
        model: new location of the checkpoint, if it has been moved since the index was built.

    Raises:
        StorageError: if the file is damaged, or the checkpoint is not the one that the index was built with.
        MissingResourceError: if a package or the checkpoint is missing.
        UsageError: if a third-party encoder is not installed.
    """
    if (directory / STATE_FILE).exists():
        return LexicalEncoder.load(directory / STATE_FILE)
    path = directory / MODEL_FILE
    if path.exists():
        return BUILT_IN[_read_encoder_name(path)].load(path, device=device, model=model)
    for path in sorted(directory.glob("encoder.*.state")):
        if match := _PLUGIN_FILE.fullmatch(path.name):
            return ENCODERS.get(match[1]).load(path, device=device, model=model)
    return None


def encoder_file_name(encoder: TextEncoder) -> str:
    """Return the name of the file in an index folder for ``encoder.save``."""
    if encoder.name == lexical.NAME:
        return STATE_FILE
    return MODEL_FILE if encoder.name in BUILT_IN else f"encoder.{encoder.name}.state"


def require_image_encoder(encoder: TextEncoder) -> ImageEncoder:
    """Return ``encoder`` as an image encoder.

    Raises:
        UsageError: if it encodes texts only.
    """
    if hasattr(encoder, "encode_images"):
        return cast("ImageEncoder", encoder)
    raise UsageError(f"encoder {encoder.name}: encodes texts only. Use clip for images.")


def _read_encoder_name(path: Path) -> str:
    try:
        name = json.loads(path.read_text(encoding="utf-8"))["name"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: damaged encoder file ({error}). Build the index again.") from None
    if name not in (minilm.NAME, clip.NAME):
        raise StorageError(f"{path}: unknown encoder {name!r}. Build the index again.")
    return str(name)
