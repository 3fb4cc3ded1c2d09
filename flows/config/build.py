"""The build config: a YAML file, checked here once and trusted afterwards.

Unknown keys are refused with the nearest known one; a value that cannot be is refused with its place. Paths
are taken relative to the config file and made absolute, so that a build goes on from any folder.
A section that is left out (``retrieve``, ``positives``, ...) leaves its stage out.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.remote.object_store import is_remote, split_url
from pairwright.flows.config.parsing import load_settings, validation_messages
from pairwright.flows.config.sections import (
    ConversationsSection,
    FetchSection,
    GeneratorSection,
    IndexSection,
    InputSection,
    LLMSection,
    NegativesSection,
    PositivesSection,
    RationalesSection,
    RefineSection,
    RetrieveSection,
    Section,
    ShardsSection,
)


class BuildConfig(Section):
    """Everything that a build depends on, besides its input files and the code."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="of the dataset and of its folder")
    seed: int = Field(0, ge=0, lt=2**63)
    input: InputSection
    index: IndexSection | None = None
    retrieve: RetrieveSection | None = None
    fetch: FetchSection | None = None
    llm: LLMSection | None = None
    negatives: NegativesSection | None = None
    positives: PositivesSection | None = None
    conversations: ConversationsSection | None = None
    generators: tuple[GeneratorSection, ...] = ()
    refine: RefineSection | None = None
    rationales: RationalesSection | None = None
    shards: ShardsSection = ShardsSection()
    publish: str = Field(
        "",
        description="where the finished dataset is laid, each version in a folder of its own, such as s3://bucket/birds; empty: nowhere",
    )
    publish_keep: int = Field(
        2,
        ge=1,
        description="versions that stay where `publish` lays them, the newest among them, for readers of an older one",
    )
    copies_gib: float = Field(
        100.0,
        gt=0,
        description="GiB of disk for copies of inputs that lie in a store; those that were used longest ago are removed for new ones",
    )
    incremental: bool = Field(
        default=False, description="make what is new since the last version, and append it; --full builds all anew"
    )
    part_size: int = Field(5_000, ge=1, description="pairs a part; the unit of work and of resuming")
    workers: int = Field(0, ge=0, description="processes; 0: one a core. The output does not depend on it")
    runner: Literal["processes", "ray"] = Field(
        "processes", description="where parts are worked on: this machine, or a Ray cluster. The output is the same"
    )
    address: str = Field("", description="of the Ray cluster's head, HOST:PORT; empty: the one this machine is in")
    tagger: str = Field("", description="a spaCy pipeline; empty: the best that is installed")

    @property
    def index_section(self) -> IndexSection | None:
        """The index that the build makes: where it is asked for, and where retrieval needs one."""
        return self.index or (IndexSection() if self.retrieve else None)

    @property
    def model_stages(self) -> list[str]:
        """The sections whose texts a model writes."""
        made = (self.negatives, self.positives, self.conversations)
        names = ("negatives", "positives", "conversations")
        asking = [name for name, section in zip(names, made, strict=True) if section and section.method == "llm"]
        return [*(["rationales"] if self.rationales else []), *asking]

    @property
    def all_have_images(self) -> bool:
        """Whether pairs without an image are set aside where others have one; fetching does so by itself."""
        return self.shards.images and self.fetch is None

    @property
    def single_image_format(self) -> bool:
        """Whether all images of the input have to be of one format: they are packed as they are."""
        return self.all_have_images and not self.shards.image_format and not self.retrieve


def load_config(path: Path) -> BuildConfig:
    """Read and check a build config.

    Raises:
        ConfigError: when the file is missing, is not YAML, holds an unknown key or an impossible value.
    """
    data = load_settings(path, "Write one with `pairwright init`.")
    return _with_absolute_paths(parse_config(data, where=str(path)), path.parent.resolve())


def parse_config(data: Mapping[str, Any], *, where: str) -> BuildConfig:
    """Check settings that are already read; ``where`` names their origin in messages."""
    try:
        config = BuildConfig.model_validate(data)
    except ValidationError as error:
        lines = [f"{where}: {message}" for message in validation_messages(error, BuildConfig)]
        raise ConfigError("\n".join(lines)) from None
    for url in (config.publish, config.input.path, config.input.image_root, config.input.instances):
        if is_remote(url):
            split_url(url)  # none with a password gets as far as a file of ours
    if config.publish and not is_remote(config.publish):
        raise ConfigError(
            f"{where}: publish is {config.publish!r}. Give a URL such as s3://BUCKET/NAME or file:///PATH."
        )
    if config.refine and not (config.negatives or config.generators):
        raise ConfigError(f"{where}: refine needs hard negatives to refine. Add a `negatives:` section.")
    if config.rationales and not (config.negatives or config.generators):
        raise ConfigError(f"{where}: rationales needs hard negatives to explain. Add a `negatives:` section.")
    if config.model_stages and config.llm is None:
        what = config.model_stages[0]
        raise ConfigError(f"{where}: {what} asks a model, and none is named. Add `llm:` with `model:` below it.")
    return config


def dump_config(config: BuildConfig) -> str:
    """Return the config as YAML that `load_config` reads back to the same."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _with_absolute_paths(config: BuildConfig, base: Path) -> BuildConfig:
    def absolute(path: str) -> str:
        if is_remote(path):
            return path
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
    if (
        config.index and config.index.model and (base / config.index.model).exists()
    ):  # else it is the name of a checkpoint
        update["index"] = config.index.model_copy(update={"model": absolute(config.index.model)})
    if config.retrieve:
        asked = config.retrieve
        update["retrieve"] = asked.model_copy(
            update={
                "queries": absolute(asked.queries),
                "query_vectors": absolute(asked.query_vectors),
                "exclude": tuple(absolute(path) for path in asked.exclude),
            }
        )
    if config.llm:
        files = {name: absolute(getattr(config.llm, name)) for name in ("prompts", "prices", "cache")}
        update["llm"] = config.llm.model_copy(update=files)
    return config.model_copy(update=update)
