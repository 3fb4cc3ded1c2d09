"""``pairwright evaluate multi-document``."""

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.training.attention.test_decoder import reader


def test_decoders_are_measured_over_documents_with_tables_and_a_page(run: Run, tmp_path: Path) -> None:
    found = reader()
    found.model.save_pretrained(tmp_path / "decoder")
    found.tokenizer.save_pretrained(tmp_path / "decoder")
    rows = [
        f"Where is {name}?,Town{place},{name} is in Town{place}."
        for place, name in enumerate(["Ada", "Bo", "Cy", "Di"])
    ]
    (tmp_path / "synth.csv").write_text("\n".join(["question,answer,wiki", *rows]))
    given = ["evaluate", "multi-document", "decoder", "--data", "synth.csv"]
    done = run(
        *given, "--documents", 2, "--documents", 4, "--gold", "1,2", "--questions", 1, "--html", "u.html", "--json"
    )
    printed = json.loads(done.stdout)["models"][0]
    assert printed["kind"] == "llama"
    parts = {(one["part"], one["measure"]) for one in printed["figures"]}
    assert {("plain", "gold 1 of 2"), ("calibrated", "gold 2 of 4"), ("calibrated", "average of 4")} <= parts
    assert ("ranking by attention", "recall@3 of 4") in parts
    page = (tmp_path / "u.html").read_text()
    assert page.count("accuracy by the gold document&#x27;s place") == 2
    assert "attention a token by place, K = 4" in page
    assert "give positions from 1 to 10" in run(*given, "--gold", "11", ok=False).stderr
    assert "--attention: no such kind: sorted. There are: " in run(*given, "--attention", "sorted", ok=False).stderr
    assert "cannot be used" in run(*given, "--documents", 2, "--device", "tpu", ok=False).stderr
