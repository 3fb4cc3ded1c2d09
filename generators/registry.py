"""Registry of generators: the built-in ones in one table, third-party ones by entry point.

A third-party package declares in its pyproject.toml

    [project.entry-points."pairwright.generators"]
    my-generator = "my_package.my_module:make"

where ``make(materials, **options)`` returns a `generators.protocols.RuleGenerator`; or, in the group
``pairwright.llm_generators``, an `LLMGenerator`, from `LLMMaterials`. It is imported on
first use. A name that is declared twice, or equals a built-in one, is an error.
"""

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.generators.conversations.llm_generator import LLMConversationOptions, LLMConversations
from pairwright.generators.conversations.template_generator import ConversationOptions, TemplateConversations
from pairwright.generators.edits.general_english import GeneralEnglish
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.llm_negatives import LLMNegativeOptions, LLMNegatives
from pairwright.generators.llm_positives import LLMPositiveOptions, LLMPositives
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.positives import PositiveOptions, RulePositives
from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.protocols import LLMGenerator, RuleGenerator

GROUP, LLM_GROUP = "pairwright.generators", "pairwright.llm_generators"


@dataclass(frozen=True)
class Materials:
    """What a generator is constructed with: the WordNet table, the statistics of the pool, and the seed of the build."""

    wordnet: WordNet
    pool: PoolStatistics | GeneralEnglish
    seed: int


@dataclass(frozen=True)
class LLMMaterials(Materials):
    """Materials of a generator that asks a model: also the model's name, the prompts and the tagger."""

    model: str
    prompts: PromptBook
    tagger: Tagger


GeneratorFactory = Callable[..., Any]


@dataclass(frozen=True)
class BuiltInGenerator:
    """An entry of the table: factory, description, and what the generator needs."""

    make: GeneratorFactory
    about: str
    asks_pool: bool = True
    asks_model: bool = False


def _negatives(materials: Materials, **options: Any) -> RuleGenerator:
    return RuleNegatives(materials.wordnet, materials.pool, NegativeOptions(seed=materials.seed, **options))


def _positives(materials: Materials, **options: Any) -> RuleGenerator:
    return RulePositives(materials.wordnet, materials.pool, PositiveOptions(seed=materials.seed, **options))


def _conversations(materials: Materials, **options: Any) -> RuleGenerator:
    return TemplateConversations(ConversationOptions(seed=materials.seed, **options))


def _llm_negatives(materials: LLMMaterials, **options: Any) -> LLMGenerator:
    chosen = LLMNegativeOptions(seed=materials.seed, **options)
    return LLMNegatives(materials.wordnet, materials.pool, materials.tagger, materials.prompts, materials.model, chosen)


def _llm_positives(materials: LLMMaterials, **options: Any) -> LLMGenerator:
    chosen = LLMPositiveOptions(seed=materials.seed, **options)
    return LLMPositives(materials.wordnet, materials.pool, materials.tagger, materials.prompts, materials.model, chosen)


def _llm_conversations(materials: LLMMaterials, **options: Any) -> LLMGenerator:
    chosen = LLMConversationOptions(seed=materials.seed, **options)
    return LLMConversations(materials.wordnet, materials.tagger, materials.prompts, materials.model, chosen)


BUILT_IN: Mapping[str, BuiltInGenerator] = {
    "rules-negatives": BuiltInGenerator(_negatives, "hard negatives: replace or swap objects, attributes, relations"),
    "rules-positives": BuiltInGenerator(_positives, "hard positives: synonyms, and swaps around 'and'"),
    "template-conversations": BuiltInGenerator(
        _conversations, "question-answer turns that captions and boxes prove", asks_pool=False
    ),
    "llm-negatives": BuiltInGenerator(
        _llm_negatives, "hard negatives of seven types, written by a model", asks_model=True
    ),
    "llm-positives": BuiltInGenerator(_llm_positives, "hard positives, written by a model", asks_model=True),
    "llm-conversations": BuiltInGenerator(
        _llm_conversations, "conversations, descriptions and reasoning by a model", asks_pool=False, asks_model=True
    ),
}


def build_generator(name: str, materials: Materials, options: Mapping[str, Any]) -> RuleGenerator:
    """Return the generator ``name``, constructed with its options.

    Raises:
        UsageError: unknown or ambiguous name, failed import, unknown options, or a generator that asks a model.
    """
    if needs_model(name):
        raise UsageError(f"generator {name} requires a model: pass --model, or set `llm.model` in the config.")
    return cast("RuleGenerator", _build(name, materials, options))


def build_llm_generator(name: str, materials: LLMMaterials, options: Mapping[str, Any]) -> LLMGenerator:
    """Return the generator ``name``, which asks a model, constructed with its options.

    Raises:
        UsageError: as `build_generator`, and for a generator that asks no model.
    """
    _find_factory(name)
    if not needs_model(name):
        raise UsageError(f"generator {name} asks no model: remove the model.")
    return cast("LLMGenerator", _build(name, materials, options))


def _build(name: str, materials: Materials, options: Mapping[str, Any]) -> Any:
    make = _find_factory(name)
    try:
        return make(materials, **options)
    except TypeError as error:
        raise UsageError(f"generator {name} does not take the options {dict(options)}: {error}.") from None


def needs_model(name: str) -> bool:
    """Return whether a generator asks a model."""
    if name in BUILT_IN:
        return BUILT_IN[name].asks_model
    return any(point.name == name and point.group == LLM_GROUP for point in _entry_points())


def generator_fingerprint(name: str) -> str:
    """Return the identity of a third-party generator's code: package, version and hash of its module.

    The identity of a built-in generator is its name: a build depends on its source anyway.
    """
    points = [point for point in _entry_points() if point.name == name]
    if not points:
        return name
    try:
        spec = find_spec(points[0].module)
    except ModuleNotFoundError as error:
        raise UsageError(f"generator {name} ({points[0].value}) cannot be loaded: {error}.") from None
    source = Path(spec.origin).read_bytes() if spec and spec.origin else b""
    owner = f"{points[0].dist.name} {points[0].dist.version}" if points[0].dist else ""
    return f"{name} {owner} {hashlib.sha256(source).hexdigest()}"


def needs_pool(name: str) -> bool:
    """Return whether a generator needs the statistics of the pool; assumed for third-party generators."""
    return name not in BUILT_IN or BUILT_IN[name].asks_pool


def list_generators() -> list[tuple[str, str, str]]:
    """Return (name, package, description) of every generator, built-in ones first."""
    rows = [(name, "pairwright", entry.about) for name, entry in BUILT_IN.items()]
    rows += [(point.name, point.dist.name if point.dist else "?", point.value) for point in _entry_points()]
    return rows


def _find_factory(name: str) -> GeneratorFactory:
    named = [point for point in _entry_points() if point.name == name]
    if name in BUILT_IN and not named:
        return BUILT_IN[name].make
    if not named:
        require_known("no generator named", [name], [known for known, _, _ in list_generators()])
    if name in BUILT_IN or len(named) > 1:
        owners = ", ".join(sorted(point.dist.name if point.dist else point.value for point in named))
        raise UsageError(f"the generator name {name!r} is declared more than once ({owners}). Uninstall or rename one.")
    return _load(named[0])


def _entry_points() -> tuple[EntryPoint, ...]:
    """Return the entry points of both groups, cached until a folder of ``sys.path`` changes."""
    return _read_entry_points(tuple((folder, _modified_time(folder)) for folder in sys.path))


def _modified_time(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns  # changes when a package is installed or removed
    except OSError:
        return 0


@lru_cache(maxsize=1)
def _read_entry_points(_folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    there = entry_points()
    points = [*there.select(group=GROUP), *there.select(group=LLM_GROUP)]
    return tuple(sorted(points, key=lambda point: (point.name, point.value)))


def _load(point: EntryPoint) -> GeneratorFactory:
    try:
        return cast("GeneratorFactory", point.load())
    except (ImportError, AttributeError) as error:
        raise UsageError(f"generator {point.name} ({point.value}) cannot be loaded: {error}.") from None
