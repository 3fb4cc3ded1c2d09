"""``pairwright generate orders``: captions with perturbed word orders, a benchmark of word order."""

from pathlib import Path
from typing import Annotated

from pairwright.cli.errors.exit_codes import exit_below_target
from pairwright.cli.errors.interrupts import nothing_written_on_interrupt
from pairwright.cli.options.declarations import output_option
from pairwright.cli.options.input import InputArgument, InputOptions, JsonOption, SeedOption, with_input_options
from pairwright.cli.output.console import emit
from pairwright.cli.output.files import check_outputs
from pairwright.cli.output.progress import with_progress
from pairwright.cli.output.summary import headline, next_step, skipped_lines
from pairwright.datasets.count_phrases import count_phrase


@with_progress
@with_input_options("explode", "image_root", "clean_captions")
def orders(
    input_: InputArgument,
    *,
    reading: InputOptions,
    out: Annotated[Path, output_option("--out", help="File to write; its extension is the format.")],
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Generate perturbed word orders of captions (ARO's COCO-Order and Flickr30k-Order).

    Four texts a caption: nouns and adjectives exchanged, all other words permuted, words permuted within trigrams, and
    trigrams permuted. `evaluate negatives` reports the choice of five.

    \b
    Example:
      pairwright generate orders captions_val2014.json --image-root val2014 --out order.jsonl
    """
    from pairwright.filters.candidates.files import check_extension
    from pairwright.flows.commands.word_orders import write_word_orders

    nothing_written_on_interrupt()
    check_extension(out)
    check_outputs(out, reads=(input_,))
    result = write_word_orders(reading.read_options(input_), out, seed)
    lines = [
        headline(
            f"{result['kept']:,} of {count_phrase(result['rows'], 'row')} kept, of {count_phrase(result['captions'], 'caption')}"
        ),
        *skipped_lines(result),
        f"Written to {out}",
        *next_step("audit", out),
    ]
    emit({**result, "out": str(out)}, lines, as_json=as_json)
    if not result["kept"]:
        exit_below_target("No caption has two words to exchange.")
