"""The build config: a YAML file, checked here once and trusted afterwards.

Unknown keys are refused with the nearest known one; a value that cannot be is refused with its place. Paths
are taken relative to the config file and made absolute, so that a build goes on from any folder.
A section that is left out (``retrieve``, ``positives``, ...) leaves its stage out.
"""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError

from pairwright.datasets.errors import ConfigError
from pairwright.flows.sections import (
    ConversationsSection,
    FetchSection,
    GeneratorSection,
    IndexSection,
    InputSection,
    LLMSection,
    NegativesSection,
    PositivesSection,
    RefineSection,
    RetrieveSection,
    Section,
    ShardsSection,
)

STAGES = (
    *("pairs", "index", "retrieve", "fetch", "tag", "words"),
    *("negatives", "balance", "positives", "conversations", "refine", "shards", "sizes"),
)


class BuildConfig(Section):
    """Everything that a build depends on, besides its input files and the code."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="of the dataset and of its folder")
    seed: int = Field(0, ge=0)
    input: InputSection
    index: IndexSection = IndexSection()
    retrieve: RetrieveSection | None = None
    fetch: FetchSection | None = None
    llm: LLMSection | None = None
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
    by_model = [
        name
        for name in ("negatives", "positives", "conversations")
        if (made := getattr(config, name)) and made.method == "llm"
    ]
    if by_model and config.llm is None:
        raise ConfigError(f"{where}: {by_model[0]} asks a model, and none is named. Add `llm:` with `model:` below it.")
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
    if config.llm:
        files = {name: absolute(getattr(config.llm, name)) for name in ("prompts", "prices")}
        update["llm"] = config.llm.model_copy(update=files)
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
        elif problem["type"] == "value_error":  # said by us, in whole; the value may be a secret
            yield f"`{place}`: {problem['ctx']['error']}. Change it."
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
    if loc[0] == "llm" and any(word in str(loc[-1]) for word in ("key", "token", "secret")):
        return f"unknown key `{place}`. A config holds no secrets: set OPENAI_API_KEY in the environment."
    hint = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(known)}."
    return f"unknown key `{place}`. {hint}"


def _section_of(annotation: object) -> type[BaseModel] | None:
    for option in (annotation, *get_args(annotation)):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None
