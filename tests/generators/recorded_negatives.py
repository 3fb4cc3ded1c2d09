"""Recorded hard negatives of a language model, as pairs, as a server's answers, and as a run of its own.

    python -m tests.generators.recorded_negatives URL CACHE OUT DATA CAPTIONS

Asks for the negatives of so many captions and writes a JSON line for each annotation when its row has ended.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from pairwright.datasets.records import Annotation, Pair, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.grouping import split_items
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.session import Session
from pairwright.generators.llm.testing.answers import Answerer, ServerAnswer
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm_edits.negatives import LLMNegativeOptions, LLMNegatives
from pairwright.generators.prompts.book import PromptBook
from tests.generators.pair_steps import steps_of_pair

FILES = {
    "add_obj": "add-object",
    "replace_att": "replace-attribute",
    "replace_obj": "replace-object",
    "swap_att": "swap-attribute",
}
AT_ONCE = 16
TYPES = tuple(FILES.values())


@lru_cache(maxsize=1)
def recorded(data: Path) -> dict[str, dict[str, str]]:
    """Return for each caption the recorded negative of each type."""
    found: dict[str, dict[str, str]] = {}
    for file, kind in FILES.items():
        rows = json.loads((data / "sugarcrepe_unrefined" / f"{file}.json").read_text())
        for row in rows.values():
            found.setdefault(row["caption"], {}).setdefault(kind, row["negative_caption"])
    return found


def answering(rows: Mapping[str, Mapping[str, str]]) -> Answerer:
    """Return a server's answers: to the one-call prompt, what is recorded for its caption, or for each of several."""

    def answer(request: ChatRequest) -> ServerAnswer | None:
        items = split_items(request.user)
        captions = [caption_of(text) for _, text in items] or [caption_of(request.user)]
        if not rows.keys() >= set(captions):
            return None
        found = [json.loads(written(rows[caption])) for caption in captions]
        entries = [{"id": own, **each} for (own, _), each in zip(items, found, strict=False)]
        return ServerAnswer(json.dumps({"answers": entries} if items else found[0]))

    return answer


def caption_of(text: str) -> str:
    """Return the caption in a user message of the one-call prompt."""
    caption, _ = json.JSONDecoder().raw_decode(text.removeprefix("Caption: "))
    return str(caption)


def written(negatives: Mapping[str, str]) -> str:
    """Return an answer of the one-call variant."""
    rows = [{"type": kind, "from": "", "to": "", "caption": text} for kind, text in negatives.items()]
    return json.dumps({"negatives": rows})


def settings(url: str) -> LLMSettings:
    """Return settings for a test server, with a timeout that a busy machine does not reach."""
    return LLMSettings.from_env({}, base_url=url, api_key="x" * 20, model="m", max_concurrency=AT_ONCE, timeout=120.0)


def maker(types: tuple[str, ...] = TYPES) -> LLMNegatives:
    """Return the generator, over the bundled statistics."""
    thesaurus = load_wordnet()
    pool, book = load_bundled_statistics(), PromptBook()
    return LLMNegatives(thesaurus, pool, load_tagger(), book, "m", LLMNegativeOptions(types))


def pairs(captions: Mapping[str, object], count: int) -> list[Pair]:
    """Return the first captions as pairs."""
    return [Pair(key=pair_key("recorded", "", caption), caption=caption) for caption in list(captions)[:count]]


def rows(makes: LLMNegatives, chosen: list[Pair]) -> Iterator[LLMRow[list[Annotation]]]:
    """Return a row for each pair."""
    for pair in chosen:
        yield LLMRow(pair.key, partial(_talk, makes, pair))


def _talk(makes: LLMNegatives, pair: Pair, attempt: int) -> LLMStep[list[Annotation]]:
    return steps_of_pair(makes, pair, make_rng(0, pair.key), attempt=attempt)


def line_of(row: Annotation) -> str:
    """Return what a test compares of an annotation."""
    return json.dumps([row.id, row.source_text, f"{row.form}-{row.target}", row.text, row.reason, row.origin.request])


def main(url: str, cache: str, out: str, data: str, count: str) -> None:
    """Run."""
    chosen = pairs(recorded(Path(data)), int(count))
    with Path(out).open("w") as file, Session(settings(url), cache=Path(cache)) as session:
        for done in session.run(rows(maker(), chosen)):
            for row in done.result or []:
                print(line_of(row), file=file, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
