"""``pairwright retrieve``: search an index with queries."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.options.declarations import advanced_option, input_option, limit_option, output_option
from pairwright.cli.options.input import (
    DetailsOption,
    ExcludeImagesOption,
    ExcludeOption,
    JsonOption,
    load_exclusion,
    split_list,
)
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.files import check_extension, check_outputs, write_table
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, warning
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.datasets.progress import open_step

if TYPE_CHECKING:
    import polars as pl

    from pairwright.indexes.building.open import IndexWithEncoder
    from pairwright.indexes.retrieval.batched_search import Mode
    from pairwright.indexes.retrieval.exclusion import ExclusionFilter, PairLookup
    from pairwright.indexes.retrieval.results import Retrieval
    from pairwright.training.attention.decoder import DocumentDecoder

_SHOWN = 20  # uncovered concepts on a terminal


@with_progress
def retrieve(
    *,
    index: Annotated[Path, input_option(help="Folder of the index.")],
    queries: Annotated[Path, input_option(help=".txt of a query a line, .json of classes and templates, or pairs.")],
    query_vectors: Annotated[
        Path | None, input_option(help=".npy with a row per query, for an index without an encoder.")
    ] = None,
    out: Annotated[Path, output_option(help="File of all hits: .parquet, .jsonl or .csv.")],
    pairs: Annotated[Path | None, output_option(help="File of the distinct pairs, .parquet, for other verbs.")] = None,
    report: Annotated[Path | None, output_option(help="Report of covered and uncovered concepts, .html.")] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Pairs per query or concept (see --per) in each mode.")] = 50,
    per: Annotated[Literal["query", "concept"], typer.Option(help="Unit of --k.")] = "query",
    mode: Annotated[
        Literal["t2t", "t2i", "both"], typer.Option(help="Search captions (t2t), images (t2i), or both.")
    ] = "t2t",
    cap: Annotated[int | None, limit_option(min=1, help="Distinct pairs per concept in all modes, at most.")] = None,
    min_score: Annotated[str, typer.Option(help="Cosine of a hit, at least: 0.3, or t2t=0.5,t2i=0.2.")] = "-1",
    floor: Annotated[str, typer.Option(help="Cosine with a concept's name from which a pair is near to it.")] = "",
    recall: Annotated[float, typer.Option(min=0.01, max=1, help="Recall@k to which efSearch is tuned.")] = 0.95,
    ef_search: Annotated[int, advanced_option(min=0, help="efSearch (0 = tuned).")] = 0,
    exclude: ExcludeOption = [],  # noqa: B006 - Typer copies it
    exclude_images: ExcludeImagesOption = [],  # noqa: B006 - Typer copies it
    exclude_by: Annotated[str, input_option(help="Fields to exclude by; also id.")] = "key,url,caption,image",
    model: Annotated[str, advanced_option(help="Checkpoint of the encoder, if it was moved.")] = "",
    device: Annotated[str, advanced_option(help="Device of a model: cpu, cuda; else detected.")] = "",
    rerank: Annotated[
        Literal["attention", "plain-attention"] | None,
        typer.Option(help="Rerank hits by a decoder."),
    ] = None,
    rerank_model: Annotated[str, typer.Option(help="Decoder of --rerank: folder or hub name.")] = "",
    rerank_top: Annotated[int, typer.Option(min=1, help="Hits per query to rerank.")] = 20,
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the nearest pairs of queries, and concepts without any.

    \b
    Examples:
      pairwright retrieve --index index --queries classes.txt --k 50 --out hits.parquet
      pairwright retrieve --index index --queries classes.json --k 200 --per concept --exclude val.json \\
        --out hits.parquet --pairs pairs.parquet --report coverage.html
      pairwright retrieve --index index --queries q.txt --k 20 --rerank attention --rerank-model llama --out hits.jsonl
    """
    from pairwright.indexes.building.open import open_index_with_encoder
    from pairwright.indexes.retrieval.queries import read_queries, read_query_vectors
    from pairwright.indexes.retrieval.results import RetrieveOptions
    from pairwright.indexes.retrieval.retrieve import retrieve as search

    check_extension(out, ".parquet", ".jsonl", ".csv")
    check_extension(pairs, ".parquet")
    check_extension(report, ".html")
    if pairs is not None and pairs.resolve() == out.resolve():
        raise UsageError(f"{out}: given to --out and to --pairs. Use two files.")
    opened = open_index_with_encoder(index, device=device, model=model)
    if pairs:
        _require_pairs(opened, "--pairs")
    reranker = _open_reranker(rerank, rerank_model, opened, device)
    texts = read_queries(queries)
    check_outputs(out, pairs, report, reads=(str(queries), *exclude, *exclude_images))
    vectors = read_query_vectors(query_vectors, len(texts), opened.index.info.dim) if query_vectors else None
    found = search(
        opened.index,
        vectors if vectors is not None else opened.encoder,
        texts,
        RetrieveOptions(
            k=k,
            mode=mode,
            per=per,
            cap=cap,
            min_score=_parse_by_mode("min-score", min_score),
            floor=_parse_by_mode("floor", floor) if floor else None,
            recall=recall,
            ef_search=ef_search,
        ),
        _load_exclusion(opened, exclude, exclude_images, exclude_by),
    )
    reranked = _rerank(found, opened, reranker, rerank, rerank_top) if reranker is not None and rerank else None
    with open_step("writing hits and pages", unit=""):
        written = _write(found, opened, out, pairs, report, reranked)
    result = {**found.summary(), "mode": mode, **written}
    if reranker is not None and reranked is not None:
        hits = reranked["rerank_score"].count()
        result["reranked"] = {"by": rerank, "model": rerank_model, "hits": hits, "prompts_read": reranker.passes}
    emit(result, _lines(result, found, opened.index.info.kind, details=details), as_json=as_json)
    if not found.hit_codes.height:
        exit_below_target("No query found a pair: lower --min-score, exclude less, or index more pairs.")


def _require_pairs(opened: "IndexWithEncoder", option: str) -> None:
    if not opened.index.info.pairs_files:
        raise UsageError(
            f"{opened.index.directory}: stores no pairs, which {option} requires. Build it without --no-pairs."
        )


def _load_exclusion(
    opened: "IndexWithEncoder", exclude: list[str], images: list[str], exclude_by: str
) -> "ExclusionFilter | None":
    exclusion = load_exclusion(exclude, split_list(exclude_by), images)  # type: ignore[arg-type]  # checked there
    if exclusion is None:
        return None
    from pairwright.indexes.retrieval.exclusion import ExclusionFilter

    _require_pairs(opened, "--exclude" if exclude else "--exclude-images")
    lookup: PairLookup = opened.pairs  # type: ignore[assignment]  # it has pairs
    return ExclusionFilter(exclusion, lookup)


def _open_reranker(rerank: str | None, model: str, opened: "IndexWithEncoder", device: str) -> "DocumentDecoder | None":
    """Return the decoder that reranks, opened before the search; None without ``--rerank``."""
    if not rerank:
        if model:
            raise UsageError("--rerank-model requires --rerank: attention, plain-attention.")
        return None
    if not model:
        raise UsageError("--rerank requires --rerank-model: folder or name of a decoder, such as Llama or Qwen.")
    _require_pairs(opened, "--rerank")
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResourceError(f"--rerank requires {', '.join(missing)}: pip install 'pairwright[train]'")
    from pairwright.indexes.encoders.checkpoints import quiet_transformers
    from pairwright.indexes.encoders.pretrained_models import choose_device
    from pairwright.training.attention.decoder import open_decoder

    with quiet_transformers():
        return open_decoder(model, str(choose_device(device)), fix="Lower --rerank-top.")


def _rerank(
    found: "Retrieval", opened: "IndexWithEncoder", reranker: "DocumentDecoder", rerank: str, top: int
) -> "pl.DataFrame":
    from pairwright.indexes.building.stored_pairs import map_captions_by_index
    from pairwright.indexes.retrieval.reranking import rerank_hits
    from pairwright.training.attention.calibration import Calibration

    hits = found.hits
    stored = opened.pairs(hits["key"].unique().to_list())
    assert stored is not None  # checked when the reranker was opened
    captions, calibration = map_captions_by_index(stored), Calibration() if rerank == "attention" else None
    return rerank_hits(hits, captions, lambda query, texts: reranker.scores(query, texts, calibration), top)


def _write(  # noqa: PLR0917 - the outputs and their files
    found: "Retrieval",
    opened: "IndexWithEncoder",
    out: Path,
    pairs: Path | None,
    report: Path | None,
    reranked: "pl.DataFrame | None",
) -> dict[str, str]:
    """Write the outputs and return their paths."""
    from pairwright.datasets.record_tables import PAIRS
    from pairwright.indexes.retrieval.coverage_page import write_coverage_page
    from pairwright.indexes.retrieval.hit_ranking import add_hit_metadata

    if reranked is None and out.suffix.lower() == ".parquet":
        found.write_hits(out)
    else:
        write_table(found.hits if reranked is None else reranked, out)
    written = {"out": str(out)}
    if pairs is not None:
        stored = opened.pairs(found.pairs["key"].to_list())
        assert stored is not None  # checked when the index was opened
        PAIRS.write_frame(add_hit_metadata(stored, found.pairs), pairs)
        written["pairs"] = str(pairs)
    if report is not None:
        write_coverage_page(report, found, opened.pairs, f"What {opened.index.directory.name} covers")
        written["report"] = str(report)
    return written


def _parse_by_mode(name: str, text: str) -> "float | Mapping[Mode, float]":
    """Return ``0.3`` as a number, ``t2t=0.5,t2i=0.2`` as a mapping."""
    try:
        if "=" not in text:
            return float(text)
        parts = dict(part.split("=", 1) for part in text.split(","))
        if set(parts) <= {"t2t", "t2i"}:
            return {mode: float(score) for mode, score in parts.items()}  # type: ignore[misc]  # modes are checked
    except ValueError:
        pass
    raise UsageError(f"--{name} {text!r}: write a number, or one for each mode such as t2t=0.5,t2i=0.2.")


def _lines(result: dict[str, Any], found: "Retrieval", kind: str, *, details: bool) -> list[str]:
    counts = f"{count_phrase(result['hits'], 'hit')}, {count_phrase(result['unique_pairs'], 'pair')}"
    lines: list[str] = [headline(f"{counts}, {result['seconds']} s")]
    lines += _search_facts(result, kind) if details else []
    lines += _coverage_verdict(found)
    paths = [str(result[name]) for name in ("out", "pairs", "report") if name in result]
    return [*lines, "", f"Written to {', '.join(paths)}"]


def _coverage_verdict(found: "Retrieval") -> list[str]:
    """Return the concepts that the pool does not cover, each with how many of its pairs are near."""
    best = found.coverage.sort("near", descending=True).unique("concept", keep="first")  # of the modes
    counts = {name: (near, pairs) for name, near, pairs in best.select("concept", "near", "pairs").iter_rows()}
    uncovered = found.uncovered
    if not uncovered:
        return []
    rows = [[name, f"{counts[name][0] or 0:,} of {counts[name][1] or 0:,}"] for name in uncovered[:_SHOWN]]
    rest = [f"  and {len(uncovered) - _SHOWN:,} more"] if len(uncovered) > _SHOWN else []
    why = "few or none of the pairs found for them come near their names"
    return [
        warning(f"Not covered by the pool: {len(uncovered):,} of {count_phrase(len(counts), 'concept')}, as {why}"),
        *columns([["concept", "pairs near"], *rows]),
        *rest,
    ]


def _search_facts(result: dict[str, Any], kind: str) -> list[str]:
    """Return the settings of the search, the excluded pairs and the effort as a table."""
    names = ("k", "k_counts", "cap", "beyond_k_or_cap", "uncompared")
    shown = [[name.replace("_", " "), result[name]] for name in names if result[name] not in (None, 0)]
    excluded = ", ".join(f"{count:,} by {by}" for by, count in result["excluded"].items())
    shown += [["excluded", excluded]] if excluded else []
    for mode, search in result["modes"].items():
        step = "nprobe" if kind == "ivfpq" else "efSearch"
        effort = f"{step} {search['ef_search']}" if search["ef_search"] else "exact"
        if search["recall"] is not None:
            effort += f", recall {search['recall']:.3f} on {search['sample']} of your queries"
        shown.append([f"searched {mode}", effort])
        if search["below_min_score"]:
            shown.append([f"below score {mode}", search["below_min_score"]])
    if reranked := result.get("reranked"):
        counts = f"{reranked['hits']:,} hits by {reranked['by']}, {reranked['prompts_read']:,} prompts read"
        shown.append(["reranked", counts])
    return columns(shown, indent="")
