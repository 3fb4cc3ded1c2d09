"""Registry of generators: the built-in ones in one table, third-party ones by entry point.

A third-party package declares in its pyproject.toml

    [project.entry-points."pairwright.generators"]
    my-generator = "my_package.my_module:make"

where ``make(materials, **options)`` returns a `generators.protocols.RuleGenerator`; or, in the group
``pairwright.llm_generators``, an `LLMGenerator` or a `CheckedLLMGenerator`, from `LLMMaterials`. See `datasets/plugins.py` for loading and errors.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from pairwright.datasets.errors import UsageError
from pairwright.datasets.plugins import PluginRegistry, iterate_plugin, report_failures
from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.protocols import AnyLLMGenerator, RuleGenerator

if TYPE_CHECKING:
    from pairwright.generators.llm.images import MessageImages
    from pairwright.generators.prompts.book import PromptBook

GROUP, LLM_GROUP = "pairwright.generators", "pairwright.llm_generators"


@dataclass(frozen=True)
class Materials:
    """What a generator is constructed with.

    Attributes:
        wordnet: WordNet.
        pool: statistics of the captions of the pool.
        seed: of the run.
        edits: edit model of the pool, for generators by rules; the bundled one if None.
    """

    wordnet: WordNet
    pool: PoolStatistics
    seed: int
    edits: EditModel | None = None


@dataclass(frozen=True, kw_only=True)
class LLMMaterials(Materials):
    """Materials of a generator that asks a model.

    Attributes:
        model: its name.
        prompts: prompts.
        tagger: tags captions and answers.
        images: reads and encodes images for it; None: at the default size.
    """

    model: str
    prompts: "PromptBook"
    tagger: Tagger
    images: "MessageImages | None" = None


GeneratorFactory = Callable[..., Any]


@dataclass(frozen=True)
class BuiltInGenerator:
    """An entry of the table: factory, description, and what the generator needs."""

    make: GeneratorFactory
    about: str
    asks_pool: bool = True
    asks_model: bool = False
    edits_captions: bool = False


# Each imports its module when called: those of other generators take half a second, in every process.


def _cloze(materials: Materials) -> ClozeModel | None:
    return materials.edits.cloze if materials.edits is not None else None


def _negatives(materials: Materials, **options: Any) -> RuleGenerator:
    from pairwright.generators.negatives import NegativeOptions, RuleNegatives

    return RuleNegatives(
        materials.wordnet, materials.pool, NegativeOptions(seed=materials.seed, **options), materials.edits
    )


def _positives(materials: Materials, **options: Any) -> RuleGenerator:
    from pairwright.generators.positives import PositiveOptions, RulePositives

    return RulePositives(materials.pool, PositiveOptions(seed=materials.seed, **options), _cloze(materials))


def _conversations(materials: Materials, **options: Any) -> RuleGenerator:
    from pairwright.generators.conversations.template_generator import ConversationOptions, TemplateConversations

    return TemplateConversations(ConversationOptions(seed=materials.seed, **options))


def _llm_negatives(materials: LLMMaterials, **options: Any) -> AnyLLMGenerator:
    from pairwright.generators.llm_edits.negatives import LLMNegativeOptions, LLMNegatives

    chosen = LLMNegativeOptions(seed=materials.seed, **options)
    own = (materials.wordnet, materials.pool, materials.tagger, materials.prompts, materials.model)
    return LLMNegatives(*own, chosen, images=materials.images)


def _llm_positives(materials: LLMMaterials, **options: Any) -> AnyLLMGenerator:
    from pairwright.generators.llm_edits.positives import LLMPositiveOptions, LLMPositives

    chosen = LLMPositiveOptions(seed=materials.seed, **options)
    own = (materials.wordnet, materials.pool, materials.tagger, materials.prompts, materials.model)
    return LLMPositives(*own, chosen, images=materials.images)


def _llm_conversations(materials: LLMMaterials, **options: Any) -> AnyLLMGenerator:
    from pairwright.generators.conversations.llm_generator import LLMConversationOptions, LLMConversations

    chosen = LLMConversationOptions(seed=materials.seed, **options)
    return LLMConversations(
        materials.wordnet, materials.tagger, materials.prompts, materials.model, chosen, images=materials.images
    )


def _llm_captions(materials: LLMMaterials, **options: Any) -> AnyLLMGenerator:
    from pairwright.generators.llm_captions import LLMCaptionOptions, LLMCaptions

    chosen = LLMCaptionOptions(seed=materials.seed, **options)
    return LLMCaptions(
        materials.wordnet, materials.tagger, materials.prompts, materials.model, chosen, images=materials.images
    )


BUILT_IN: Mapping[str, BuiltInGenerator] = {
    "rules-negatives": BuiltInGenerator(
        _negatives, "hard negatives: replace or swap objects, attributes, relations", edits_captions=True
    ),
    "rules-positives": BuiltInGenerator(
        _positives, "hard positives: synonyms, and swaps around 'and'", edits_captions=True
    ),
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
    "llm-captions": BuiltInGenerator(
        _llm_captions, "captions by a model that sees the image", asks_pool=False, asks_model=True
    ),
}


GENERATORS = PluginRegistry("generator", (GROUP, LLM_GROUP), BUILT_IN, attrgetter("about"))


def build_generator(name: str, materials: Materials, options: Mapping[str, Any]) -> RuleGenerator:
    """Return the generator ``name``, constructed with its options.

    Raises:
        UsageError: unknown or ambiguous name, failed import, unknown options, or a generator that asks a model.
    """
    if needs_model(name):
        raise UsageError(f"generator {name} requires a model: pass --model, or set `llm.model` in the config.")
    made = _build(name, materials, options)
    return cast("RuleGenerator", made if name in BUILT_IN else ThirdPartyGenerator(made, name))


def build_llm_generator(name: str, materials: LLMMaterials, options: Mapping[str, Any]) -> AnyLLMGenerator:
    """Return the generator ``name``, which asks a model, constructed with its options.

    Raises:
        UsageError: as `build_generator`, and for a generator that asks no model.
    """
    _find_factory(name)
    if not needs_model(name):
        raise UsageError(f"generator {name} asks no model: remove the model.")
    return cast("AnyLLMGenerator", _build(name, materials, options))


def _build(name: str, materials: Materials, options: Mapping[str, Any]) -> Any:
    make = _find_factory(name)
    with nullcontext() if name in BUILT_IN else report_failures(f"generator {name}"):
        try:
            return make(materials, **options)
        except TypeError as error:
            raise UsageError(f"generator {name} does not take the options {dict(options)}: {error}.") from None


class ThirdPartyGenerator:
    """A rule generator of another package, whose exceptions name it."""

    def __init__(self, generator: RuleGenerator, registered: str) -> None:
        self._generator, self._label = generator, f"generator {registered}"
        with report_failures(self._label):
            self.name, self.version = generator.name, generator.version

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return the annotations of ``pair``, kept and rejected.

        Raises:
            PluginError: the generator raised an exception, or returned something else than annotations of the pair with
                different ids.
        """
        rows = list(iterate_plugin(self._generator.annotate, Annotation, self._label, pair, tokens, rng))
        with report_failures(self._label):
            if any(row.key != pair.key for row in rows):
                raise ValueError("an annotation has the key of another pair; use `pair.key`")
            if len({row.id for row in rows}) < len(rows):
                raise ValueError("two annotations of a pair have the same id; number them in `annotation_id`")
        return rows


def needs_model(name: str) -> bool:
    """Return whether a generator asks a model."""
    if name in BUILT_IN:
        return BUILT_IN[name].asks_model
    return any(point.name == name and point.group == LLM_GROUP for point in GENERATORS.entry_points())


def generator_fingerprint(name: str) -> str:
    """Return a text that changes when a third-party generator changes; see `PluginRegistry.fingerprint`."""
    return GENERATORS.fingerprint(name)


def needs_pool(name: str) -> bool:
    """Return whether a generator needs the statistics of the pool; assumed for third-party generators."""
    return name not in BUILT_IN or BUILT_IN[name].asks_pool


def needs_edit_model(name: str) -> bool:
    """Return whether a generator needs the edit model of the pool, which takes time to learn."""
    return name in BUILT_IN and BUILT_IN[name].edits_captions


def balanced_types(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types of edits whose word balance a generator with these options reads; all for a third-party one."""
    from pairwright.generators.edits.editors import BALANCED_TYPES
    from pairwright.generators.edits.learning import types_to_balance

    if name not in BUILT_IN:
        return tuple(BALANCED_TYPES)
    if name != "rules-negatives":
        return ()
    from pairwright.generators.negatives import NegativeOptions

    chosen = NegativeOptions(**options)
    return types_to_balance(chosen.types, both_sides=chosen.both_sides)


def _find_factory(name: str) -> GeneratorFactory:
    point = GENERATORS.find_entry_point(name)
    return BUILT_IN[name].make if point is None else cast("GeneratorFactory", GENERATORS.load(point))
