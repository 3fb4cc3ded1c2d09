"""Evaluation triples from files of candidate rows, by rules and by a model, through the command line's functions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import UsageError
from pairwright.filters.candidates.files import read_candidates
from pairwright.flows.commands.triples import TripleRequest, run_by_rules
from pairwright.flows.commands.triples_with_model import plan_with_model, run_with_model
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.generators.llm.grouping import split_items
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import Server, serve_in_thread
from tests.generators.recorded_negatives import caption_of

ROWS: list[dict[str, Any]] = [
    {"id": "a", "image": "1.jpg", "caption": "a large dog in a field", "negative": "a small dog in a field", "mine": 7},
    {"id": "b", "image": "1.jpg", "caption": "a large dog in a field", "negative": "A large dog in a field."},
    {"id": "c", "image": "2.jpg", "caption": "a man near a couch", "negative": "A man near a table."},
    {"id": "d", "image": "2.jpg", "caption": "a man near a couch", "negative": "a man near a table"},
    {"id": "e", "image": "3.jpg", "caption": "the crouched cat and the open door",
     "negative": "the open cat and the crouched door"},
    {"id": "f", "image": "4.jpg", "caption": "a large bus on a road", "negative": "a large bus and a dog on a road"},
    {"id": "g", "image": "5.jpg", "caption": "a dog runs", "negative": "", "status": "rejected", "reason": "no_edit"},
    {"id": "h", "image": "6.jpg", "caption": "two dogs on a bed", "negative": "two cats on a bed"},
    {"id": "i", "image": "6.jpg", "caption": "two cats on a couch", "negative": "two cats under a couch"},
]  # fmt: skip


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return written(tmp_path / "rows.jsonl", ROWS)


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def run(rows: Path, out: str = "triples.jsonl", **options: Any) -> tuple[dict[str, Any], Path]:
    path = rows.parent / out
    return run_by_rules(TripleRequest(rows, path, **options), lambda _: None), path


def test_every_row_ends_as_a_triple_or_says_why_not(rows: Path) -> None:
    result, out = run(rows)
    found = rows_of(out)
    assert list(found) == [row["id"] for row in ROWS]
    assert {name: row["reason"] for name, row in found.items()} == {
        "a": "", "b": "identical", "c": "", "d": "duplicate", "e": "", "f": "no_positive", "g": "no_edit",
        "h": "true_of_image", "i": "",
    }  # fmt: skip
    assert all(bool(row["positive"]) == (row["status"] == "kept") for row in found.values())
    assert result["rows"] == len(ROWS) == result["kept"] + sum(result["rejected"].values())
    assert sum(one["rows"] for one in result["types"].values()) == len(ROWS)
    assert sum(result["positives"].values()) == result["kept"]
    assert result["no_positive"] == {"no_such_type": 1}


def test_a_triple_tells_the_edits_of_both_sides_and_keeps_what_the_row_had(rows: Path) -> None:
    result, out = run(rows)
    row = rows_of(out)["a"]
    assert (row["positive"], row["form"], row["target"], row["mine"]) == (
        "a big dog in a field", "replace", "attribute", 7
    )  # fmt: skip
    for side, edits in (("negative", row["edit"]), ("positive", row["positive_edit"])):
        for edit in edits:
            assert row["caption"][slice(*edit["from_span"])] == edit["from"]
            assert row[side][slice(*edit["to_span"])] == edit["to"]
    assert row["scores"] == {"same_place": 1.0}
    reformatted = rows_of(out)["c"]
    assert (reformatted["negative"], reformatted["negative_as_given"]) == ("a man near a table", "A man near a table.")
    assert result["reformatted"] == 1


def test_another_type_is_a_positive_where_the_user_allows_it(rows: Path) -> None:
    row = rows_of(run(rows, any_type=True)[1])["f"]
    assert row["positive"] == "a big bus on a road"
    assert (row["form"], row["positive_form"], row["positive_target"]) == ("add", "replace", "attribute")


def test_sugarcrepe_s_layout_keeps_its_keys_with_their_holes(tmp_path: Path) -> None:
    given = {
        "3": {"filename": "1.jpg", "caption": "a large dog in a field", "negative_caption": "a small dog in a field"},
        "7": {"filename": "2.jpg", "caption": "a dog", "negative_caption": "a dog"},
        "12": {"filename": "3.jpg", "caption": "a big bus", "negative_caption": "a tiny bus"},
    }
    source = tmp_path / "replace_att.json"
    source.write_text(json.dumps(given))
    result, out = run(source, "out.json")
    found = json.loads(out.read_text())
    assert list(found) == ["3", "12"]
    assert found["3"] | given["3"] == found["3"]
    assert found["3"]["positive_caption"] == "a big dog in a field"
    assert result["rejected"] == {"identical": 1}


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".tsv", ".parquet"])
def test_triples_are_candidate_rows_in_every_layout_and_making_them_again_changes_nothing(
    rows: Path, ending: str
) -> None:
    result, out = run(rows, f"triples{ending}")
    kept = read_candidates(out).filter(status="kept")
    assert kept["id"].to_list() == ["a", "c", "e", "i"]
    assert all(kept["positive"])
    again, second = run(out, f"again{ending}")
    assert again["kept"] == result["kept"]
    assert read_candidates(second).filter(status="kept").equals(kept)


def test_the_same_seed_gives_the_same_bytes_in_any_order_of_the_rows(rows: Path) -> None:
    first = rows_of(run(rows)[1])
    turned = written(rows.parent / "turned.jsonl", ROWS[:2] + ROWS[:3:-1] + ROWS[2:4])
    assert rows_of(run(turned, "turned-out.jsonl")[1]) == first


def test_the_input_is_not_overwritten_and_an_unknown_extension_is_refused_first(rows: Path) -> None:
    with pytest.raises(UsageError, match="is the input itself"):
        run(rows, rows.name)
    with pytest.raises(UsageError, match="candidate rows are in"):
        run(rows, "triples.txt")


def test_the_command_line_prints_what_became_of_the_rows(rows: Path) -> None:
    out = rows.parent / "triples.jsonl"
    done = CliRunner().invoke(app, ["generate", "triples", str(rows), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert (result["rows"], result["kept"], result["method"]) == (9, 4, "rules")
    shown = CliRunner().invoke(app, ["generate", "triples", str(rows), "--out", str(out)])
    assert "4 of 9 rows" in shown.stdout
    refused = CliRunner().invoke(app, ["generate", "triples", str(rows), "--out", str(out), "--model", "x"])
    assert "--model does nothing" in str(refused.exception)


def test_nothing_kept_ends_below_the_asked_quality(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows.jsonl", [{"caption": "a dog", "negative": "a dog"}])
    done = CliRunner().invoke(app, ["generate", "triples", str(rows), "--out", str(tmp_path / "x.jsonl"), "--json"])
    assert done.exit_code == 3


def answer(kind: str, caption: str, old: str, new: str) -> dict[str, Any]:
    return {"positives": [{"type": kind, "from": old, "to": new, "caption": caption}]}


def script() -> ServerScript:
    wrong = answer("replace-relation", "a man close to a table", "near", "close to")
    return ServerScript(
        rules=[
            {
                "contains": "a large bus on a road",
                "json": answer("replace-attribute", "a huge bus on a road", "large", "huge"),
            },
            {
                "contains": "a large dog in a field",
                "json": answer("replace-attribute", "a big dog in a field", "large", "big"),
            },
            {"contains": "a man near a couch", "json": wrong},
            {"contains": "cats on a couch", "refusal": "no"},
            {
                "contains": "crouched cat",
                "json": answer("swap-object", "the open door and the crouched cat", "cat", "door"),
            },
        ]
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve_in_thread(ServerApp(script())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def asking(folder: Path) -> ModelAccess:
    return ModelAccess(LLMSection(model="small"), folder / "cache.sqlite")


def ask(rows: Path, **options: Any) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    request = TripleRequest(rows, rows.parent / "asked.jsonl", **options)
    result = run_with_model(request, asking(rows.parent), lambda _: None, lambda _: None)
    return result, rows_of(request.out)


def test_a_model_writes_positives_for_captions_that_have_a_negative(server: Server, rows: Path) -> None:
    result, found = ask(rows)
    assert {name: row["positive"] for name, row in found.items() if row["status"] == "kept"} == {
        "a": "a big dog in a field",
        "e": "the open door and the crouched cat",
    }
    assert found["c"]["reason"] == found["f"]["reason"] == "no_positive"
    assert found["b"]["reason"] == "identical"
    assert result["rows"] == len(ROWS) == result["kept"] + sum(result["rejected"].values())
    assert result["llm"]["model"] == "small"
    assert result["failed"]["reasons"]
    again, same = ask(rows)
    assert same == found
    assert again["llm"]["requests"] == 0


def test_a_model_is_asked_for_other_types_only_where_its_own_gave_nothing(server: Server, rows: Path) -> None:
    few = written(rows.parent / "few.jsonl", [ROWS[0], ROWS[5]])
    _, found = ask(few, any_type=True)
    assert found["f"]["positive"] == "a huge bus on a road"
    assert found["a"]["positive_target"] == "attribute"
    told = asking(rows.parent)
    plan = plan_with_model(TripleRequest(few, rows.parent / "x.jsonl"), told, lambda _: None)
    assert plan.rows == 1


def test_captions_share_requests_also_where_other_types_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing rewords "wooden"; so each caption is asked about again, for its relation or its thing."""
    things = ("bench", "chair", "table", "boat", "fence", "bridge", "door", "spoon")
    given = [
        {"caption": f"a wooden {thing} near a sofa", "negative": f"a metal {thing} near a sofa"} for thing in things
    ]

    def answering(request: ChatRequest) -> ServerAnswer:
        def reworded(text: str) -> dict[str, Any]:
            caption = caption_of(text)
            if "replace-object" not in text:
                return {"positives": []}
            return answer("replace-object", caption.replace("sofa", "couch"), "sofa", "couch")

        items = split_items(request.user)
        entries = [{"id": own, **reworded(text)} for own, text in items]
        return ServerAnswer(json.dumps({"answers": entries} if items else reworded(request.user)))

    rows = written(tmp_path / "rows.jsonl", given)
    request = TripleRequest(rows, tmp_path / "asked.jsonl", any_type=True)
    with serve_in_thread(ServerApp(ServerScript(), answer=answering)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        first = run_with_model(request, asking(tmp_path), lambda _: None, lambda _: None)
        sent = server.stats()["requests"]
        again = run_with_model(request, asking(tmp_path), lambda _: None, lambda _: None)
        assert server.stats()["requests"] == sent
    assert first["kept"] == again["kept"] == len(things)
    assert sent < len(things)


def test_broken_rows_of_the_pool_are_reported(rows: Path) -> None:
    pool = rows.with_name("pool.jsonl")
    pool.write_text('{"image_id": 1, "captions": ["a dog in a field"]}\nbroken\n')
    said: list[str] = []
    run_by_rules(TripleRequest(rows, rows.with_name("triples.jsonl"), pool=str(pool)), said.append)
    assert f"{pool}: skipped 1 row (broken_json 1)." in said
