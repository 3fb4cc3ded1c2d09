"""What the stages of a build would ask a model, and the cost: the second part of ``pairwright plan``."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pairwright.datasets.readers.pairs import read_pairs
from pairwright.datasets.records import Pair
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.llm.estimate import estimate_rows
from pairwright.flows.llm.model_access import ModelAccess, model_access_for_build
from pairwright.flows.llm.pair_task import KEPT_SHARE, PairTask
from pairwright.flows.llm.quotas import restrict_to_counts
from pairwright.flows.rationales.generation import RationaleTask
from pairwright.flows.stages.captions import uncaptioned_images
from pairwright.flows.stages.generator_stages import generating_stages, selection_of
from pairwright.flows.stages.rationales import STAGE, TASK
from pairwright.flows.state.inputs import read_options
from pairwright.flows.state.layout import fetched_part_path, retrieved_part_path
from pairwright.flows.state.selected_pairs import selected_pairs
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.budget import SpendingTotals
from pairwright.generators.llm.cost_estimate import RowSample, StagePlan, sample_rows
from pairwright.generators.llm_captions import NAME
from pairwright.generators.rationales.generator import RationaleSettings
from pairwright.generators.rationales.task_files import open_task
from pairwright.generators.registry import LLMMaterials, Materials, build_llm_generator, needs_model

EXPECTED_CAPTION = "A woman in a blue apron slices bread next to a bowl of soup"


def plan_build_requests(config: BuildConfig, out: Path) -> list[StagePlan]:
    """Return an estimate for each stage of a build that uses a model, in order.

    Pairs that were retrieved or fetched already are known from the build directory; otherwise the estimate covers all of
    the input, of which retrieval may select less.

    Raises:
        PairwrightError: the build could not start.
    """
    stages = [stage for stage in generating_stages(config) if needs_model(stage.generator)]
    if not (stages or config.rationales or config.captions):
        return []
    access = model_access_for_build(config.llm, out, SpendingTotals(), seed=config.seed)
    tagger, wordnet = load_tagger(), load_wordnet()
    # The statistics of the pool change what is kept, not the requests.
    materials = access.materials(Materials(wordnet, load_bundled_statistics(), config.seed), tagger)
    plans = [_plan_captions(config, access, materials)] if config.captions else []
    if not stages and not config.rationales:
        return plans
    for stage in stages:
        keys = (pair.key for pair in _selected_pairs(config, out))
        options = restrict_to_counts(stage.options, keys, config.seed)
        generator = build_llm_generator(stage.generator, materials, options)
        plan = PairTask(generator, access, config.seed).estimate(_selected_pairs(config, out))
        plans.append(replace(plan, stage=stage.name))
    if config.rationales:
        sample = sample_rows(_selected_pairs(config, out), seed=config.seed)
        plans.append(_plan_rationales(config, sample, access))
    return plans


def _plan_captions(config: BuildConfig, access: ModelAccess, materials: LLMMaterials) -> StagePlan:
    assert config.captions is not None
    generator = build_llm_generator(NAME, materials, config.captions.model_dump())
    options = read_options(config.input, without_caption=True)
    images = uncaptioned_images(replace(options, verify_images="off"))
    return replace(PairTask(generator, access, config.seed).estimate(images), stage="captions")


def _plan_rationales(config: BuildConfig, sample: RowSample[Pair], access: ModelAccess) -> StagePlan:
    """Return an estimate for captions and their negatives, each a distinct text about as long as its caption.

    Of the negatives of a model, the usual share is kept; of those by rules, which depends on the captions, all may be.
    """
    assert config.rationales is not None
    definition = open_task(TASK)
    task = RationaleTask.open(definition, RationaleSettings(seed=config.seed, **config.rationales.model_dump()), access)
    section = config.negatives
    negatives = len(section.types) * section.per_type * section.candidates if section else 1
    kept = negatives * (KEPT_SHARE if section and section.method == "llm" else 1.0)
    rows = []
    for pair in sample.items:
        known = [pair.caption, *pair.captions, *(box.label for box in pair.boxes)]
        for ordinal, label in enumerate(["yes", *["no"] * negatives]):
            # Equal texts would be one request.
            text = f"{pair.caption} {ordinal}" if ordinal else pair.caption
            fields = {"known": list(dict.fromkeys(known)), "caption": text, "label": label, "image": pair.image}
            item = definition.item(fields, pair.key)
            rows.append(task.row((item, ordinal)))
    return estimate_rows(STAGE, rows, round(sample.total * (kept + 1)), access)


def _selected_pairs(config: BuildConfig, out: Path) -> Iterator[Pair]:
    selection = selection_of(config)
    table = {"retrieved": retrieved_part_path, "fetched": fetched_part_path}.get(selection)
    parts = sorted((out / "pairs").glob("*.parquet"))
    if table is not None and parts and all(table(out, path.stem).exists() for path in parts):
        for path in parts:
            yield from selected_pairs(out, path.stem, selection)
        return
    options = read_options(config.input, without_caption=config.captions is not None)
    for batch in read_pairs(replace(options, verify_images="off")):
        for pair in batch.pairs:
            yield from [pair] if pair.caption else _with_expected_captions(config, pair)


def _with_expected_captions(config: BuildConfig, pair: Pair) -> Iterator[Pair]:
    """Yield the pairs that an image without a caption becomes, with texts of about the length of captions."""
    assert config.captions is not None
    for number in range(len(config.captions.forms) * config.captions.per_image):
        yield replace(pair, key=f"{pair.key}{number}", caption=f"{EXPECTED_CAPTION} {pair.key[:6]}{number}")
