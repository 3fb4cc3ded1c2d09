"""Stage ``captions``: a model writes captions of the images of the input that have none (`asking.py`).

Of each piece of the input ``captions/PIECE.parquet`` is written and, with their reasons, rejected captions into
``rejected/captions-PIECE.parquet``; then ``captions/all.parquet`` is made, from which the stage ``pairs`` adds its pairs to
the others. The input is read once here and once by the stage ``pairs``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.pieces import Piece, PieceSummary, plan_pieces, read_piece
from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.remote.store_path import to_path
from pairwright.flows.llm.pair_task import PairTask
from pairwright.flows.llm.row_run import RowRun, write_by_part
from pairwright.flows.stages.asking import Asker, Inputs, asking_jobs, asks_by_part
from pairwright.flows.stages.generate import generator_state
from pairwright.flows.state.inputs import files_state, read_options
from pairwright.flows.state.layout import captions_path, part_name, rejected_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm_captions import NAME, captioned_pairs
from pairwright.generators.registry import Materials, build_llm_generator

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

STAGE = "captions"


def captions_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of the stage, whose parts are the pieces of the input."""
    captioning, instances = Captioning.of(run.config), run.config.input.instances
    pieces = {part_name(number): piece for number, piece in enumerate(plan_pieces(captioning.read))}
    states = {
        part: files_state([to_path(stretch.file) for stretch in piece.stretches], instances)
        for part, piece in pieces.items()
    }
    stated = [repr(captioning), generator_state(NAME)]
    return asking_jobs(run, captioning, pieces, states, stated=stated, by_part=asks_by_part(run.config, {}))


@dataclass(frozen=True)
class Captioning:
    """Which images are captioned, and how; an `asking.AskedStage`.

    Attributes:
        read: of the input, including images without a caption.
        options: of the generator.
        seed: of the build.
    """

    read: ReadOptions
    options: Mapping[str, Any]
    seed: int

    @classmethod
    def of(cls, config: "BuildConfig") -> Self:
        """Return what a build captions."""
        assert config.captions is not None
        return cls(read_options(config.input, without_caption=True), config.captions.model_dump(), config.seed)

    def open(self, root: Path, inputs: Inputs, asker: Asker) -> "UncaptionedImages":
        """Return the images of some pieces that have no caption."""
        wordnet = load_wordnet()
        materials = asker.access.materials(Materials(wordnet, load_bundled_statistics(), self.seed), load_tagger())
        task = PairTask(build_llm_generator(NAME, materials, self.options), asker.access, self.seed, self.options)
        return UncaptionedImages(root, task, {part: list(self._images(piece)) for part, piece in inputs.items()})

    def _images(self, piece: Piece) -> Iterator[Pair]:
        for batch in read_piece(self.read, piece, PieceSummary()):
            yield from (pair for pair in batch.pairs if not pair.caption)

    def complete(self, root: Path, parts: Sequence[str], result: JobResult) -> JobResult:
        """Write the captioned pairs of all pieces into one file, each key once."""
        pairs = pl.concat([PAIRS.read_frame(captions_path(root, part)) for part in parts])
        PAIRS.write_frame(pairs.unique("key", keep="first", maintain_order=True), captions_path(root))
        return replace(result, outputs=[captions_path(root), *result.outputs])


class UncaptionedImages:
    """Images without a caption by piece, as `asking.AskedRows`.

    Args:
        root: the build directory.
        task: of the generator.
        images: of each piece.
    """

    def __init__(self, root: Path, task: PairTask, images: Mapping[str, Sequence[Pair]]) -> None:
        self._root, self._task, self._images = root, task, images
        self._counts, self._files = AnnotationCounts(), list[Path]()

    @property
    def count(self) -> int:
        """Number of images."""
        return sum(map(len, self._images.values()))

    def ask(self, run: RowRun) -> None:
        """Ask about all images."""
        sizes = {part: len(images) for part, images in self._images.items()}
        images = (image for each in self._images.values() for image in each)
        run.run(self._task, self._task.rows(images), self.count, write_by_part(sizes, self._write))

    def _write(self, part: str, made: Sequence[Sequence[Annotation]]) -> None:
        """Write the captioned pairs and the rejected captions of a piece."""
        files = [captions_path(self._root, part), rejected_path(self._root, STAGE, part)]
        done = zip(self._images[part], made, strict=True)
        PAIRS.write([each for pair, rows in done for each in captioned_pairs(pair, rows)], files[0])
        ANNOTATIONS.write([row for rows in made for row in rows if row.status == "rejected"], files[1])
        self._files += files
        for rows in made:
            self._counts.add(rows)

    def result(self, outputs: Sequence[Path], bill: Mapping[str, Any]) -> JobResult:
        """Return counts and facts; the unit is an attempt."""
        by_type = self._counts.by_type()
        made, kept = (sum(each[name] for each in by_type.values()) for name in ("made", "kept"))
        name = f"{self._task.generator.name}/{self._task.generator.version}"
        facts = {"generator": name, "by_type": by_type, "images": self.count, "llm": bill}
        counts = Counts("attempt", made, kept, self._counts.reasons())
        return JobResult([*outputs, *self._files], counts, facts)


def uncaptioned_images(read: ReadOptions) -> Iterator[Pair]:
    """Yield the images of an input that have no caption."""
    for batch in read_pairs(read):
        yield from (pair for pair in batch.pairs if not pair.caption)
