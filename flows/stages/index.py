"""Stage ``index``: a FAISS index over captions or images.

A job per part of the pairs gathers what all parts of the index need to know, one job plans them, and each part of the
index is a job; a search merges the parts.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.datasets.record_tables import REJECTS
from pairwright.flows.config.sections import PRECOMPUTED
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.layout import pairs_path, read_pair_parts, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult, json_hash
from pairwright.indexes.building.jobs import IndexSettings, build_planned_part, complete_index, plan_index
from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors
from pairwright.indexes.building.survey import survey_pairs
from pairwright.indexes.encoders.registry import BUILT_IN, ENCODERS, EncoderOptions
from pairwright.indexes.hnsw.index_folder import part_name
from pairwright.indexes.hnsw.metadata import METADATA_FILE, MODALITIES, FileDigests, Modality, PartInfo
from pairwright.indexes.hnsw.options import IndexOptions

if TYPE_CHECKING:
    from pairwright.flows.config.sections import IndexSection
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun


def index_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``index``: surveys of the parts, the plan, the parts of the index, and ``index.json``.

    An increment uses the encoder of the full build's index.
    """
    config, section = run.config, run.config.index_section
    assert section is not None
    setting = IndexSource(section, config.input.path, config.seed, run.base.root / "index" if run.base else None)
    state = f"{_index_state(section, config.input.path)} {run.base_state}"
    surveyed = yield run.job_per_part(survey_part, setting.settings.counts_features)
    pairs = sum(each.facts["pairs"] for each in surveyed)
    planned = yield [run.job(plan_parts, run.parts, setting, part="plan", state=state, after=surveyed)]
    shards = section.shards or default_shards(pairs)
    size = -(-pairs // shards)
    numbers = [(modality, number) for modality in setting.modalities for number in range(-(-pairs // size))]
    after, single = json_hash([planned[0].digest, run.parts]), len(numbers) == 1
    built = yield [
        run.job(
            *(build_index_part, run.parts, setting, modality, number, shards, 0 if single else 1),
            part=part_name(modality, number),
            settings=[repr(setting), modality, number, shards],
            state=after,
            multi_core=single,
        )
        for modality, number in numbers
    ]
    facts = [each.facts for each in built]
    return [run.job(complete, setting, facts, settings=[repr(setting)], after=(*planned, *built))]


def default_shards(pairs: int) -> int:
    """Return the number of parts of an index of so many pairs, if the config has none: the square root of pairs / 4,096.

    So 4,000 pairs are one part, 200,000 are 7 and ten million 50.
    """
    return max(1, -(-math.isqrt(pairs) // 64))


@dataclass(frozen=True)
class IndexSource:
    """What the index is built with.

    Attributes:
        section: of the config.
        source: path of the input; with precomputed vectors, their folder.
        seed: of the build.
        encoder_of: folder of an index whose encoder is used; None for a new encoder.
    """

    section: "IndexSection"
    source: str
    seed: int
    encoder_of: Path | None

    @property
    def modalities(self) -> list[Modality]:
        """The modalities, in the order of the parts of the index."""
        return [name for name in MODALITIES if name in self.section.modalities]

    @cached_property
    def settings(self) -> IndexSettings:
        """The settings of the index."""
        section = self.section
        return IndexSettings(
            encoder=None if self.encoder_of else _encoder(section, self.seed),
            encoder_from=self.encoder_of,
            vectors=PrecomputedVectors(Path(self.source)) if section.encoder == PRECOMPUTED else None,
            modalities=tuple(section.modalities),
            options=IndexOptions(
                m=section.m,
                ef_construction=section.ef_construction,
                recall=section.recall,
                storage=section.storage,
                memory_gib=section.memory,
                near=section.near_duplicates,
            ),
        )


def survey_part(root: Path, part: str, count_features: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Gather from a part of the pairs what the index has to know of all."""
    survey = survey_pairs(read_pair_parts(root, [part]), count_features=count_features)
    survey.save(_survey_path(root, part))
    return JobResult([_survey_path(root, part)], Counts("pair"), {"pairs": survey.entries.pairs})


def plan_parts(root: Path, parts: list[str], source: IndexSource) -> JobResult:
    """Write the encoder, and what all parts of the index need."""
    surveys = [_survey_path(root, part) for part in parts]

    def captions() -> Iterator[str]:
        for pairs in read_pair_parts(root, parts):
            for pair in pairs:
                yield pair.caption
                yield from pair.captions

    files = plan_index(root / "index", _pair_files(root, parts), surveys, source.settings, captions)
    return JobResult(files, Counts("pair"))


def build_index_part(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path, parts: list[str], source: IndexSource, modality: Modality, number: int, shards: int, threads: int
) -> JobResult:
    """Build a part of the index. A pair without a vector is a rejected row, but stays in the build."""
    folder, pairs = root / "index", _pair_files(root, parts)
    built = build_planned_part(folder, pairs, _plan_path(root), source.settings, modality, number, shards, threads)
    rejected = rejected_path(root, "index", part_name(modality, number))
    REJECTS.write(built.rejects, rejected)
    reasons = dict(sorted(Counter(reject.reason for reject in built.rejects).items()))
    facts = {"info": asdict(built.info) if built.info else None, "files": built.files, "rejected": reasons}
    return JobResult([*(folder / name for name in sorted(built.files)), rejected], Counts("pair"), facts)


def complete(root: Path, source: IndexSource, parts: Sequence[Mapping[str, Any]]) -> JobResult:
    """Write ``index.json``; the unit is a pair.

    A pair is found by any of its captions. Equal or nearly equal vectors share one entry of the index.
    """
    infos = [PartInfo(**part["info"]) for part in parts if part["info"]]
    rejected = Counter[str]()
    files: FileDigests = {}
    for part in parts:
        rejected.update(part["rejected"])
        files |= part["files"]
    info = complete_index(root / "index", _plan_path(root), source.settings, infos, rejected, files)
    facts = {name: value for name, value in info.summary().items() if name in _INDEX_FACTS}
    counts = Counts("pair", info.pairs, info.pairs)
    return JobResult([root / "index" / METADATA_FILE], counts, {**facts, "without_vector": dict(info.rejected)})


def _survey_path(root: Path, part: str) -> Path:
    return root / "statistics" / f"index-{part}.npz"


def _plan_path(root: Path) -> Path:
    return root / "statistics" / "index-plan.npz"


def _pair_files(root: Path, parts: Sequence[str]) -> list[Path]:
    return [pairs_path(root, part) for part in parts]


_INDEX_FACTS = frozenset(
    (
        "kind",
        "storage",
        "dim",
        "captions",
        "vectors",
        "duplicates",
        "near_duplicates",
        "ef_search",
        "bytes",
        "modalities",
    )
)


def _index_state(section: "IndexSection", source: str) -> str:
    """Return the state of what the index is built from besides the pairs: checkpoints and precomputed vectors."""
    folders = [Path(section.model)] if section.model and Path(section.model).exists() else []
    if section.encoder == PRECOMPUTED:
        folders += [path for kind in ("img_emb", "text_emb") if (path := Path(source) / kind).is_dir()]
    state = file_state(folders)
    if section.encoder not in (*BUILT_IN, PRECOMPUTED):
        state += ENCODERS.fingerprint(section.encoder)
    return state


def _encoder(section: "IndexSection", seed: int) -> EncoderOptions | None:
    if section.encoder == PRECOMPUTED and not section.model:
        return None
    name = "clip" if section.encoder == PRECOMPUTED else section.encoder
    return EncoderOptions(name, seed=seed, model=section.model, device=section.device)
