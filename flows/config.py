"""The build config: a YAML file, checked here once and trusted afterwards.

Unknown keys are refused with the nearest known one; a value that cannot be is refused with its place. Paths
are taken relative to the config file and made absolute, so that a build goes on from any folder.
A section that is left out (``retrieve``, ``positives``, ...) leaves its stage out.
"""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from pairwright.datasets.errors import ConfigError

NegativeType = Literal["replace-object", "replace-attribute", "replace-relation", "swap-object", "swap-attribute"]
STAGES = (
    *("pairs", "index", "retrieve", "tag", "words"),
    *("negatives", "positives", "conversations", "refine", "shards", "sizes"),
)
PositiveType = Literal["replace-object", "replace-attribute", "replace-relation", "swap-object"]
ConversationType = Literal["conversation", "brief"]


class Section(BaseModel):
    """A part of the config: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class InputSection(Section):
    """Where the pairs come from and how they are read."""

    path: str = Field(description="file, folder, or brace pattern such as data/{00000..00009}.tar")
    format: str = Field("", description="empty: guessed from the path")
    columns: dict[str, str] = Field({}, description="our name to the column's name, such as key: image_id")
    explode: bool = Field(default=False, description="one pair per caption, not one per image")
    image_root: str = Field("", description="folder that relative image paths start from")
    instances: str = Field("", description="COCO instances JSON, for boxes")
    source: str = Field("", description="name of this dataset; empty: the file's name")
    verify_images: Literal["off", "header", "full"] = Field(
        "header", description="how images are checked when read; off when only texts are needed"
    )
    on_error: Literal["stop", "skip"] = Field("stop", description="what a broken row does")

    @field_validator("verify_images", mode="before")
    @classmethod
    def _yaml_reads_off_as_false(cls, value: object) -> object:
        return "off" if value is False else value


class IndexSection(Section):
    """The FAISS HNSW index over the captions."""

    encoder: Literal["lexical"] = "lexical"
    ef_construction: int = Field(200, ge=8, le=2000)


class RetrieveSection(Section):
    """Keep only the pairs that some query retrieves."""

    queries: str = Field(description="a .txt of one query a line, or a JSON of classes and templates")
    k: int = Field(50, ge=1, description="hits a query")
    min_score: float = Field(0.0, ge=-1, le=1, description="cosine below which a hit does not count")


class NegativesSection(Section):
    """Hard negatives by rules."""

    types: tuple[NegativeType, ...] = Field(get_args(NegativeType), min_length=1)


class PositivesSection(Section):
    """Hard positives by rules."""

    types: tuple[PositiveType, ...] = Field(get_args(PositiveType), min_length=1)


class ConversationsSection(Section):
    """Conversations from captions and boxes by templates."""

    types: tuple[ConversationType, ...] = Field(get_args(ConversationType), min_length=1)
    vocabulary: tuple[str, ...] = Field(
        (), description="labels that the source annotates exhaustively; needed for questions whose answer is no"
    )


class GeneratorSection(Section):
    """A generator of a third party, by its entry point name."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    options: dict[str, Any] = {}


class RefineSection(Section):
    """Adversarial refinement over two text-only scorers (Algorithm 1 of SugarCrepe)."""

    cells: int = Field(100, ge=2, le=1000, description="K of the K x K grid over the two gaps")
    by_type: bool = Field(default=True, description="balance each type of negative on its own")


class ShardsSection(Section):
    """The WebDataset shards."""

    samples: int = Field(10_000, ge=1, description="samples a shard")
    images: bool = Field(default=True, description="false: texts only, though the pairs name images")
    image_format: Literal["", "jpg", "png", "webp"] = Field("", description="empty: bytes pass through untouched")


class BuildConfig(Section):
    """Everything that a build depends on, besides its input files and the code."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="of the dataset and of its folder")
    seed: int = Field(0, ge=0)
    input: InputSection
    index: IndexSection = IndexSection()
    retrieve: RetrieveSection | None = None
    negatives: NegativesSection | None = None
    positives: PositivesSection | None = None
    conversations: ConversationsSection | None = None
    generators: tuple[GeneratorSection, ...] = ()
    refine: RefineSection | None = None
    shards: ShardsSection = ShardsSection()
    part_size: int = Field(5_000, ge=1, description="pairs a part; the unit of work and of resuming")
    workers: int = Field(0, ge=0, description="processes; 0: one a core. The output does not depend on it")
    tagger: str = Field("", description="a spaCy pipeline; empty: the best that is installed")


def load_config(path: Path) -> BuildConfig:
    """Read and check a build config.

    Raises:
        ConfigError: when the file is missing, is not YAML, holds an unknown key or an impossible value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{path}: cannot be read ({why}). Write one with `pairwright init`.") from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f":{place.line + 1}" if place else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(f"{path}{line}: not YAML: {problem}. Mend that line.") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: holds no settings. Write one with `pairwright init`.")
    return _with_absolute_paths(parse_config(data, where=str(path)), path.parent.resolve())


def parse_config(data: Mapping[str, Any], *, where: str) -> BuildConfig:
    """Check settings that are already read; ``where`` names their origin in messages."""
    try:
        config = BuildConfig.model_validate(data)
    except ValidationError as error:
        lines = [f"{where}: {message}" for message in _messages(error)]
        raise ConfigError("\n".join(lines)) from None
    if config.refine and not (config.negatives or config.generators):
        raise ConfigError(f"{where}: refine needs hard negatives to refine. Add a `negatives:` section.")
    taken = [*STAGES, *(generator.name for generator in config.generators)]
    twice = sorted({name for name in taken if taken.count(name) > 1})
    if twice:
        raise ConfigError(f"{where}: a stage named {twice[0]!r} is there already. Name each generator once.")
    return config


def dump_config(config: BuildConfig) -> str:
    """Return the config as YAML that `load_config` reads back to the same."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _with_absolute_paths(config: BuildConfig, base: Path) -> BuildConfig:
    def absolute(path: str) -> str:
        return str(base / Path(path).expanduser()) if path else path

    given = config.input
    update: dict[str, Any] = {
        "input": given.model_copy(
            update={
                "path": absolute(given.path),
                "image_root": absolute(given.image_root),
                "instances": absolute(given.instances),
            }
        )
    }
    if config.retrieve:
        update["retrieve"] = config.retrieve.model_copy(update={"queries": absolute(config.retrieve.queries)})
    return config.model_copy(update=update)


def _messages(error: ValidationError) -> Iterator[str]:
    problems = error.errors()
    for problem in problems:
        if any(other["loc"][: len(problem["loc"])] == problem["loc"] for other in problems if other is not problem):
            continue  # only the consequence of a problem further in
        place = ".".join(str(step) for step in problem["loc"])
        if problem["type"] == "extra_forbidden":
            yield _unknown_key(problem["loc"])
        elif problem["type"] == "missing":
            yield f"`{place}` is missing. Add it."
        else:
            yield f"`{place}` is {problem['input']!r}: {problem['msg'].lower()}. Change it."


def _unknown_key(loc: tuple[int | str, ...]) -> str:
    section: type[BaseModel] = BuildConfig
    for step in loc[:-1]:
        if isinstance(step, str) and step in section.model_fields:
            section = _section_of(section.model_fields[step].annotation) or section
    known = list(section.model_fields)
    near = difflib.get_close_matches(str(loc[-1]), known, n=1)
    place = ".".join(str(step) for step in loc)
    hint = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(known)}."
    return f"unknown key `{place}`. {hint}"


def _section_of(annotation: object) -> type[BaseModel] | None:
    for option in (annotation, *get_args(annotation)):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None
