"""The build config: a YAML file, checked here once and trusted afterwards.

Unknown keys are refused with the nearest known one; a value that cannot be is refused with its place. Paths
are taken relative to the config file and made absolute, so that a build goes on from any folder.
A section that is left out (``retrieve``, ``positives``, ...) leaves its stage out.
"""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pairwright.datasets.errors import ConfigError
from pairwright.indexes.sidecar import IndexOptions

NegativeType = Literal["replace-object", "replace-attribute", "replace-relation", "swap-object", "swap-attribute"]
STAGES = (
    *("pairs", "index", "retrieve", "fetch", "tag", "words"),
    *("negatives", "positives", "conversations", "refine", "shards", "sizes"),
)
PositiveType = Literal["replace-object", "replace-attribute", "replace-relation", "swap-object"]
ConversationType = Literal["conversation", "brief"]


Score = Annotated[float, Field(ge=-1, le=1)]


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
    """The FAISS HNSW index over the captions, the images, or both."""

    encoder: Literal["lexical", "minilm", "clip", "precomputed"] = "lexical"
    model: str = Field(
        "", description="checkpoint of minilm or clip, by name or folder; for precomputed: of its queries"
    )
    device: str = Field("", description="cpu, cuda, ...; empty: the best there is")
    modalities: tuple[Literal["text", "image"], ...] = Field(("text",), min_length=1, description="what is indexed")
    m: int = Field(32, ge=2, le=128, description="links a vector")
    ef_construction: int = Field(200, ge=8, le=2000)
    recall: float = Field(0.95, gt=0, le=1, description="recall@10 that efSearch is raised for")
    storage: Literal["auto", "flat", "fp16", "int8", "ivfpq"] = "auto"
    memory: float = Field(IndexOptions.memory_gib, gt=0, description="GiB that `auto` chooses the storage by")
    near: float = Field(
        IndexOptions.near, gt=0, le=1, description="cosine from which a vector is a copy of another; 1: equal ones only"
    )
    shards: int = Field(1, ge=1, description="parts of the index, one after the other: memory is that of one")


class RetrieveSection(Section):
    """Keep only the pairs that some query retrieves."""

    queries: str = Field(description="a .txt of one query a line, a JSON of classes and templates, or pairs")
    query_vectors: str = Field("", description="a .npy with a vector for each query, for an index without an encoder")
    k: int = Field(50, ge=1, description="hits a query, or a concept, as `per` says")
    per: Literal["query", "concept"] = "query"
    mode: Literal["t2t", "t2i", "both"] = Field("t2t", description="queries against captions, images, or both")
    cap: int | None = Field(None, ge=1, description="distinct pairs a concept at most")
    min_score: Score | dict[Literal["t2t", "t2i"], Score] = Field(
        -1.0, description="cosine below which a hit does not count; for both modes {t2t: 0.5, t2i: 0.2}"
    )
    floor: Score | dict[Literal["t2t", "t2i"], Score] | None = Field(
        None, description="cosine of a bare name from which its concept counts as covered; empty: the encoder's own"
    )
    recall: float = Field(0.95, gt=0, le=1, description="recall@k that efSearch is tuned to on the queries")
    exclude: tuple[str, ...] = Field((), description="evaluation data that must not leak: pairs, images or lists")

    @model_validator(mode="after")
    def _scores_of_two_modes_do_not_compare(self) -> "RetrieveSection":
        for name, value in (("min_score", self.min_score), ("floor", self.floor)):
            if self.mode == "both" and isinstance(value, float) and value > -1:
                raise ValueError(f"{name}: scores of t2t and t2i do not compare; give one each, {{t2t: 0.5, t2i: 0.2}}")
        return self


class FetchSection(Section):
    """Fetch the images that are URLs, with img2dataset."""

    image_size: int = Field(512, ge=16, description="pixels that resize_mode aims at")
    resize_mode: Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "no"] = "keep_ratio"
    only_if_bigger: bool = Field(default=True, description="leave smaller pictures at their size")
    image_format: Literal["jpg", "png", "webp"] = "jpg"
    quality: int = Field(-1, ge=-1, le=100, description="-1: 95 for jpg, 90 for webp, 6 (effort) for png")
    timeout: float = Field(10, gt=0, description="seconds for each wait on the network")
    threads: int = Field(32, ge=1, description="downloads at a time in each process")
    processes: int = Field(0, ge=0, description="at most; 0: one a core")
    retries: int = Field(1, ge=0, description="further tries for what may pass: timeouts, busy servers")
    ignore_opt_outs: bool = Field(default=False, description="fetch what a site keeps from AI training")
    allow_loopback: bool = Field(default=False, description="fetch from this machine, too")
    proxy: str = Field("", description="http://host:port; empty: that of the environment")
    user_agent: str = Field("", description="who asks; empty: pairwright")
    min_success: float = Field(0.0, ge=0, le=1, description="share that has to arrive, or the build stops")


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
    fetch: FetchSection | None = None
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
    if config.index.model and (base / config.index.model).exists():  # else it is the name of a checkpoint
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
