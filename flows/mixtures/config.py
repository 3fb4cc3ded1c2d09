"""The config of a mixture: its sources, and the rows taken from each."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.mixtures.sources import ImageCheckMode, SourceFormat
from pairwright.datasets.readers.text_files import strip_compression
from pairwright.datasets.settings_files import load_settings, validation_messages
from pairwright.flows.config.base import Section
from pairwright.generators.conversations.question_templates import CHOICE_FORMAT, SHORT_FORMAT

PROMPTS = {"short": SHORT_FORMAT, "choice": CHOICE_FORMAT}


class SourceSection(Section):
    """A source of conversations and the rows to take."""

    path: str = Field(
        description="LLaVA JSON, JSON Lines, CSV or TSV (plain or compressed), Parquet, shards, or a build"
    )
    name: str = Field("", description="name in the report and in each row; empty: name of the file or folder")
    count: int | None = Field(None, ge=0, description="rows to take; without count and ratio: all")
    ratio: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="rows to take, in proportion to the other ratios"
    )
    format: Literal["", SourceFormat] = Field("", description="empty: detected from the path")
    columns: dict[str, str] = Field(
        {},
        description="field to column name: conversations, question, answer, image, kind, id, key, caption, split or status",
    )
    image_root: str = Field(
        "",
        description="folder of relative image paths; images outside of it are not read. Empty: the folder of the source, without this limit",
    )
    kinds: tuple[str, ...] = Field((), description="kinds of rows to take, such as [conversation, detail]; empty: all")
    split: str = Field("train", description="split to take, of rows with a split; empty: all")
    prompt: str = Field(
        "", description="text below every question: short or choice (LLaVA-1.5's response formats), or your own"
    )
    drop_system: bool = Field(False, description="drop a first turn by system; else its row is broken")
    verify_images: ImageCheckMode = Field("header", description="off, exists, header, or full (every pixel)")
    on_error: Literal["stop", "skip"] = Field("stop", description="how broken rows are handled")

    @field_validator("verify_images", mode="before")
    @classmethod
    def _yaml_reads_off_as_false(cls, value: object) -> object:
        return "off" if value is False else value

    @model_validator(mode="after")
    def _asks_one_way(self) -> "SourceSection":
        if self.count is not None and self.ratio is not None:
            raise ValueError("count and ratio are mutually exclusive")
        return self

    @property
    def prompt_text(self) -> str:
        """The text of the prompt."""
        return PROMPTS.get(self.prompt, self.prompt)


class MixtureConfig(Section):
    """Sources of conversations, mixed into one instruction set."""

    sources: tuple[SourceSection, ...] = Field(
        min_length=1, description="a row of several sources counts for the first of them"
    )
    rows: int | None = Field(
        None, ge=0, description="rows of the mixture, divided by the ratios; empty: as many as the ratios allow"
    )
    keep: float = Field(1.0, gt=0, le=1, description="share of the rows of every source to keep")
    seed: int = Field(0, ge=0)
    image_root: str = Field(
        "", description="folder that image paths in the output are relative to; empty: the nearest common folder"
    )
    image_format: Literal["", "jpg", "png", "webp"] = Field("", description="for shards; empty: keep the bytes")

    @model_validator(mode="after")
    def _adds_up(self) -> "MixtureConfig":
        if self.rows is not None and all(source.ratio is None for source in self.sources):
            raise ValueError("rows requires a ratio for at least one source")
        names = [source.name for source in self.sources]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"duplicate source name {twice[0]!r}; rename one of them")
        return self


def load_mixture(path: Path) -> MixtureConfig:
    """Read and validate the config of a mixture; its paths start from its folder and are made absolute.

    Raises:
        ConfigError: when the file is missing or not YAML, or has an unknown key or an invalid value.
    """
    data = load_settings(path, "It needs `sources:`, a list of entries with `path:`.")
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

    def absolute(name: str) -> str:
        return str(base / Path(name).expanduser()) if name else name

    sources = tuple(
        source.model_copy(update={"path": absolute(source.path), "image_root": absolute(source.image_root)})
        for source in config.sources
    )
    return config.model_copy(update={"sources": sources, "image_root": absolute(config.image_root)})


def _named(source: object) -> object:
    """Return a source with a name: that of its file or folder, or the part before a brace pattern."""
    if not isinstance(source, dict) or source.get("name") or not isinstance(source.get("path"), str):
        return source
    path = Path(source["path"])
    stem = path.name.partition("{")[0].rstrip("-_.") if "{" in path.name else strip_compression(path.name)
    name = (stem.rpartition(".")[0] or stem) or path.absolute().parent.name
    return {**source, "name": name or "source"}
