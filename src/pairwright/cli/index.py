"""``pairwright index``: build a FAISS index over captions and images, extend it, merge it, describe it, check it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import FAILED, exit_below_target
from pairwright.cli.options.declarations import App, advanced_option, input_option, limit_option, output_option
from pairwright.cli.options.input import (
    InputArgument,
    InputOptions,
    JsonOption,
    SeedOption,
    read_batches,
    with_input_options,
)
from pairwright.cli.output.console import columns, emit, list_counts, note
from pairwright.cli.output.files import check_extension, check_index_output, check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, next_step
from pairwright.datasets.count_phrases import count_phrase, format_size
from pairwright.datasets.progress import report_named_steps
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.indexes.hnsw.options import IndexOptions

if TYPE_CHECKING:
    from pairwright.datasets.readers.pairs import ReadOptions
    from pairwright.datasets.records import Pair
    from pairwright.datasets.rejects import Reject
    from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors
    from pairwright.indexes.hnsw.metadata import IndexInfo

app = App("Build, extend, merge and check an index over captions and images.")

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the index.")]
DeviceOption = Annotated[
    str, advanced_option("--device", help="Device of the model: cpu, cuda, cuda:1; else detected.")
]
ModelOption = Annotated[str, typer.Option("--model", help="Checkpoint of minilm or clip: a folder or a hub name.")]
RejectedOption = Annotated[
    Path | None, output_option("--rejected", help="Parquet file for rejected rows, each with its reason.")
]
_PRECOMPUTED = "precomputed"


@app.command("build")
@with_progress
@with_input_options("explode", "image_root", "clean_captions")
def build(
    input_: InputArgument,
    *,
    out: Annotated[Path, output_option("--out", help="Folder of the index.")],
    encoder: Annotated[
        str, typer.Option(metavar="NAME", help="Encoder, see below and `pairwright plugins`.")
    ] = "lexical",
    model: ModelOption = "",
    modality: Annotated[
        Literal["text", "image", "both"], typer.Option(help="Index captions (t2t), images (t2i), or both.")
    ] = "text",
    m: Annotated[int, typer.Option("--m", min=2, max=128, help="HNSW links per vector.")] = IndexOptions.m,
    ef_construction: Annotated[int, typer.Option(min=8, help="Candidates per vector while building.")] = (
        IndexOptions.ef_construction
    ),
    recall: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Recall@10 to which efSearch is tuned.")
    ] = IndexOptions.recall,
    storage: Annotated[
        Literal["auto", "flat", "fp16", "int8", "ivfpq"],
        typer.Option(help="Storage; auto: by --memory."),
    ] = IndexOptions.storage,
    near_duplicates: Annotated[
        float, typer.Option(min=0.01, max=1, help="Cosine from which a vector is a copy of another.")
    ] = IndexOptions.near,
    encoder_from: Annotated[
        Path | None, typer.Option(help="Index whose encoder to use, so that both can be merged.")
    ] = None,
    keep_pairs: Annotated[
        bool, output_option("--keep-pairs/--no-pairs", help="Store the pairs in the index, for retrieve.")
    ] = True,
    memory: Annotated[float, limit_option(min=0.001, help="GiB for --storage auto.")] = IndexOptions.memory_gib,
    shards: Annotated[int, limit_option(min=1, help="Parts; memory is that of one part per worker.")] = 1,
    workers: Annotated[int, limit_option(min=1, help="Processes that build parts.")] = 1,
    device: DeviceOption = "",
    half: Annotated[bool, advanced_option("--half", help="Use 16-bit weights of the model.")] = False,
    batch_size: Annotated[int, advanced_option(min=1, help="Texts or images per batch of the model.")] = 128,
    rejected: RejectedOption = None,
    seed: SeedOption = 0,
    reading: InputOptions,
    as_json: JsonOption = False,
) -> None:
    """Encode pairs and build their FAISS HNSW index.

    Encoders: lexical (hashed TF-IDF, no download), minilm (MiniLM sentence vectors), clip (CLIP, OpenCLIP, SigLIP, captions
    and images), precomputed (INPUT is a clip-retrieval folder; --model encodes queries), or an installed one.

    \b
    Examples:
      pairwright index build captions.jsonl --out index
      pairwright index build {00000..00009}.tar --out index --encoder clip --modality both
      pairwright index build laion --out index --encoder precomputed --modality image --shards 8 --workers 4
    """
    from pairwright.indexes.building.build import build_index_from_pairs
    from pairwright.indexes.encoders.registry import EncoderOptions

    options = reading.read_options(input_)
    precomputed = _precomputed(input_) if encoder == _PRECOMPUTED else None
    chosen: EncoderOptions | None = None
    if encoder != _PRECOMPUTED or model:
        name = "clip" if encoder == _PRECOMPUTED else encoder
        chosen = EncoderOptions(name, seed=seed, model=model, device=device, half=half, batch_size=batch_size)
    check_index_output(out)
    rejects = _RejectWriter(rejected, input_)
    note(f"Indexing {input_} ...")
    with report_named_steps("pairs") as follow:
        info = build_index_from_pairs(
            lambda: rejects.read_pairs(options),
            out,
            encoder=chosen,
            vectors=precomputed,
            modalities=("text", "image") if modality == "both" else (modality,),
            options=IndexOptions(
                m=m,
                ef_construction=ef_construction,
                recall=recall,
                storage=storage,
                memory_gib=memory,
                near=near_duplicates,
            ),
            shards=shards,
            workers=workers,
            encoder_from=encoder_from,
            keep_pairs=keep_pairs,
            rejected=rejects.add,
            watch=follow,
        )
    rejects.write()
    note(info.why)
    _emit(info, out, as_json=as_json, skipped=rejects.skipped)


@app.command("add")
@with_progress
@with_input_options("explode", "image_root", "clean_captions")
def add(
    folder: FolderArgument,
    input_: InputArgument,
    *,
    new_part: Annotated[
        bool, typer.Option("--new-part", help="Write a new part: faster to add, slower to search.")
    ] = False,
    device: DeviceOption = "",
    model: ModelOption = "",
    rejected: RejectedOption = None,
    reading: InputOptions,
    as_json: JsonOption = False,
) -> None:
    """Add pairs to an index without rebuilding it; pairs in it are skipped.

    \b
    Example:
      pairwright index add index new.jsonl
    """
    from pairwright.indexes.building.add import add_pairs
    from pairwright.indexes.hnsw.search import open_index

    options = reading.read_options(input_)
    rejects = _RejectWriter(rejected, input_)
    embedded = any((Path(input_) / kind).is_dir() for kind in ("img_emb", "text_emb"))
    precomputed = embedded or not open_index(folder).info.encoder
    with report_named_steps("pairs") as follow:
        added = add_pairs(
            rejects.read_pairs(options),
            folder,
            vectors=_precomputed(input_) if precomputed else None,
            as_part=new_part,
            device=device,
            model=model,
            rejected=rejects.add,
            watch=follow,
        )
    rejects.write()
    _emit(added.info, folder, as_json=as_json, added=added.added, known=added.known, skipped=rejects.skipped)


@app.command("merge")
@with_progress
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Indexes with the same encoder.")],
    *,
    out: Annotated[Path, output_option("--out", help="Folder of the merged index.")],
    as_json: JsonOption = False,
) -> None:
    """Merge indexes by linking their parts; nothing is rebuilt.

    \b
    Example:
      pairwright index build b.jsonl --out b --encoder-from a
      pairwright index merge a b --out both
    """
    from pairwright.indexes.building.merge import merge_indexes

    check_index_output(out)
    _emit(merge_indexes(folders, out), out, as_json=as_json)


@app.command("info")
def info(folder: FolderArgument, *, as_json: JsonOption = False) -> None:
    """Print the contents of an index and its build options.

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


@app.command("check")
@with_progress
def check(
    folder: FolderArgument,
    *,
    k: Annotated[int, typer.Option("--k", min=1, help="Neighbours at which recall is measured.")] = 10,
    recall: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Exit with 3 below this recall.")
    ] = IndexOptions.recall,
    queries: Annotated[
        Path | None, input_option(help="Queries as for retrieve; else a sample stored in the index.")
    ] = None,
    device: DeviceOption = "",
    model: ModelOption = "",
    as_json: JsonOption = False,
) -> None:
    """Compare an index with exact search, and verify its checksums.

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

        texts = read_queries(queries)
        step = max(1, len(texts) // 500)  # a sample: exact search reads all vectors for each
        opened = open_index_with_encoder(folder, device=device, model=model)
        vectors = encode_queries(opened.query_encoder, texts[::step])
    found = check_index(folder, k, queries=vectors, wanted=recall)
    summary = found.summary()
    lines = columns([[name, value] for name, value in summary.items() if name not in {"pools", "damaged"}], indent="")
    if len(found.pools) > 1:
        head = ("modality", "recall", "efSearch", "qps", "exact_qps", "queries", "from")
        rows = [[p.modality, p.recall, p.ef_search, p.qps, p.exact_qps, p.queries, p.queries_from] for p in found.pools]
        lines += ["", *columns([head, *rows], indent="")]
    emit(summary, [*lines, *(f"damaged: {name}" for name in found.damaged)], as_json=as_json)
    if not found.checksum_ok:
        raise typer.Exit(FAILED)
    if found.recall < recall:
        exit_below_target()


@dataclass
class _RejectWriter:
    """Collects the rejected rows of an input and writes them to the file of ``--rejected``."""

    path: Path | None
    input: str
    rows: list[Any] = field(default_factory=list)
    skipped: SkipCounts = field(default_factory=SkipCounts)

    def __post_init__(self) -> None:
        check_extension(self.path, ".parquet")
        check_outputs(self.path, reads=(self.input,))

    def read_pairs(self, options: "ReadOptions") -> "Iterable[list[Pair]]":
        """Yield the pairs of the input; its rejected rows are counted and collected."""
        for batch in read_batches(options):
            self.skipped.add(batch.rejects)
            for row in batch.rejects:
                self.add(row)
            yield batch.pairs

    def add(self, reject: "Reject") -> None:
        """Collect a row."""
        if self.path is not None:
            self.rows.append(reject)

    def write(self) -> None:
        """Write the rows where a file is named."""
        if self.path is not None:
            from pairwright.datasets.record_tables import REJECTS

            REJECTS.write(self.rows, self.path)


def _precomputed(input_: str) -> "PrecomputedVectors":
    from pairwright.indexes.building.precomputed_vectors import PrecomputedVectors

    return PrecomputedVectors(Path(input_))


def _emit(info: "IndexInfo", out: Path, *, as_json: bool, skipped: SkipCounts | None = None, **more: int) -> None:
    result = {**info.summary(), **more, "out": str(out)}
    result |= {} if skipped is None else {"skipped": skipped.as_json()["broken"]}
    copies = [
        f"{name.replace('_', ' ')} {result[name]:,}" for name in ("duplicates", "near_duplicates") if result[name]
    ]
    counts = {
        "Skipped": skipped.describe() if skipped else "",
        "Without a vector": list_counts(info.rejected),
        "Stored once": ", ".join(copies),
    }
    vectors = [] if info.encoder_name else ["--query-vectors", "queries.npy"]
    retrieve = ["retrieve", "--index", out, "--queries", "queries.txt", *vectors, "--k", 50, "--out", "hits.parquet"]
    size = f"{format_size(result['bytes'])}, {info.seconds} s"
    lines = [
        headline(f"{count_phrase(info.vectors, 'vector')} ({' and '.join(info.modalities)}), {size}"),
        *([list_counts(more)] if more else []),
        *(f"{name}: {value}" for name, value in counts.items() if value),
        f"Written to {out}; all figures: pairwright index info {out}",
        *next_step(*retrieve),
    ]
    emit(result, lines, as_json=as_json)


def _format_value(value: object) -> object:
    if isinstance(value, dict):
        return list_counts(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return value
