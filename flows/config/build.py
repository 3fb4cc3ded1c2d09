"""The build config: a YAML file that is validated once.

Unknown keys are refused with a suggestion, invalid values with their location. Relative paths start from the folder of the
config file and are made absolute, so that a build can be resumed from any folder. Without its section (``retrieve``,
``positives``, ...) a stage does not run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.remote.hub import dataset_of, is_hub
from pairwright.datasets.remote.object_store import is_remote, split_url
from pairwright.datasets.settings_files import load_settings, validation_messages
from pairwright.flows.config.base import Section
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.config.sections import (
    CaptionsSection,
    ConversationsSection,
    FetchSection,
    GeneratorSection,
    IndexSection,
    InputSection,
    NegativesSection,
    PositivesSection,
    RationalesSection,
    RefineSection,
    RetrieveSection,
    ShardsSection,
    SlurmSection,
)
from pairwright.generators.edit_types import UNADDED_TYPES


class BuildConfig(Section):
    """All settings of a build."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="name of the dataset and of its folder")
    seed: int = Field(0, ge=0, lt=2**63)
    input: InputSection
    index: IndexSection | None = None
    retrieve: RetrieveSection | None = None
    fetch: FetchSection | None = None
    llm: LLMSection | None = None
    captions: CaptionsSection | None = None
    negatives: NegativesSection | None = None
    positives: PositivesSection | None = None
    conversations: ConversationsSection | None = None
    generators: tuple[GeneratorSection, ...] = ()
    refine: RefineSection | None = None
    rationales: RationalesSection | None = None
    shards: ShardsSection = ShardsSection()
    publish: str = Field(
        "",
        description="URL to publish each version to, such as s3://bucket/birds or hf://owner/birds; empty: none",
    )
    publish_keep: int = Field(
        2,
        ge=1,
        description="published versions to keep, including the newest, for readers of an older one",
    )
    copies_gib: float = Field(
        100.0,
        gt=0,
        description="GiB of disk for copies of inputs in an object store; the least recently used are removed",
    )
    incremental: bool = Field(
        default=False, description="add the pairs that are new since the last version; --full rebuilds all"
    )
    part_size: int = Field(
        0,
        ge=0,
        description="pairs per part, the unit of work and of resuming; 0: 8 times the square root of their number",
    )
    workers: int = Field(0, ge=0, description="processes (0 = one per core); the output is the same")
    runner: Literal["processes", "ray", "slurm"] = Field(
        "processes", description="where jobs run: on this machine, a Ray or a Slurm cluster; the output is the same"
    )
    slurm: SlurmSection = SlurmSection()
    address: str = Field("", description="HOST:PORT of the head of the Ray cluster; empty: the cluster of this machine")
    host: str = Field(
        "",
        description="name or IP address of this machine for workers on others that ask a model; empty: its host name",
    )
    tagger: str = Field("", description="spaCy pipeline; empty: the best one installed")

    @model_validator(mode="before")
    @classmethod
    def _refines_types_that_can_be_balanced(cls, data: Any) -> Any:
        """Set the types of negatives, where none are given, to those that a refinement can balance.

        Every one-sided addition is longer than its caption. No selection of rows hides that.
        """
        given = data.get("negatives") if isinstance(data, Mapping) and data.get("refine") is not None else None
        if not isinstance(given, Mapping) or "types" in given:
            return data
        try:
            both_sides = NegativesSection.model_validate(given).both_sides
        except ValidationError:  # which the section raises again, with its place
            return data
        if both_sides:
            return data
        return {**data, "negatives": {**given, "types": UNADDED_TYPES}}

    @property
    def index_section(self) -> IndexSection | None:
        """The section of the index, which retrieval needs too; None for a build without one."""
        return self.index or (IndexSection() if self.retrieve else None)

    @property
    def model_stages(self) -> list[str]:
        """The names of the sections whose texts a model writes."""
        sections = (self.negatives, self.positives, self.conversations)
        names = ("negatives", "positives", "conversations")
        by_model = [name for name, section in zip(names, sections, strict=True) if section and section.method == "llm"]
        return [*(["captions"] if self.captions else []), *(["rationales"] if self.rationales else []), *by_model]

    @property
    def all_have_images(self) -> bool:
        """Whether pairs without an image are rejected if others have one; fetching does so by itself."""
        return self.shards.images and self.fetch is None

    @property
    def single_image_format(self) -> bool:
        """Whether all images of the input have to be of one format, since they are packed unchanged."""
        return self.all_have_images and not self.shards.image_format and not self.retrieve


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> BuildConfig:
    """Read and validate a build config.

    Args:
        path: the file.
        overrides: settings in place of those of the file, as nested as there.

    Raises:
        ConfigError: when the file is missing or not YAML, or has an unknown key or an invalid value.
    """
    data = load_settings(path, "Write one with `pairwright init`.")
    where = f"{path}, with overrides" if overrides else str(path)
    return _with_absolute_paths(parse_config(_merged(data, overrides or {}), where=where), path.parent.resolve())


def _merged(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others in their place; sections are merged key by key."""
    merged = dict(data)
    for name, value in overrides.items():
        given = merged.get(name)
        merged[name] = _merged(given, value) if isinstance(given, Mapping) and isinstance(value, Mapping) else value
    return merged


def parse_config(data: Mapping[str, Any], *, where: str) -> BuildConfig:
    """Validate settings; ``where`` names their origin in messages."""
    try:
        config = BuildConfig.model_validate(data)
    except ValidationError as error:
        lines = [f"{where}: {message}" for message in validation_messages(error, BuildConfig)]
        raise ConfigError("\n".join(lines)) from None
    for url in (config.publish, config.input.path, config.input.image_root, config.input.instances):
        if is_remote(url):
            split_url(url)  # refuses URLs with a password
    if is_hub(config.publish):
        dataset_of(config.publish)  # refuses other URLs
    elif config.publish and not is_remote(config.publish):
        raise ConfigError(
            f"{where}: publish is {config.publish!r}. Give a URL such as s3://BUCKET/NAME, hf://OWNER/NAME or file:///PATH."
        )
    if config.publish and config.shards.to:
        raise ConfigError(
            f"{where}: publish uploads the shards of the build directory, and `to` under shards keeps none there. Set one of them."
        )
    if config.refine and not (config.negatives or config.generators):
        raise ConfigError(f"{where}: refine requires hard negatives. Add a `negatives:` section.")
    if config.rationales and not (config.negatives or config.generators):
        raise ConfigError(f"{where}: rationales requires hard negatives. Add a `negatives:` section.")
    if config.model_stages and config.llm is None:
        what = config.model_stages[0]
        raise ConfigError(f"{where}: {what} requires a model. Add `llm:` with `model:` below it.")
    return config


def dump_config(config: BuildConfig) -> str:
    """Return a config as YAML, for `load_config`."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _with_absolute_paths(config: BuildConfig, base: Path) -> BuildConfig:
    def absolute(path: str) -> str:
        if is_remote(path):
            return path
        return str(base / Path(path).expanduser()) if path else path

    source = config.input
    update: dict[str, Any] = {
        "input": source.model_copy(
            update={
                "path": absolute(source.path),
                "image_root": absolute(source.image_root),
                "instances": absolute(source.instances),
            }
        )
    }
    # Otherwise the model is the name of a checkpoint.
    if config.index and config.index.model and (base / config.index.model).exists():
        update["index"] = config.index.model_copy(update={"model": absolute(config.index.model)})
    if config.retrieve:
        retrieve = config.retrieve
        update["retrieve"] = retrieve.model_copy(
            update={
                "queries": absolute(retrieve.queries),
                "query_vectors": absolute(retrieve.query_vectors),
                "exclude": tuple(absolute(path) for path in retrieve.exclude),
                "exclude_images": tuple(absolute(path) for path in retrieve.exclude_images),
            }
        )
    if config.llm:
        files = {name: absolute(getattr(config.llm, name)) for name in ("prompts", "prices", "cache")}
        update["llm"] = config.llm.model_copy(update=files)
    return config.model_copy(update=update)
