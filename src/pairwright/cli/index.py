"""``pairwright index``: build a FAISS index over captions and images, add to it, merge, look at it, check it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import FAILED, exit_below_target
from pairwright.cli.options.input import (
    ColumnsOption,
    ExplodeOption,
    FormatOption,
    ImageRootOption,
    InputArgument,
    JsonOption,
    OnErrorOption,
    SeedOption,
    text_options,
)
from pairwright.cli.output.console import columns, emit, note
from pairwright.cli.output.overwrite_checks import check_index_output, check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, next_step
from pairwright.datasets.errors import UsageError
from pairwright.datasets.progress import report_named_steps

if TYPE_CHECKING:
    from pairwright.datasets.readers.pairs import ReadOptions
    from pairwright.datasets.records import Pair
    from pairwright.datasets.rejects import Reject
    from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors
    from pairwright.indexes.hnsw.metadata import IndexInfo

app = typer.Typer(
    help="Build, extend, merge and check an index over captions and images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the index.")]
DeviceOption = Annotated[str, typer.Option("--device", help="Of a model: cpu, cuda, cuda:1; the first GPU if any.")]
ModelOption = Annotated[
    str, typer.Option("--model", help="Checkpoint of minilm or clip: a folder or a name on the hub.")
]
RejectedOption = Annotated[
    Path | None,
    typer.Option(
        "--rejected",
        help="Parquet for the rows that were skipped and the pairs without a vector, each with its reason.",
    ),
]
_PRECOMPUTED = "precomputed"


@app.command("build", short_help="Encode pairs and build their index.")
@with_progress
def build(
    input_: InputArgument,
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder of the index.")],
    encoder: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="lexical: hashed TF-IDF, needs no download. minilm: MiniLM sentence vectors. clip: CLIP or OpenCLIP, for"
            " captions and images. precomputed: INPUT is a clip-retrieval folder; --model then encodes queries. Or an"
            " installed encoder, see `pairwright plugins`.",
        ),
    ] = "lexical",
    model: ModelOption = "",
    modality: Annotated[
        Literal["text", "image", "both"], typer.Option(help="What to index: captions (t2t), images (t2i), or both.")
    ] = "text",
    m: Annotated[int, typer.Option("--m", min=2, max=128, help="Links a vector.")] = 32,
    ef_construction: Annotated[int, typer.Option("--ef-construction", min=8, help="Candidates while building.")] = 200,
    recall: Annotated[float, typer.Option(min=0.01, max=1.0, help="Recall@10 that efSearch is raised for.")] = 0.95,
    storage: Annotated[
        Literal["auto", "flat", "fp16", "int8", "ivfpq"],
        typer.Option(help="Form of a vector; auto: the one that loses least within --memory."),
    ] = "auto",
    memory: Annotated[float, typer.Option("--memory", min=0.001, help="GiB that auto may use.")] = 16.0,
    near: Annotated[
        float, typer.Option("--near", min=0.01, max=1, help="Cosine from which a vector is a copy of another.")
    ] = 0.999,
    shards: Annotated[int, typer.Option("--shards", min=1, help="Parts; memory is that of one a worker.")] = 1,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes that build parts side by side.")] = 1,
    like: Annotated[
        Path | None, typer.Option("--encoder-from", help="Take the encoder of this index, so that both can be merged.")
    ] = None,
    keep_pairs: Annotated[
        bool, typer.Option("--keep-pairs/--no-pairs", help="Keep the pairs in the index, for retrieve to write.")
    ] = True,
    device: DeviceOption = "",
    half: Annotated[bool, typer.Option("--half", help="A model's weights in 16 bits.")] = False,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Texts or images a model sees at once.")] = 128,
    image_root: ImageRootOption = "",
    rejected: RejectedOption = None,
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    explode: ExplodeOption = False,
    on_error: OnErrorOption = "stop",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Encode the captions or images of INPUT and build their FAISS HNSW index.

    \b
    Examples:
      pairwright index build captions.jsonl --out index
      pairwright index build {00000..00009}.tar --out index --encoder clip --modality both
      pairwright index build laion --out index --encoder precomputed --modality image --shards 8 --workers 4
    """
    from pairwright.indexes.building.build import build_index_from_pairs
    from pairwright.indexes.encoders.registry import EncoderOptions
    from pairwright.indexes.hnsw.options import IndexOptions

    options = text_options(input_, columns_, format_, explode=explode, on_error=on_error, image_root=image_root)
    precomputed = _precomputed(input_) if encoder == _PRECOMPUTED else None
    chosen: EncoderOptions | None = None
    if encoder != _PRECOMPUTED or model:
        name = "clip" if encoder == _PRECOMPUTED else encoder
        chosen = EncoderOptions(name, seed=seed, model=model, device=device, half=half, batch_size=batch_size)
    check_index_output(out)
    _check_rejected(rejected, input_)
    note(f"Indexing {input_} ...")
    rejects = _Rejects(rejected)
    with report_named_steps("pairs") as follow:
        info = build_index_from_pairs(
            lambda: _pairs(options, rejects),
            out,
            encoder=chosen,
            vectors=precomputed,
            modalities=("text", "image") if modality == "both" else (modality,),
            options=IndexOptions(
                m=m, ef_construction=ef_construction, recall=recall, storage=storage, memory_gib=memory, near=near
            ),
            shards=shards,
            workers=workers,
            encoder_from=like,
            keep_pairs=keep_pairs,
            rejected=rejects.add,
            watch=follow,
        )
    rejects.write()
    note(info.why)
    _emit(info, out, as_json=as_json, skipped=rejects.skipped)


@app.command("add", short_help="Add pairs without building it again.")
@with_progress
def add(
    folder: FolderArgument,
    input_: InputArgument,
    *,
    as_part: Annotated[
        bool, typer.Option("--as-part", help="As a part of its own: the old ones are not read, searches take longer.")
    ] = False,
    device: DeviceOption = "",
    model: ModelOption = "",
    image_root: ImageRootOption = "",
    rejected: RejectedOption = None,
    format_: FormatOption = "",
    columns_: ColumnsOption = "",
    explode: ExplodeOption = False,
    on_error: OnErrorOption = "stop",
    as_json: JsonOption = False,
) -> None:
    """Add the pairs of INPUT to the index in DIR, without building it again. Pairs that it holds are passed over.

    \b
    Example:
      pairwright index add index new.jsonl
    """
    from pairwright.indexes.building.add import add_pairs
    from pairwright.indexes.hnsw.search import open_index

    options = text_options(input_, columns_, format_, explode=explode, on_error=on_error, image_root=image_root)
    _check_rejected(rejected, input_)
    foreign = not open_index(folder).info.encoder or _is_embeddings(Path(input_))
    rejects = _Rejects(rejected)
    with report_named_steps("pairs") as follow:
        added = add_pairs(
            _pairs(options, rejects),
            folder,
            vectors=_precomputed(input_) if foreign else None,
            as_part=as_part,
            device=device,
            model=model,
            rejected=rejects.add,
            watch=follow,
        )
    rejects.write()
    _emit(added.info, folder, as_json=as_json, added=added.added, known=added.known, skipped=rejects.skipped)


@app.command("merge", short_help="Make one index of several.")
@with_progress
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Indexes with the same encoder.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder of the merged index.")],
    as_json: JsonOption = False,
) -> None:
    """Make one index of several that were built apart, by linking their parts; nothing is built again.

    \b
    Example:
      pairwright index build b.jsonl --out b --encoder-from a
      pairwright index merge a b --out both
    """
    from pairwright.indexes.building.merge import merge_indexes

    check_index_output(out)
    _emit(merge_indexes(folders, out), out, as_json=as_json)


@app.command("info", short_help="Tell what an index holds.")
def info(folder: FolderArgument, *, as_json: JsonOption = False) -> None:
    """Tell what an index holds and how it was built.

    \b
    Example:
      pairwright index info index
    """
    from dataclasses import asdict

    from pairwright.indexes.hnsw.metadata import read_metadata

    found = read_metadata(folder)
    summary = {name: value for name, value in found.summary().items() if name != "seconds"}
    options = {name: value for name, value in asdict(found.options).items() if name != "threads"}
    result = {
        **summary,
        "options": options,
        "versions": found.versions,
        "parts": [asdict(part) for part in found.parts],
    }
    shown = [
        [name, _format_value(value)]
        for name, value in summary.items()
        if name not in {"parts", "why"} and value not in ("", {})
    ]
    head = ("part", "kind", "storage", "vectors", "equal", "near", "efSearch", "nprobe", "recall")
    rows = [
        [p.name, p.kind, p.storage, p.vectors, p.duplicates, p.near_duplicates, p.ef_search, p.nprobe, p.recall]
        for p in found.parts
    ]
    built = ", ".join(f"{name} {value}" for name, value in {**options, **found.versions}.items())
    lines = [*columns(shown, indent=""), "", *columns([head, *rows], indent=""), "", found.why, f"Built with {built}."]
    emit(result, [line for line in lines if line is not None], as_json=as_json)


@app.command("check", short_help="Measure it against exact search; check its files.")
@with_progress
def check(
    folder: FolderArgument,
    *,
    k: Annotated[int, typer.Option("--k", min=1, help="Neighbours that recall is measured at.")] = 10,
    recall: Annotated[float, typer.Option(min=0.01, max=1.0, help="Below it, the command exits 3.")] = 0.95,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="Measure on these instead of the index's own sample; see retrieve.")
    ] = None,
    device: DeviceOption = "",
    model: ModelOption = "",
    as_json: JsonOption = False,
) -> None:
    """Measure an index against exact search, and check its files' sums.

    \b
    Examples:
      pairwright index check index --k 10
      pairwright index check index --queries classes.json --k 50
    """
    from pairwright.indexes.hnsw.check import check_index

    vectors = None
    if queries is not None:
        from pairwright.indexes.building.open import open_index_with_encoder
        from pairwright.indexes.retrieval.prepared_queries import encode_queries
        from pairwright.indexes.retrieval.queries import read_queries

        asked = read_queries(queries)
        step = max(1, len(asked) // 500)  # a sample: exact search reads all vectors for each
        vectors = encode_queries(
            open_index_with_encoder(folder, device=device, model=model).query_encoder, asked[::step]
        )
    found = check_index(folder, k, queries=vectors, wanted=recall)
    summary = found.summary()
    shown = [[name, value] for name, value in summary.items() if name not in {"pools", "damaged"}]
    lines = columns(shown, indent="")
    if len(found.pools) > 1:
        head = ("modality", "recall", "efSearch", "qps", "exact_qps", "queries", "from")
        rows = [[p.modality, p.recall, p.ef_search, p.qps, p.exact_qps, p.queries, p.queries_from] for p in found.pools]
        lines += ["", *columns([head, *rows], indent="")]
    lines += [f"damaged: {name}" for name in found.damaged]
    emit(summary, lines, as_json=as_json)
    if not found.checksum_ok:
        raise typer.Exit(FAILED)
    if found.recall < recall:
        exit_below_target()


def _pairs(options: "ReadOptions", rejects: "_Rejects") -> "Iterable[list[Pair]]":
    from pairwright.cli.options.input import read_batches

    for batch in read_batches(options):
        rejects.skip(batch.rejects)
        yield batch.pairs


def _check_rejected(rejected: Path | None, input_: str) -> None:
    if rejected is not None and rejected.suffix.lower() != ".parquet":
        raise UsageError(f"{rejected}: rejected rows are written to a file that ends in .parquet.")
    check_outputs(rejected, reads=(input_,))


class _Rejects:
    """Collects rejected rows and writes them where the user asked."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rows: list[Any] = []
        self.skipped: dict[str, int] = {}

    def skip(self, rows: "Sequence[Reject]") -> None:
        """Take rows that the reader set aside, and count them."""
        for row in rows:
            self.skipped[row.reason] = self.skipped.get(row.reason, 0) + 1
            self.add(row)

    def add(self, reject: Any) -> None:
        """Take a row."""
        if self._path is not None:
            self._rows.append(reject)

    def write(self) -> None:
        """Write the rows, if they were asked for."""
        if self._path is not None:
            from pairwright.datasets.record_tables import REJECTS

            REJECTS.write(self._rows, self._path)


def _is_embeddings(path: Path) -> bool:
    return path.is_dir() and any((path / kind).is_dir() for kind in ("img_emb", "text_emb"))


def _precomputed(input_: str) -> "PrecomputedVectors":
    from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors

    return PrecomputedVectors(Path(input_))


_COUNTS = ("duplicates", "near_duplicates", "rejected")


def _emit(info: "IndexInfo", out: Path, *, as_json: bool, **more: object) -> None:
    result = {**info.summary(), **more, "out": str(out)}
    counts = [f"{name} {_format_value(value)}" for name, value in more.items() if value not in ({}, "")]
    counts += [f"{name.replace('_', ' ')} {result[name]:,}" for name in _COUNTS if result[name]]
    lines = [
        headline(
            f"{info.vectors:,} vectors ({' and '.join(info.modalities)}), {result['bytes'] / 1e6:,.1f} MB, {info.seconds} s"
        ),
        *([", ".join(counts)] if counts else []),
        f"Written to {out}; all figures: pairwright index info {out}",
        *next_step(f"pairwright retrieve --index {out} --queries queries.txt --k 50 --out hits.parquet"),
    ]
    emit(result, lines, as_json=as_json)


def _format_value(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count:,}" for name, count in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return value
