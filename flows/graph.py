"""The table of stages (`STAGES`), which full and incremental builds, plans, selections and the documentation read.

To add a stage, write a module in `flows/stages/` with a function that returns its jobs, and add an entry here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import isawaitable

from pairwright.datasets.errors import ConfigError
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.stages.asking import asks_by_part
from pairwright.flows.stages.audit import audit_jobs, has_negatives
from pairwright.flows.stages.balance import balance_jobs
from pairwright.flows.stages.captions import captions_jobs
from pairwright.flows.stages.definition import Stage, StageRun
from pairwright.flows.stages.fetch import fetch_jobs
from pairwright.flows.stages.freeze import freeze_jobs
from pairwright.flows.stages.generate import generate_jobs
from pairwright.flows.stages.generate_with_model import model_jobs
from pairwright.flows.stages.generator_stages import generating_stages, quota_section
from pairwright.flows.stages.index import index_jobs
from pairwright.flows.stages.new_pairs import new_pairs_jobs
from pairwright.flows.stages.pairs import pairs_jobs
from pairwright.flows.stages.rationales import rationales_jobs
from pairwright.flows.stages.refine import refine_jobs
from pairwright.flows.stages.refine_new import refine_new_jobs
from pairwright.flows.stages.retrieve import retrieve_jobs
from pairwright.flows.stages.shards import new_sizes_jobs, shards_jobs, sizes_jobs
from pairwright.flows.stages.tag import tag_jobs
from pairwright.flows.stages.words import STATISTICS, words_jobs
from pairwright.flows.state.code_versions import code_hash, package_versions
from pairwright.flows.state.leftovers import remove_leftovers
from pairwright.flows.state.receipts import json_hash, total_counts
from pairwright.generators.registry import needs_model

THIRD_PARTY = "generators"  # an entry for one stage per third-party generator, which has its name
_SELECTED = ("pairs", "retrieve", "fetch")
_MATERIALS = (*_SELECTED, "tag", "words")
_BALANCES = ("balance", "balance-positives", "balance-conversations")
_TEXTS = ("negatives", "positives", "conversations", THIRD_PARTY, *_BALANCES, "refine")
_MODEL = "the model, prompts and parameters, if a model is used"
_ASKING = ("captions", "rationales")  # stages that always ask a model; generating ones do so with some generators


def _has(section: str) -> Callable[[BuildConfig], bool]:
    return lambda config: bool(getattr(config, section))


def _limits_conversations(config: BuildConfig) -> bool:
    return quota_section(config, "conversations") is not None


# One entry per stage, in the order in which they run.
# fmt: off
STAGES: tuple[Stage, ...] = (
    Stage("captions", "writes captions of images that have none", (), "attempt", "part, set",
          captions_jobs, captions_jobs,
          depends_on="the input files, the model, prompts and parameters", applies=_has("captions")),
    Stage("pairs", "reads and checks the input", ("captions",), "row", "part, set", pairs_jobs, new_pairs_jobs,
          depends_on="the input files", leftovers=("scan/*", "pairs/*", "rejected/pairs-*"), passes=2),
    Stage("index", "builds the FAISS index", ("pairs",), "pair", "part, set", index_jobs, index_jobs,
          depends_on="the checkpoint or the precomputed vectors",
          applies=_has("index_section"), applies_incrementally=_has("retrieve")),
    Stage("retrieve", "selects the pairs that queries find", ("pairs", "index"), "pair", "part, set",
          retrieve_jobs, retrieve_jobs, depends_on="the queries and the excluded data", applies=_has("retrieve")),
    Stage("fetch", "downloads images", ("pairs", "retrieve"), "pair", "set", fetch_jobs, fetch_jobs,
          depends_on="the excluded data", applies=_has("fetch")),
    Stage("tag", "tags captions", ("pairs",), "caption", "part", tag_jobs, tag_jobs,
          depends_on="the tagger", own_part=True),
    Stage("words", "counts the words of the pool and learns its edit model", ("pairs", "tag"), "caption", "part, set", words_jobs, None,
          frozen=STATISTICS, leftovers=("statistics/*",)),
    Stage("negatives", "writes hard negatives", _MATERIALS, "attempt", "part", generate_jobs, generate_jobs,
          depends_on=_MODEL, applies=_has("negatives")),
    Stage("positives", "writes hard positives", (*_MATERIALS, "negatives"), "attempt", "part",
          generate_jobs, generate_jobs, depends_on=_MODEL, applies=_has("positives")),
    Stage("conversations", "writes conversations", _MATERIALS, "attempt", "part", generate_jobs, generate_jobs,
          depends_on=_MODEL, applies=_has("conversations")),
    Stage(THIRD_PARTY, "runs a third-party generator, whose name it has", _MATERIALS, "attempt", "part",
          generate_jobs, generate_jobs, depends_on="the package of the generator", applies=_has("generators")),
    Stage("balance", "applies quotas to negatives", ("negatives",), "negative", "part, set", balance_jobs, balance_jobs,
          applies=_has("negatives"), passes=2),
    Stage("balance-positives", "applies quotas to positives", ("positives",), "positive", "part, set",
          balance_jobs, balance_jobs, applies=_has("positives"), passes=2),
    Stage("balance-conversations", "applies quotas to conversations", ("conversations",), "conversation", "part, set",
          balance_jobs, balance_jobs, applies=_limits_conversations, passes=2),
    Stage("freeze", "saves the scorers of the last full build", (), "caption", "set", None, freeze_jobs,
          depends_on="the last full build", applies=_has("refine"), in_base=True),
    Stage("refine", "rejects negatives that a text-only model can detect", ("pairs", "balance", THIRD_PARTY, "freeze"),
          "negative", "part", refine_jobs, refine_new_jobs, applies=_has("refine"), passes=8),
    Stage("rationales", "explains negatives and true captions", (*_SELECTED, *_TEXTS), "row", "part",
          rationales_jobs, rationales_jobs, depends_on=_MODEL, applies=_has("rationales")),
    Stage("shards", "packs WebDataset shards", (*_SELECTED, *_TEXTS, "rationales"), "pair", "shard",
          shards_jobs, shards_jobs, depends_on="the image files", leftovers=("shards/*.tar", "shards/*.index")),
    Stage("sizes", "writes sizes and checksums of the shards", ("shards",), "sample", "set",
          sizes_jobs, new_sizes_jobs),
    Stage("audit", "attacks all kept negatives, old and new", ("pairs", *_TEXTS), "negative", "set", None, audit_jobs,
          applies=has_negatives),
)
# fmt: on


def stages_of(config: BuildConfig, *, incremental: bool = False) -> tuple[Stage, ...]:
    """Return the stages of a full or incremental build in the order in which they run.

    Raises:
        ConfigError: when a third-party generator has the name of a stage or of another generator.
    """
    taken = [*(stage.name for stage in STAGES), *(generator.name for generator in config.generators)]
    if twice := sorted({name for name in taken if taken.count(name) > 1}):
        raise ConfigError(f"generators: {twice[0]!r} is the name of another stage or generator. Use each name once.")
    found: list[Stage] = []
    for stage in STAGES:
        applies = (incremental and stage.applies_incrementally) or stage.applies
        if (stage.incremental if incremental else stage.full) and applies(config):
            found += _named(stage, config)
    return tuple(found)


def stage_names(config: BuildConfig) -> tuple[str, ...]:
    """Return the names of the stages of a full build in the order in which they run."""
    return tuple(stage.name for stage in stages_of(config))


def _named(stage: Stage, config: BuildConfig) -> list[Stage]:
    """Return the stages of an entry: one, or one per third-party generator."""
    names = [generator.name for generator in config.generators] if stage.name == THIRD_PARTY else [stage.name]
    with_model = {each.name: each.options for each in generating_stages(config) if needs_model(each.generator)}

    def variant(name: str) -> Stage:
        found = replace(stage, full=model_jobs, incremental=model_jobs) if name in with_model else stage
        asks = name in with_model or name in _ASKING
        return replace(found, scope="set") if asks and not asks_by_part(config, with_model.get(name, {})) else found

    return [replace(variant(name), name=name) for name in names]


async def run_stages(stages: Sequence[Stage], run: StageRun) -> bool:
    """Run the stages of a build in order.

    Args:
        stages: from `stages_of`.
        run: with the config, the engine and, for an incremental build, its base.

    Returns:
        Whether the build has pairs; an increment without new pairs ends after stage ``pairs``.
    """
    frozen = {stage.name: stage.frozen for stage in STAGES}
    third_party = [generator.name for generator in run.config.generators]
    for stage in stages:
        names = [name for entry in stage.inputs for name in (third_party if entry == THIRD_PARTY else [entry])]
        receipts = [receipt for name in names for receipt in run.receipts(name, frozen.get(name, ()))]
        engine = replace(run.engine, root=run.increment_base.root) if stage.in_base else run.engine
        build_jobs = stage.incremental if run.base else stage.full
        assert build_jobs is not None
        inputs = [] if stage.own_part else [receipt.digest for receipt in receipts]
        version = json_hash([code_hash(build_jobs.__module__), package_versions(), inputs])
        jobs = build_jobs(replace(run, engine=engine, name=stage.name, version=version))
        done = await engine.run_stage(stage.name, await jobs if isawaitable(jobs) else jobs)
        if stage.leftovers:
            remove_leftovers(run.root, run.engine.done, *stage.leftovers)
        if stage.name == "pairs" and run.base and not total_counts(done).kept:
            return False
    return True
