"""The config of a mixture: its sources, and how many rows each gives."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.mixtures.sources import ImageCheckMode, SourceFormat
from pairwright.flows.config.parsing import load_settings, validation_messages
from pairwright.flows.config.sections import Section
from pairwright.generators.conversations.question_templates import CHOICE_FORMAT, SHORT_FORMAT

PROMPTS = {"short": SHORT_FORMAT, "choice": CHOICE_FORMAT}


class SourceSection(Section):
    """A source of conversations, and what of it is taken."""

    path: str = Field(description="LLaVA JSON, JSON Lines (plain or .gz), CSV, TSV, Parquet, shards, or a build")
    name: str = Field("", description="in the table and in each row; empty: the name of the file or folder")
    count: int | None = Field(None, ge=0, description="rows taken; neither count nor ratio: all of them")
    ratio: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="rows taken in proportion to the other ratios"
    )
    format: Literal["", SourceFormat] = Field("", description="empty: guessed from the path")
    columns: dict[str, str] = Field(
        {},
        description="our name to the column's: conversations, question, answer, image, kind, id, key, caption, split or status",
    )
    image_root: str = Field(
        "",
        description="folder that relative image paths start from, and outside of which no image is read; empty: the source's own, and images may lie anywhere",
    )
    kinds: tuple[str, ...] = Field((), description="only rows of these kinds, such as [conversation, detail]")
    split: str = Field("train", description="of rows that say their split, only these; empty: all")
    prompt: str = Field(
        "", description="below every question: short or choice (LLaVA-1.5's response formats), or a text of your own"
    )
    verify_images: ImageCheckMode = Field("header", description="off, exists, header, or full (every pixel)")
    on_error: Literal["stop", "skip"] = Field("stop", description="what a broken row does")

    @field_validator("verify_images", mode="before")
    @classmethod
    def _yaml_reads_off_as_false(cls, value: object) -> object:
        return "off" if value is False else value

    @model_validator(mode="after")
    def _asks_one_way(self) -> "SourceSection":
        if self.count is not None and self.ratio is not None:
            raise ValueError("count and ratio are two ways to ask; give one of them")
        return self

    @property
    def prompt_text(self) -> str:
        """The prompt in full."""
        return PROMPTS.get(self.prompt, self.prompt)


class MixtureConfig(Section):
    """Sources of conversations, mixed into one instruction set."""

    sources: tuple[SourceSection, ...] = Field(
        min_length=1, description="a row that several hold belongs to the first of them"
    )
    rows: int | None = Field(
        None, ge=0, description="of the whole mixture, divided by the ratios; empty: as many as the ratios allow"
    )
    keep: float = Field(1.0, gt=0, le=1, description="share of the mixture that is kept, of every source alike")
    seed: int = Field(0, ge=0)
    image_root: str = Field(
        "", description="folder below which the output names images; empty: the nearest above all of them"
    )
    image_format: Literal["", "jpg", "png", "webp"] = Field("", description="of shards; empty: bytes pass untouched")

    @model_validator(mode="after")
    def _adds_up(self) -> "MixtureConfig":
        if self.rows is not None and all(source.ratio is None for source in self.sources):
            raise ValueError("rows is divided by ratios; give a source a ratio, or take it out")
        names = [source.name for source in self.sources]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two sources are named {twice[0]!r}; give one another name")
        return self


def load_mixture(path: Path) -> MixtureConfig:
    """Read and check the config of a mixture; its paths are taken from the config's folder, and made absolute.

    Raises:
        ConfigError: when the file is missing, is not YAML, holds an unknown key or an impossible value.
    """
    data = load_settings(path, "It names `sources:`, a list with a `path:` each.")
    listed = data.get("sources")
    if isinstance(listed, list):
        data["sources"] = [_named(each) for each in listed]
    try:
        config = MixtureConfig.model_validate(data)
    except ValidationError as error:
        raise ConfigError(
            "\n".join(f"{path}: {message}" for message in validation_messages(error, MixtureConfig))
        ) from None
    base = path.parent.resolve()

    def absolute(given: str) -> str:
        return str(base / Path(given).expanduser()) if given else given

    sources = tuple(
        source.model_copy(update={"path": absolute(source.path), "image_root": absolute(source.image_root)})
        for source in config.sources
    )
    return config.model_copy(update={"sources": sources, "image_root": absolute(config.image_root)})


def _named(source: object) -> object:
    """Return a source with a name: that of its file or folder, or what stands before a brace pattern, or its folder's."""
    if not isinstance(source, dict) or source.get("name") or not isinstance(source.get("path"), str):
        return source
    path = Path(source["path"])
    stem = path.name.partition("{")[0].rstrip("-_.") if "{" in path.name else path.name.removesuffix(".gz")
    name = (stem.rpartition(".")[0] or stem) or path.absolute().parent.name
    return {**source, "name": name or "source"}
