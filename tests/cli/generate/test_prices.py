"""Prices on the pages are those that ``--dry-run`` estimates for captions of COCO."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ROOT = Path(__file__).resolve().parents[3]
ROWS = re.findall(
    r"^\| `((?:negatives|positives).*?)`.*?\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$",
    (ROOT / "docs" / "concepts" / "models.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
CAPTIONS = 500


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_table_of_prices_is_what_a_dry_run_estimates(
    row: tuple[str, ...], run: Run, tmp_path: Path, real_data: Path
) -> None:
    given = (real_data / "coco_captions" / "captions.jsonl").read_text().splitlines()[:CAPTIONS]
    rows = [{"image_id": one["image_id"], "caption": one["captions"][0]} for one in map(json.loads, given)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    verb, *options = row[0].split()
    model = ["--method", "llm", "--model", "gpt-4o-mini", "--dry-run", "--json"]
    [plan] = json.loads(run("generate", verb, "c.jsonl", *options, *model, "--out", "n.jsonl").stdout)["plan"]
    requests, read, written = (plan[name]["value"] / CAPTIONS for name in ("requests", "tokens_in", "tokens_out"))
    price = f"{1_000 * plan['cost']['value'] / CAPTIONS:.2f}"
    tokens = [f"{round(count, -1):,.0f}" for count in (read, written)]
    assert (f"{requests:.2g}", *tokens, price) == (row[1], *row[2:5])


def test_the_readme_names_the_price_of_the_table() -> None:
    price = {command: row[-1] for command, *row in ROWS}["negatives"]
    assert f"about ${price} for 1,000 captions" in (ROOT / "README.md").read_text(encoding="utf-8")
