"""``pairwright retrieve``: search an index with queries."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.generate.summary import count_phrase
from pairwright.cli.options.exclusion import load_exclusion
from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit
from pairwright.cli.output.overwrite_checks import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import DetailsOption, headline, warning
from pairwright.datasets.errors import MissingResourceError, UsageError
from pairwright.datasets.progress import open_step

if TYPE_CHECKING:
    import polars as pl

    from pairwright.indexes.building.open import IndexWithEncoder
    from pairwright.indexes.retrieval.batched_search import Mode
    from pairwright.indexes.retrieval.exclusion import ExclusionFilter
    from pairwright.indexes.retrieval.results import Retrieval
    from pairwright.training.attention.decoder import DocumentDecoder
    from pairwright.training.attention.ranking import Ranking

_SHOWN = 20  # uncovered concepts that are named on a terminal


@with_progress
def retrieve(
    *,
    index: Annotated[Path, typer.Option("--index", help="Folder that `pairwright index build` made.")],
    queries: Annotated[
        Path,
        typer.Option(
            "--queries", help=".txt of one query a line, .json of classes and templates, or pairs: their captions."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Every hit: .parquet, .jsonl or .csv.")],
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", help="The distinct pairs, .parquet, for fetch, generate and build to read."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Page of what is covered and what is not, .html.")
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, help="Pairs a query, or a concept as --per says, in each mode.")] = 50,
    per: Annotated[
        Literal["query", "concept"],
        typer.Option(help="What --k counts for: each query, or the best of all queries of a concept."),
    ] = "query",
    cap: Annotated[
        int | None, typer.Option("--cap", min=1, help="Distinct pairs a concept at most, all modes.")
    ] = None,
    mode: Annotated[
        Literal["t2t", "t2i", "both"], typer.Option(help="Query text against captions, against images, or both.")
    ] = "t2t",
    min_score: Annotated[
        str, typer.Option("--min-score", help="Cosine below which a hit is left out: 0.3, or t2t=0.5,t2i=0.2.")
    ] = "-1",
    floor: Annotated[
        str,
        typer.Option(
            "--floor", help="Cosine with its bare name from which a pair is near to a concept, written likewise."
        ),
    ] = "",
    recall: Annotated[
        float, typer.Option("--recall", min=0.01, max=1, help="Recall@k that efSearch is tuned to on your queries.")
    ] = 0.95,
    ef_search: Annotated[int, typer.Option("--ef-search", min=0, help="Fixed effort; 0: tuned.")] = 0,
    exclude: Annotated[
        list[str],
        typer.Option(
            "--exclude", help="Evaluation data that must not leak: pairs, a folder of images, a .txt. Repeat."
        ),
    ] = [],  # noqa: B006 - Typer copies it
    exclude_by: Annotated[
        str, typer.Option("--exclude-by", help="What a pair is known by: key,url,caption,image and, if asked for, id.")
    ] = "key,url,caption,image",
    query_vectors: Annotated[
        Path | None,
        typer.Option("--query-vectors", help=".npy with a row a query, from what made the index's vectors."),
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Where the checkpoint is now, if it has moved.")] = "",
    device: Annotated[str, typer.Option("--device", help="Of a model: cpu, cuda, ...")] = "",
    rerank: Annotated[
        Literal["attention", "plain-attention", "likelihood", "yes-no"] | None,
        typer.Option(
            "--rerank", help="Put each query's first hits in order by what a decoder makes of their captions."
        ),
    ] = None,
    rerank_model: Annotated[
        str, typer.Option("--rerank-model", help="With --rerank: a decoder of transformers, folder or name.")
    ] = "",
    rerank_top: Annotated[
        int, typer.Option("--rerank-top", min=1, help="With --rerank: hits a query that are read together.")
    ] = 20,
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find the K pairs nearest to each query, and say which concepts the pool does not cover.

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

    _check_output_endings(out, pairs, report)
    opened = open_index_with_encoder(index, device=device, model=model)
    if pairs and not opened.index.info.pairs_files:
        raise UsageError(f"{index}: keeps no pairs, so --pairs has none to write. Build it without --no-pairs.")
    reader = _open_reranker(rerank, rerank_model, opened, device)
    asked = read_queries(queries)
    check_outputs(out, pairs, report, reads=(str(queries), *exclude))
    vectors = read_query_vectors(query_vectors, len(asked), opened.index.info.dim) if query_vectors else None
    found = search(
        opened.index,
        vectors if vectors is not None else opened.encoder,
        asked,
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
        _load_exclusion(opened, exclude, exclude_by),
    )
    again = _rerank(found, opened, reader, rerank, rerank_top) if reader is not None and rerank else None
    with open_step("writing hits and pages", unit=""):
        written = _write(found, opened, out, pairs, report, again)
    result = {**found.summary(), "mode": mode, **written}
    if reader is not None and again is not None:
        read = again["rerank_score"].count()
        result["reranked"] = {"by": rerank, "model": rerank_model, "hits": read, "prompts_read": reader.passes}
    emit(result, _lines(result, found, opened.index.info.kind, details=details), as_json=as_json)
    if not found.hit_codes.height:
        exit_below_target(
            "No query found a pair: lower --min-score, exclude less, or build the index from a larger pool."
        )


def _load_exclusion(opened: "IndexWithEncoder", exclude: list[str], exclude_by: str) -> "ExclusionFilter | None":
    exclusion = load_exclusion(exclude, [by.strip() for by in exclude_by.split(",")])  # type: ignore[misc]  # checked there
    if exclusion is None:
        return None
    from pairwright.indexes.retrieval.exclusion import ExclusionFilter, PairLookup

    if not opened.index.info.pairs_files:
        raise UsageError(
            f"{opened.index.directory}: keeps no pairs, so none can be compared with --exclude. Build it without --no-pairs."
        )
    lookup: PairLookup = opened.pairs  # type: ignore[assignment]  # it keeps pairs, as just seen
    return ExclusionFilter(exclusion, lookup)


def _check_output_endings(out: Path, pairs: Path | None, report: Path | None) -> None:
    for path, endings in ((out, (".parquet", ".jsonl", ".csv")), (pairs, (".parquet",)), (report, (".html",))):
        if path is not None and path.suffix not in endings:
            raise UsageError(f"{path}: write to a file that ends in {', '.join(endings)}.")
    if pairs is not None and pairs.resolve() == out.resolve():
        raise UsageError(f"{out}: named by --out and by --pairs; the pairs would replace the hits. Name another file.")


def _open_reranker(rerank: str | None, model: str, opened: "IndexWithEncoder", device: str) -> "DocumentDecoder | None":
    """Open the decoder that reranks, before anything is searched; None without --rerank."""
    if not rerank:
        if model:
            raise UsageError(
                "--rerank-model does nothing without --rerank: attention, plain-attention, likelihood, yes-no."
            )
        return None
    if not model:
        raise UsageError(
            "--rerank needs --rerank-model: the folder or name of a decoder, such as a Llama, Mistral or Qwen."
        )
    if not opened.index.info.pairs_files:
        raise UsageError(
            f"{opened.index.directory}: keeps no pairs, so there are no captions to read. Build it without --no-pairs."
        )
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingResourceError(f"--rerank needs {', '.join(missing)}: pip install 'pairwright[train]'")
    from pairwright.indexes.encoders.checkpoints import quiet_transformers
    from pairwright.indexes.encoders.pretrained_models import choose_device
    from pairwright.training.attention.ranking import open_decoder

    with quiet_transformers():
        return open_decoder(model, str(choose_device(device)), fix="Read fewer captions together: lower --rerank-top.")


def _rerank(
    found: "Retrieval", opened: "IndexWithEncoder", reader: "DocumentDecoder", rerank: "Ranking", top: int
) -> "pl.DataFrame":
    from pairwright.indexes.building.stored_pairs import map_captions_by_index
    from pairwright.indexes.retrieval.reranking import rerank_hits
    from pairwright.training.attention.ranking import relevance_scores

    hits = found.hits
    stored = opened.pairs(hits["key"].unique().to_list())
    assert stored is not None  # it keeps pairs, as _reader saw
    captions = map_captions_by_index(stored)
    return rerank_hits(hits, captions, lambda query, texts: relevance_scores(reader, rerank, query, texts), top)


def _write(  # noqa: PLR0917 - what there is to write, and where to
    found: "Retrieval",
    opened: "IndexWithEncoder",
    out: Path,
    pairs: Path | None,
    report: Path | None,
    again: "pl.DataFrame | None",
) -> dict[str, str]:
    """Write what was asked for, and return where it is."""
    from pairwright.cli.output.tables import write_table
    from pairwright.datasets.record_tables import PAIRS
    from pairwright.indexes.retrieval.coverage_page import write_coverage_page
    from pairwright.indexes.retrieval.hit_ranking import add_hit_metadata

    if again is not None:
        write_table(again, out)
    elif out.suffix == ".parquet":
        found.write_hits(out)
    else:
        write_table(found.hits, out)
    written = {"out": str(out)}
    if pairs is not None:
        stored = opened.pairs(found.pairs["key"].to_list())
        assert stored is not None
        PAIRS.write_frame(add_hit_metadata(stored, found.pairs), pairs)
        written["pairs"] = str(pairs)
    if report is not None:
        write_coverage_page(report, found, opened.pairs, f"What {opened.index.directory.name} covers")
        written["report"] = str(report)
    return written


def _parse_by_mode(name: str, written: str) -> "float | Mapping[Mode, float]":
    """Return ``0.3`` as a number, ``t2t=0.5,t2i=0.2`` as a mapping."""
    try:
        if "=" not in written:
            return float(written)
        parts = dict(part.split("=", 1) for part in written.split(","))
        if set(parts) <= {"t2t", "t2i"}:
            return {mode: float(score) for mode, score in parts.items()}  # type: ignore[misc]  # modes, as just seen
    except ValueError:
        pass
    raise UsageError(f"--{name} {written!r}: write a number, or one for each mode such as t2t=0.5,t2i=0.2.")


def _lines(result: dict[str, Any], found: "Retrieval", kind: str, *, details: bool) -> list[str]:
    lines: list[str] = [
        headline(
            f"{count_phrase(result['hits'], 'hit')}, {count_phrase(result['unique_pairs'], 'pair')}, {result['seconds']} s"
        )
    ]
    lines += _search_facts(result, kind) if details else []
    if found.uncovered:
        more = f" and {len(found.uncovered) - _SHOWN:,} more" if len(found.uncovered) > _SHOWN else ""
        named = ", ".join(found.uncovered[:_SHOWN]) + more
        lines.append(warning(f"Not covered by the pool ({len(found.uncovered):,}), worst first: {named}"))
    places = [str(result[name]) for name in ("out", "pairs", "report") if name in result]
    return [*lines, "", f"Written to {', '.join(places)}"]


def _search_facts(result: dict[str, Any], kind: str) -> list[str]:
    """Return what was asked of the index, what was excluded, and how it was searched."""
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
    if again := result.get("reranked"):
        shown.append(["reranked", f"{again['hits']:,} hits by {again['by']}, {again['prompts_read']:,} prompts read"])
    return columns(shown, indent="")
