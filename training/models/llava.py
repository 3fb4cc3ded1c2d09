"""LLaVA: CLIP's vision tower, a projection, and a causal language model (003, chapters 3 and 4).

Patch features are projected to the space of word embeddings (eq. 3.1) and replace the image token of the text. The
projection is one matrix in LLaVA and two layers with GELU in LLaVA-1.5; features are taken before the last layer, as in
the authors' code, or after it, without the class token.

`IMAGE_TOKEN` is a negative id that no vocabulary has, so the language model's embeddings are unchanged; `mark_images`
inserts it for `<image>`. A text may have any number of images, each one picture or the parts of an AnyRes image with
their grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoModelForCausalLM,
    CLIPVisionModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from pairwright.datasets.errors import UsageError
from pairwright.training.models.anyres import Grid, merge_features
from pairwright.training.models.checkpoints import (
    copy_weights,
    load_pretrained,
    read_added_weights,
    read_description,
    read_tokenizer,
    save_added_weights,
    start_saving,
)
from pairwright.training.models.clip import Clip, PixelSettings, read_pixel_settings
from pairwright.training.models.llava_checkpoint import is_llava_checkpoint, read_parts
from pairwright.training.models.vision_tower import image_size, layers_to_run, patch_count, vision_states
from pairwright.training.objectives.next_token import IGNORE_INDEX

IMAGE_MARK = "<image>"
IMAGE_TOKEN = -200


@dataclass(frozen=True, slots=True)
class ProjectionSettings:
    """Connection of vision tower and language model.

    Attributes:
        projection: ``linear`` (LLaVA) or ``mlp``, two layers (LLaVA-1.5).
        layer: vision layer whose features are used: -2 before the last, -1 after it (`vision_tower.vision_states`).
        tiles: whether images are prepared as the whole image and its tiles (AnyRes).
    """

    projection: Literal["linear", "mlp"] = "mlp"
    layer: int = -2
    tiles: bool = False


@dataclass(frozen=True, slots=True)
class JoinedInputs:
    """Embedded texts with their images.

    Attributes:
        states: float (b, n, width), inputs of the language model.
        mask: bool (b, n), False for padding.
        targets: int64 (b, n): the token at each position; `IGNORE_INDEX` at images, padding, and where the given targets
            have it.
    """

    states: Tensor
    mask: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class LlavaOutput:
    """Logits, float (b, n, vocabulary), and targets aligned as in `JoinedInputs`: row n predicts n + 1."""

    logits: Tensor
    targets: Tensor


class Llava(nn.Module):
    """Vision tower, projection and language model (figures 3.1 and 4.1).

    Attributes:
        vision: the tower; frozen in both stages.
        projection: from its width to the language model's.
        language: the causal language model.
        tokenizer: of the language model; None for a model made from configs.
        pixels: image size and normalization.
    """

    kind = "llava"

    def __init__(
        self,
        vision: CLIPVisionModel,
        language: PreTrainedModel,
        connection: ProjectionSettings | None = None,
        *,
        tokenizer: PreTrainedTokenizerBase | None = None,
        pixels: PixelSettings | None = None,
    ) -> None:
        """Join both models; the projection is initialized from torch's global generator.

        Raises:
            UsageError: the vision tower has no such layer.
        """
        super().__init__()
        self.connection = connection or ProjectionSettings()
        layers_to_run(vision.config.num_hidden_layers, self.connection.layer)
        self.vision = vision
        self.projection = _projection(
            self.connection.projection, vision.config.hidden_size, _word_embeddings(language)
        ).to(_word_embeddings(language).weight)
        self.language = language
        self.tokenizer = tokenizer
        self.pixels = pixels or PixelSettings(image_size(vision))

    @classmethod
    def begin(
        cls,
        vision: str,
        language: str,
        connection: ProjectionSettings | None = None,
        *,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Join the vision tower of a CLIP checkpoint and a causal language model, each by folder or name.

        Raises:
            MissingResourceError: no such checkpoint.
            InputError: one is damaged or of another kind.
        """
        clip = Clip.load(vision, dtype=dtype)
        language_model = load_pretrained(AutoModelForCausalLM, language, dtype=dtype)
        tokenizer = read_tokenizer(language)
        return cls(clip.network.vision_model, language_model, connection, tokenizer=tokenizer, pixels=clip.pixels)

    @classmethod
    def load(cls, name: str, *, dtype: torch.dtype = torch.float32) -> Self:
        """Load a folder that `save` wrote, or a LLaVA checkpoint of transformers by folder or name.

        Raises:
            StorageError: the folder is damaged.
            MissingResourceError: no such checkpoint.
            InputError: a checkpoint is damaged or of an unsupported architecture.
            UsageError: ``name`` is another model; use `begin`.
        """
        folder = Path(name)
        described = read_description(folder)
        if not described and is_llava_checkpoint(name):
            return cls._of_checkpoint(name, dtype)
        if described.get("kind") != cls.kind:
            raise UsageError(f"{name} is not a saved {cls.kind}: create one with Llava.begin(vision, language)")
        model = cls(
            cast("CLIPVisionModel", load_pretrained(CLIPVisionModel, str(folder / "vision"), dtype=dtype)),
            load_pretrained(AutoModelForCausalLM, str(folder / "language"), dtype=dtype),
            ProjectionSettings(**described["connection"]),
            tokenizer=read_tokenizer(str(folder / "language")) if described["tokenizer"] else None,
            pixels=PixelSettings.read(described["pixels"]),
        )
        copy_weights(model.added_weights(), read_added_weights(folder), folder)
        return model

    @classmethod
    def _of_checkpoint(cls, name: str, dtype: torch.dtype) -> Self:
        parts = read_parts(name, dtype=dtype)
        pixels = read_pixel_settings(name, image_size(parts.vision))
        words = read_tokenizer(name)
        model = cls(
            parts.vision, parts.language, ProjectionSettings("mlp", parts.layer), tokenizer=words, pixels=pixels
        )
        model.projection.load_state_dict(parts.projection)
        return model

    @property
    def patches(self) -> int:
        """Tokens per image, or per part of an AnyRes image."""
        return patch_count(self.vision)

    @property
    def width(self) -> int:
        """Size of the language model's states."""
        return _word_embeddings(self.language).embedding_dim

    def enable_tiles(self) -> None:
        """Enable tiles (`ProjectionSettings.tiles`)."""
        self.connection = replace(self.connection, tiles=True)

    def image_tokens(self, images: Tensor) -> Tensor:
        """Return H_v of eq. 3.1, float (n, patches, width), for images (n, 3, h, w).

        Raises:
            UsageError: the image size differs from the tower's.
        """
        # A frozen tower needs no graph, which would take most of the memory.
        learns = any(parameter.requires_grad for parameter in self.vision.parameters())
        with torch.set_grad_enabled(learns and torch.is_grad_enabled()):
            states = vision_states(self.vision, images, layer=self.connection.layer)[:, 1:]
        found: Tensor = self.projection(states.to(next(self.projection.parameters()).dtype))
        return found

    def join(
        self,
        texts: Tensor,
        text_mask: Tensor,
        images: Tensor,
        *,
        targets: Tensor | None = None,
        grids: Sequence[Grid] | None = None,
    ) -> JoinedInputs:
        """Replace the image tokens by images, and pad on the right.

        Args:
            texts: token ids, int64 (b, t), with `IMAGE_TOKEN` at images.
            text_mask: bool (b, t), False for padding.
            images: float (n, 3, h, w), one per image token, in order; with ``grids``, all parts of each image
                (`anyres.split_image`) in sequence.
            targets: int64 (b, t), `IGNORE_INDEX` for tokens without a loss; by default ``texts``.
            grids: one per image if images are in parts.

        Raises:
            UsageError: the numbers of images and image tokens differ.
        """
        targets = texts if targets is None else targets
        return _pad(self._join_rows(texts, text_mask, targets, self._image_features(images, grids)), left=False)

    def forward(
        self,
        texts: Tensor,
        text_mask: Tensor,
        images: Tensor,
        targets: Tensor | None = None,
        *,
        grids: Sequence[Grid] | None = None,
    ) -> LlavaOutput:
        """Return the logits of each next token; arguments as for `join`."""
        joined = self.join(texts, text_mask, images, targets=targets, grids=grids)
        found = self.language(inputs_embeds=joined.states, attention_mask=joined.mask.long(), use_cache=False)
        return LlavaOutput(found.logits, joined.targets)

    def last_states(
        self, texts: Tensor, text_mask: Tensor, images: Tensor, *, grids: Sequence[Grid] | None = None
    ) -> Tensor:
        """Return the language model's last state at each text's last token, float (b, width)."""
        joined = self.join(texts, text_mask, images, grids=grids)
        inner = cast("PreTrainedModel", self.language.base_model)
        found = inner(inputs_embeds=joined.states, attention_mask=joined.mask.long(), use_cache=False)
        states: Tensor = found.last_hidden_state
        return states[torch.arange(len(states), device=states.device), joined.mask.sum(dim=1) - 1]

    def answer(
        self,
        texts: Tensor,
        text_mask: Tensor,
        images: Tensor,
        *,
        most: int = 64,
        grids: Sequence[Grid] | None = None,
    ) -> Tensor:
        """Return greedy answers, int64 (b, up to ``most``)."""
        # Padded on the left: generation continues the last token.
        joined = _pad(self._join_rows(texts, text_mask, texts, self._image_features(images, grids)), left=True)
        network = cast("Any", self.language)
        found = network.generate(
            inputs_embeds=joined.states,
            attention_mask=joined.mask.long(),
            max_new_tokens=most,
            do_sample=False,
            num_beams=1,
        )
        assert isinstance(found, Tensor)
        return found

    def added_weights(self) -> dict[str, Tensor]:
        """Return the projection's weights."""
        return {f"projection.{name}": one for name, one in self.projection.named_parameters()}

    def save(self, folder: Path) -> None:
        """Write vision tower and language model as checkpoints of transformers (``vision``, ``language``), and the projection."""
        start_saving(folder)
        self.vision.save_pretrained(folder / "vision")
        self.language.save_pretrained(folder / "language")
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(folder / "language")
        described = {
            "kind": self.kind,
            "connection": asdict(self.connection),
            "pixels": asdict(self.pixels),
            "tokenizer": self.tokenizer is not None,
        }
        save_added_weights(folder, self.added_weights(), described)

    def _join_rows(
        self, texts: Tensor, text_mask: Tensor, targets: Tensor, features: Sequence[Tensor]
    ) -> list[tuple[Tensor, Tensor]]:
        tokens = int(((texts == IMAGE_TOKEN) & text_mask).sum())
        if tokens != len(features):
            raise UsageError(f"{len(features)} images for {tokens} image tokens in the texts")
        words = _word_embeddings(self.language)(texts.clamp(min=0))
        remaining = iter(features)
        return [
            _insert_images(texts[row][is_token], words[row][is_token], targets[row][is_token], remaining)
            for row, is_token in enumerate(text_mask.bool())
        ]

    def _image_features(self, images: Tensor, grids: Sequence[Grid] | None) -> list[Tensor]:
        tokens = self.image_tokens(images) if len(images) else images.new_zeros(0, self.patches, 1)
        if grids is None:
            return list(tokens)
        sizes = [1 + grid.tiles for grid in grids]
        if sum(sizes) != len(tokens):
            raise UsageError(f"{len(tokens)} image parts, but the grids need {sum(sizes)}")
        return [merge_features(parts, grid) for parts, grid in zip(torch.split(tokens, sizes), grids, strict=True)]


def batch_grids(rows_and_columns: Sequence[tuple[int, int]]) -> list[Grid] | None:
    """Return the grids of a batch's images; None without tiles."""
    return [Grid(*one) for one in rows_and_columns] or None


def tokenizer_path(name: str) -> str:
    """Return the folder or name of a LLaVA's tokenizer."""
    return str(Path(name) / "language") if read_description(Path(name)) else name


def mark_images(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """Return the tokens of a text, with `IMAGE_TOKEN` for ``<image>`` and without start and end token."""
    ids: list[int] = []
    for number, part in enumerate(text.split(IMAGE_MARK)):
        ids += [IMAGE_TOKEN] if number else []
        ids += tokenizer.encode(part, add_special_tokens=False)
    return ids


def _insert_images(ids: Tensor, words: Tensor, targets: Tensor, images: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the states and targets of a text, with each image token replaced by the next image."""
    states, aims, start = [], [], 0
    for place in (ids == IMAGE_TOKEN).nonzero().flatten().tolist():
        image = next(images).to(words.dtype)
        states += [words[start:place], image]
        aims += [targets[start:place], targets.new_full((len(image),), IGNORE_INDEX)]
        start = place + 1
    return torch.cat([*states, words[start:]]), torch.cat([*aims, targets[start:]])


def _pad(rows: Sequence[tuple[Tensor, Tensor]], *, left: bool) -> JoinedInputs:
    longest = max(len(states) for states, _ in rows)
    states, targets, masks = [], [], []
    for own, aims in rows:
        missing = longest - len(own)
        edges = (missing, 0) if left else (0, missing)
        states.append(functional.pad(own, (0, 0, *edges)))
        targets.append(functional.pad(aims, edges, value=IGNORE_INDEX))
        masks.append(functional.pad(torch.ones_like(aims, dtype=torch.bool), edges, value=False))
    return JoinedInputs(torch.stack(states), torch.stack(masks), torch.stack(targets))


def _word_embeddings(language: PreTrainedModel) -> nn.Embedding:
    found = language.get_input_embeddings()
    assert isinstance(found, nn.Embedding)
    return found


def _projection(kind: str, width: int, words: nn.Embedding) -> nn.Module:
    first = nn.Linear(width, words.embedding_dim)
    if kind == "linear":
        return first
    if kind == "mlp":
        return nn.Sequential(first, nn.GELU(), nn.Linear(words.embedding_dim, words.embedding_dim))
    raise UsageError(f"unknown projection {kind!r}: use linear or mlp")
