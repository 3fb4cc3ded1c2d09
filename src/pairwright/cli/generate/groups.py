"""``pairwright generate groups``: groups of two images and two texts, for evaluation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.declarations import limit_option, output_option
from pairwright.cli.options.input import (
    DetailsOption,
    InputArgument,
    InputOptions,
    JsonOption,
    SeedOption,
    with_input_options,
)
from pairwright.cli.output.console import emit, list_counts
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, main_reasons, skipped_lines
from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.rejects import list_reasons


@with_progress
@with_input_options("image_root", "instances")
def groups(
    input_: InputArgument,
    *,
    out: Annotated[Path, output_option(help="File of the groups, .jsonl.")],
    negatives: Annotated[str, typer.Option(help="Candidate rows whose negatives may be captions of INPUT.")] = "",
    per_image: Annotated[int, limit_option(min=0, help="Groups per image, at most (0 = unlimited).")] = 1,
    seed: SeedOption = 0,
    reading: InputOptions,
    details: DetailsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Find groups of two images and two texts in a pool (Winoground).

    Each text is a caption of one image and a hard negative of the other. OUT has Winoground's fields: image_0,
    image_1, caption_0, caption_1.

    \b
    Examples:
      pairwright generate groups captions.jsonl --out groups.jsonl
      pairwright generate groups captions.jsonl --negatives negatives.jsonl --per-image 0 --out groups.jsonl
    """
    from pairwright.flows.commands.mine_groups import GroupRequest, mine_groups

    request = GroupRequest(reading.read_options(input_), out, negatives, per_image, seed)
    request.check()
    nothing_written_on_interrupt()
    check_outputs(out, reads=(input_, negatives))
    result = mine_groups(request)
    emit(result, _lines(result, details=details), as_json=as_json)
    if not result["groups"]:
        exit_below_target("No group was found. A larger pool has more captions that differ in one word.")


def _lines(result: Mapping[str, Any], *, details: bool) -> list[str]:
    found = f"{count_phrase(result['groups'], 'group')} of 2 images x 2 texts from {count_phrase(result['images'], 'image')}, {result['seconds']} s"
    reasons = (list_reasons if details else main_reasons)(result["rejected"])
    return [
        headline(found),
        f"types: {list_counts(result['types']) or 'none'}",
        f"{count_phrase(result['candidates'], 'candidate')}; rejected: {reasons or 'none'}",
        *skipped_lines(result),
        "",
        f"Written to {result['out']}",
    ]
