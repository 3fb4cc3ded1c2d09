"""``pairwright demo``: a complete build from a generated corpus of known truth."""

from pathlib import Path
from typing import Annotated

import typer

from pairwright.cli.build import NoPrefectOption, start_message
from pairwright.cli.errors.interrupts import resumable_on_interrupt
from pairwright.cli.options.declarations import advanced_option, output_option
from pairwright.cli.options.input import DetailsOption, JsonOption, SeedOption
from pairwright.cli.output.build_summary import build_lines, build_result
from pairwright.cli.output.console import emit
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.stage_bars import StageBars
from pairwright.cli.output.summary import table
from pairwright.datasets.count_phrases import count_phrase


@with_progress
def demo(
    *,
    out: Annotated[Path, output_option(help="Folder of the corpus and the build.")],
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of the corpus.")] = 3_000,
    seed: SeedOption = 0,
    workers: Annotated[int, advanced_option(min=0, help="Processes (0 = one per core).")] = 0,
    no_prefect: NoPrefectOption = False,
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Build a dataset from generated images, without a key or a download.

    \b
    Example:
      pairwright demo --out demo
    """
    from pairwright.flows.commands.demo import demo_config, write_demo_corpus
    from pairwright.flows.runners.worker_start import start_early
    from pairwright.flows.state.locks import claim_folder

    resumable_on_interrupt()
    corpus = out.resolve() / "corpus"
    progress = StageBars()
    progress.note(f"Drawing {count_phrase(pairs, 'scene')} in {out / 'corpus'} ...")
    claim_folder(out)
    config = demo_config(corpus, pairs, seed).model_copy(update={"workers": workers})
    start_early(config, out)
    write_demo_corpus(corpus, pairs, seed)
    progress.note(f"Building in {out}{start_message(no_prefect)} ...")
    from pairwright.flows.build import build
    from pairwright.flows.commands.demo import truth_table

    manifest = build(config, out, progress, truth_table, prefect=not no_prefect)
    oracle = manifest["oracle"]
    result = {**build_result(out, manifest), "pairs": manifest["shards"]["samples"], "oracle": oracle}
    rows: list[list[object]] = [["checked against the truth", "kept", "right"]]
    rows += [[name, row["kept"], f"{row['true_share']:.2%}"] for name, row in oracle.items()]
    lines = build_lines(out, manifest, details=details)
    emit(result, [*lines[:-3], "", *table(rows), *lines[-3:]], as_json=as_json)
