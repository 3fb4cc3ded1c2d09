"""Recorded answers of real models, replayed: what the checks keep, what they reject and why, and what they cost.

    python -m benchmarks.llm.recorded_answers DATA [--half odd] [--verbs edits,positives,...] [--readings FILE]

DATA is the folder of test data (sugarcrepe_unrefined, coco_captions, gpt4v_answers, palm_cot). Rows at even places were used
for tuning, those at odd ones were not. Captions of other images are the pool; other captions of an image are known where
coco_captions has it.

- *edits*: recorded negatives through `EditChecks.check_batch`, by type: kept, and each reason with the constraint.
  *of another type*: kept as an edit of another type than its file's. CPU in milliseconds per text, tagging apart:
  *first* with empty caches, *again* with full ones.
- *positives*: the same texts as hard positives (but additions), of which none should be kept: each is false of its image.
- *negatives*, *conversations*, *judge*, *rationales*: the verb end to end, with the test server as the model (``pairwright
  generate negatives --method llm``, ``generate conversations``, ``validate --by llm``, ``generate rationales``). The judge
  gets the recorded answers to both orders of two texts. A description is what the other annotators of an image wrote, one
  after the other, and the model gets one caption: all of it is true, so every rejected one is lost wrongly.

``--readings FILE`` writes rows to read, at most 50 of each outcome, as tab-separated values.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from pairwright.datasets.records import Pair, pair_key
from pairwright.generators.edit_types import BENCHMARK_TYPES, POSITIVE_TYPES
from pairwright.generators.edits.written.checks import Checked, EditChecks
from pairwright.generators.edits.written.targets import RequestedEdit
from pairwright.generators.language.pool_statistics import count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.testing.answers import Answerer, ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from tests.generators.recorded_negatives import FILES, answering

POOL_CAPTIONS = 20_000
READ = 50  # rows of each outcome
VERBS = ("edits", "positives", "negatives", "conversations", "judge", "rationales")
DESCRIBED = 1_000  # images
JUDGED = ("add_att", "replace_att", "swap_att")
TASKS = {
    "nli": ("anli1/anli1_valid.json", ("anli1/palm/valid_CoT_0.json",), ("premise", "hypothesis")),
    "math": ("svamp/svamp_train.json", ("svamp/palm/train_CoT_0.json", "svamp/palm/train_CoT_1.json"), ("input",)),
}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')

Table = dict[str, Counter[str]]


@dataclass
class TimedTagger:
    """A tagger that remembers what it tagged and counts its CPU seconds."""

    tagger: Tagger
    seconds: float = 0.0
    known: dict[str, list[Token]] = field(default_factory=dict)
    name: str = "timed"

    def tag(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text, in order."""
        began = time.process_time()
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(new, self.tagger.tag(new), strict=True))
        self.seconds += time.process_time() - began
        return [self.known[text] for text in texts]


@dataclass(frozen=True)
class Recorded:
    """Recorded negatives of one half, by image and caption, and captions of images that none of them is of."""

    data: Path
    rows: Mapping[tuple[int, str], Sequence[tuple[str, str]]]
    siblings: Mapping[int, Sequence[str]]

    @classmethod
    def read(cls, data: Path, half: str) -> "Recorded":
        """Read the rows at even or odd places, or all."""
        rows: defaultdict[tuple[int, str], list[tuple[str, str]]] = defaultdict(list)
        for file, kind in FILES.items():
            found = json.loads((data / "sugarcrepe_unrefined" / f"{file}.json").read_text()).values()
            for at, row in enumerate(found):
                if half in ("all", ("even", "odd")[at % 2]):
                    rows[int(row["filename"].partition(".")[0]), row["caption"]].append((kind, row["negative_caption"]))
        lines = (data / "coco_captions" / "captions.jsonl").read_text().splitlines()
        return cls(data, rows, {row["image_id"]: row["captions"] for row in map(json.loads, lines)})

    def pairs(self) -> list[Pair]:
        """Return each caption as a pair with the other captions of its image."""
        return [
            Pair(
                pair_key("recorded", str(image), caption),
                caption,
                source_id=str(image),
                captions=tuple(other for other in self.siblings.get(image, ()) if other.strip() != caption.strip()),
            )
            for image, caption in self.rows
        ]

    def pool(self) -> list[str]:
        """Return captions of images that have no rows."""
        used = {image for image, _ in self.rows}
        return [text for image, texts in self.siblings.items() if image not in used for text in texts][:POOL_CAPTIONS]


def replay_edits(
    recorded: Recorded, kind: str, types: Sequence[str]
) -> tuple[Table, list[list[str]], dict[str, float]]:
    """Check the recorded texts in one process; return outcomes by type, rows to read, and the CPU time."""
    tagger = TimedTagger(load_tagger())
    pool = count_captions(tagger.tagger.tag(recorded.pool())).frozen()
    checks = EditChecks(load_wordnet(), pool, tagger)
    forms = {name.split("-")[0] for name in types}
    batch = [
        (pair, [(RequestedEdit(kind, *name.split("-")), text) for name, text in written if name.split("-")[0] in forms])
        for pair, written in zip(recorded.pairs(), recorded.rows.values(), strict=True)
    ]
    texts = sum(len(written) for _, written in batch)
    timings: dict[str, float] = {}
    for name in ("first", "again"):
        began, tagger.seconds = time.process_time(), 0.0
        found = checks.check_batch(batch, other_types=types if kind == "hard_negative" else ())
        timings[name] = 1000 * (time.process_time() - began - tagger.seconds) / texts
        timings.setdefault("tagging", 1000 * tagger.seconds / texts)
    table: Table = defaultdict(Counter)
    rows = []
    for (pair, written), outcomes in zip(batch, found, strict=True):
        for (asked, text), outcome in zip(written, outcomes, strict=True):
            name, said = f"{asked.form}-{asked.target}", _outcome(asked, outcome)
            table[name][said] += 1
            rows.append([said, name, pair.caption, text, outcome.text, " / ".join(pair.captions)])
    return table, rows, timings


def _outcome(asked: RequestedEdit, checked: Checked) -> str:
    if checked.reason:
        return f"{checked.reason} ({checked.constraint})" if checked.constraint else checked.reason
    return "kept" if (checked.form, checked.target) == (asked.form, asked.target) else "kept, of another type"


def replay_negatives(recorded: Recorded, folder: Path) -> Table:
    """Run the verb over the recorded negatives, the test server being the model."""
    captions, pool, out = folder / "captions.jsonl", folder / "pool.jsonl", folder / "out.jsonl"
    pairs = recorded.pairs()
    _write(captions, ({"image_id": pair.source_id, "captions": [pair.caption, *pair.captions]} for pair in pairs))
    _write(pool, ({"caption": text} for text in recorded.pool()))
    texts = {caption: dict(written) for (_, caption), written in recorded.rows.items()}
    arguments = [
        "generate",
        "negatives",
        captions,
        "--method",
        "llm",
        "--types",
        ",".join(FILES.values()),
        "--pool",
        pool,
    ]
    _run(answering(texts), [*arguments, "--out", out])
    table: Table = defaultdict(Counter)
    for row in _read(out):
        name = f"{row['form']}-{row['target']}"
        if row["reason"] != "no_edit" or name in texts[row["caption"]]:
            table[name][row["reason"] or "kept"] += 1
    return table


def replay_conversations(recorded: Recorded, folder: Path) -> Table:
    """Run the verb over one caption of each image, with the other captions as the description."""
    captions, out = folder / "captions.jsonl", folder / "out.jsonl"
    shown = dict(list({texts[0]: texts[1:] for texts in recorded.siblings.values()}.items())[:DESCRIBED])
    _write(captions, ({"caption": caption} for caption in shown))
    sentences = {
        " ".join(caption.split()): " ".join(f"{text.strip().rstrip('.')}." for text in others)
        for caption, others in shown.items()
    }

    def answer(request: ChatRequest) -> ServerAnswer | None:
        lines = (" ".join(line.strip().strip('"').split()) for line in request.user.splitlines())
        return next((ServerAnswer(sentences[line]) for line in lines if line in sentences), None)

    _run(answer, ["generate", "conversations", captions, "--method", "llm", "--types", "detail", "--out", out])
    table: Table = defaultdict(Counter)
    for row in _read(out):
        table[row["kind"]][row["reason"] or "kept"] += 1
    return table


def replay_judge(data: Path, folder: Path) -> Table:
    """Run the verb over two texts an image, with the answers that a model gave to both orders of them."""
    table: Table = defaultdict(Counter)
    for name in JUDGED:
        answers: dict[tuple[str, ...], str] = {}
        rows: dict[str, dict[str, str]] = {}
        for order in ("positive", "negative"):
            found = json.loads((data / "gpt4v_answers" / f"{order}-first-{name}.json").read_text())
            for key, row in ((key, row) for key, row in found.items() if isinstance(row, dict)):
                texts = (row["caption"], row["negative_caption"])[:: 1 if order == "positive" else -1]
                answers[_key(*texts)] = row["answer"]["free_form_answer"]
                image = folder / f"{name}-{key}.png"
                Image.new("RGB", (8, 8)).save(image)
                rows[key] = {"image": str(image), "caption": row["caption"], "negative": row["negative_caption"]}
        out = folder / f"{name}-out.jsonl"
        _write(folder / f"{name}.jsonl", rows.values())
        _run(_looking_up(answers), ["validate", folder / f"{name}.jsonl", "--by", "llm", "--out", out])
        table[name].update(row["reason"] or "kept" for row in _read(out))
    return table


def replay_rationales(data: Path, folder: Path) -> Table:
    """Run the verb over the rows of two tasks, with what a model wrote for each."""
    table: Table = defaultdict(Counter)
    for task, (rows, files, columns) in TASKS.items():
        source = data / "palm_cot" / rows
        texts = [text for file in files for text in json.loads((data / "palm_cot" / file).read_text())]
        given = list(_read(source))[: len(texts)]
        answers = {_key(" ".join(row[name] for name in columns)): text for row, text in zip(given, texts, strict=True)}
        chosen, out = folder / f"{task}.jsonl", folder / f"{task}-out"
        _write(chosen, given)
        said = _run(_looking_up(answers), ["generate", "rationales", chosen, "--task", task, "--out", out, "--json"])
        found = json.loads(said)
        table[task].update({"kept": found["kept"], **found["rejected"]})
    return table


def _looking_up(answers: Mapping[tuple[str, ...], str]) -> Answerer:
    """Return a server's answers, by the quoted texts of the last message: together or each."""

    def answer(request: ChatRequest) -> ServerAnswer | None:
        texts = [json.loads(text) for text in _QUOTED.findall(request.user)]
        found = answers.get(_key(*texts)) or answers.get(_key(" ".join(texts)))
        return ServerAnswer(found) if found is not None else None

    return answer


def _key(*texts: str) -> tuple[str, ...]:
    return tuple(re.sub(r"\W+", "", text).lower() for text in texts)


def _run(answer: Answerer, arguments: Sequence[object]) -> str:
    """Run ``pairwright`` with the test server as its model; return what it prints."""
    with serve_in_thread(ServerApp(ServerScript(), answer=answer)) as server:
        settings = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x" * 20}
        command = [sys.executable, "-m", "pairwright", *map(str, arguments), "--model", "m", "--quiet"]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    return done.stdout


def _write(path: Path, rows: "Iterator[Mapping[str, Any]] | Sequence[Mapping[str, Any]] | Any") -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _read(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def print_table(title: str, table: Table) -> None:
    """Print outcomes by column as a Markdown table, with the sum of each column."""
    total = sum(table.values(), Counter[str]())
    print(f"\n{title}\n\n| outcome | {' | '.join(table)} | all |\n|---|{'---:|' * (len(table) + 1)}")
    for name, count in total.most_common():
        print(f"| {name} | {' | '.join(str(table[each][name]) for each in table)} | {count} |")
    print(f"| rows | {' | '.join(str(table[each].total()) for each in table)} | {total.total()} |")


def write_readings(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write at most `READ` rows of each outcome, chosen at random."""
    chosen: Counter[str] = Counter()
    lines = ["outcome\ttype\tcaption\twritten\ttext\tothers"]
    for row in random.Random(0).sample(list(rows), len(rows)):
        chosen[row[0]] += 1
        if chosen[row[0]] <= READ:
            lines.append("\t".join(" ".join(cell.split()) for cell in row))
    path.write_text("\n".join([lines[0], *sorted(lines[1:])]) + "\n", encoding="utf-8")


def main() -> None:
    """Replay what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--half", choices=("even", "odd", "all"), default="odd")
    parser.add_argument("--verbs", default=",".join(VERBS))
    parser.add_argument("--readings", type=Path)
    asked = parser.parse_args()
    recorded, verbs = Recorded.read(asked.data, asked.half), asked.verbs.split(",")
    for verb, kind in (("edits", "hard_negative"), ("positives", "hard_positive")):
        if verb in verbs:
            table, rows, timings = replay_edits(recorded, kind, BENCHMARK_TYPES if verb == "edits" else POSITIVE_TYPES)
            print_table(f"{verb}: " + ", ".join(f"{name} {value:.3f} ms" for name, value in timings.items()), table)
            if asked.readings and verb == "edits":
                write_readings(asked.readings, rows)
    runs: dict[str, Callable[[Path], Table]] = {
        "negatives": lambda folder: replay_negatives(recorded, folder),
        "conversations": lambda folder: replay_conversations(recorded, folder),
        "judge": lambda folder: replay_judge(asked.data, folder),
        "rationales": lambda folder: replay_rationales(asked.data, folder),
    }
    for verb, run in runs.items():
        if verb in verbs:
            with TemporaryDirectory() as folder:
                print_table(verb, run(Path(folder)))


if __name__ == "__main__":
    main()
