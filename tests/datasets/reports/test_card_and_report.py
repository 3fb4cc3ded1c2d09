"""The card and the report: valid, complete, self-contained, and safe with hostile captions."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from pairwright.datasets.records import Edit
from pairwright.datasets.reports.build_report import (
    ScorerGaps,
    format_duration,
    render_report,
    write_report,
)
from pairwright.datasets.reports.dataset_card import escape_markdown, front_matter, render_card
from pairwright.datasets.reports.sample_gallery import choose_samples, mark_edits
from pairwright.datasets.shards.content_counts import count_contents
from pairwright.datasets.shards.layout import summarize_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.shards.writing import write_shards
from tests.datasets.sample_builders import conversation, negative, pair, samples

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \"' & | `x` [a](http://evil.example/)"


@pytest.fixture
def manifest(tmp_path: Path) -> dict[str, Any]:
    held = samples(6)
    return {
        "name": "shapes | of <colour>",
        "version": "0.1.0",
        "created": "2030-01-02T03:04:05Z",
        "stages": {
            "negatives": {
                "unit": "attempt",
                "candidates": 30,
                "kept": 20,
                "rejected": {"no_edit": 7, "identical": 3},
                "seconds": 1.5,
            },
            "shards": {"unit": "pair", "candidates": 6, "kept": 6, "rejected": {}, "seconds": 0.02},
        },
        "types": {"replace-object": {"made": 30, "kept": 20, "rejected": {"no_edit": 10}}},
        "contents": count_contents(held),
        "shards": summarize_shards(write_shards(held, tmp_path / "shards")),
        "oracle": {"negatives": {"kept": 20, "true_share": 0.95, "outside": 1}},
        "config": {"seed": 1, "input": "/home/me/pool", "llm": {"api_key": "sk-secret", "model": "m"}},
        "environment": {"python": "3.11"},
    }


class Page(HTMLParser):
    """Tags and attributes of a page, and the elements left open at its end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "br", "rect", "path", "line"}:
            self.open.append(tag)

    @override
    def handle_endtag(self, tag: str) -> None:
        if self.open and tag == self.open[-1]:
            self.open.pop()


def test_the_card_s_metadata_is_valid_yaml_that_the_hub_knows(manifest: dict[str, Any]) -> None:
    text = render_card(manifest)
    front = yaml.safe_load(text.split("---\n")[1])
    assert front == front_matter(manifest)
    assert front["license"] == "cc-by-4.0"
    assert front["size_categories"] == ["n<1K"]
    assert front["configs"][0]["data_files"][0]["path"] == "shards/*.tar"
    assert [feature["name"] for feature in front["dataset_info"]["features"]] == [
        "jpg",
        "txt",
        "json",
        "__key__",
        "__url__",
    ]


def test_the_card_has_sources_stages_reasons_makers_and_limits(manifest: dict[str, Any]) -> None:
    text = render_card(manifest)
    for said in (
        "| test | 6 | CC BY 4.0 |",
        "| negatives | attempt | 30 | 20 | no\\_edit 7, identical 3 |",
        "| rules-negatives | 1 | 7 | none | none | 3 |",
        "| negatives | 20 | 95.00% | 1 |",
        'wds.WebDataset("shards/00000.tar"',
        "## Known limits",
    ):
        assert said in text
    assert "sk-secret" not in text
    assert "/home/me" not in text


def test_card_and_report_have_model_costs_by_stage_and_in_total(manifest: dict[str, Any]) -> None:
    assert "What models cost" not in render_card(manifest)
    assert ">Cost<" not in render_report(manifest)
    bill = {"answers": 1_200, "prompt_tokens": 50_000, "completion_tokens": 7_000, "cost": 0.0123}
    manifest["stages"]["negatives"]["facts"] = {"llm": {"in_all": bill}}
    assert "| negatives | 1,200 | 50,000 | 7,000 | $0.0123 |" in render_card(manifest)
    assert "$0.0123" in render_report(manifest)
    manifest["stages"]["positives"] = {
        **manifest["stages"]["shards"],
        "facts": {"llm": {"in_all": {**bill, "cost": None}}},
    }
    assert "| all | 2,400 | 100,000 | 14,000 | price unknown |" in render_card(manifest)


def test_the_card_of_an_almost_empty_manifest_is_still_a_card() -> None:
    assert yaml.safe_load(render_card({"name": "x"}).split("---\n")[1])["license"] == "unknown"


@pytest.mark.parametrize(
    ("licenses", "expected"),
    [
        (["MIT"], {"license": "mit"}),
        (["CC BY 4.0", "cc-by-4.0"], {"license": "cc-by-4.0"}),
        (["CC BY 4.0", ""], {"license": "other", "license_name": "mixed"}),
        (["my own"], {"license": "other", "license_name": "as-stated-by-the-source"}),
        ([""], {"license": "unknown"}),
    ],
)
def test_a_licence_is_named_only_when_every_source_has_it(licenses: list[str], expected: dict[str, str]) -> None:
    held = [Sample(replace(pair(number), license=name)) for number, name in enumerate(licenses)]
    front = front_matter({"contents": count_contents(held)})
    assert {name: front[name] for name in front if name.startswith("license")} == expected


@given(st.text())
def test_no_text_breaks_a_table_of_the_card(text: str) -> None:
    assert "\n" not in escape_markdown(text)
    assert not re.search(r"(?<!\\)(\\\\)*\|", escape_markdown(text))
    assert "<" not in escape_markdown(text)


def test_contents_are_counted_over_samples() -> None:
    contents = count_contents(samples(6))
    assert contents["samples"] == contents["with_image"] == 6
    assert contents["texts"] == {
        "hard_negatives": 3,
        "hard_positives": 3,
        "conversations": 3,
        "turns": 6,
        "rationales": 3,
    }
    assert contents["samples_with"] == {"hard_negatives": 3, "hard_positives": 3, "conversations": 3, "rationales": 3}
    assert "Of 6 samples 3 (50.0%) have at least one hard negative, 3 (50.0%)" in render_card({"contents": contents})
    assert contents["types"]["hard_negatives"] == {"replace-attribute": 3}
    assert contents["image_exts"] == {"jpg": 6}


def test_the_survey_of_shards_names_every_maker(tmp_path: Path) -> None:
    write_shards(samples(6), tmp_path)
    read = list(read_shard(tmp_path / "00000.tar"))
    assert count_contents(read) == count_contents(samples(6))
    assert [(maker["generator"], maker["samples"]) for maker in count_contents(read)["makers"]] == [
        ("rules-negatives", 3),
        ("templates", 3),
    ]


def test_the_report_refers_to_nothing_outside_itself(manifest: dict[str, Any], tmp_path: Path) -> None:
    gaps = [ScorerGaps("grammar", [0.5, 0.2, -0.1], [0.1, -0.1])]
    write_report(tmp_path / "report.html", manifest, samples(4), gaps)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "iframe", "object", "embed", "form", "a", "base"}
    for _, attributes in page.tags:
        assert not {name for name in attributes if name in {"href", "action", "srcset"} or name.startswith("on")}
        assert (attributes.get("src") or "data:").startswith("data:image/jpeg;base64,") or "src" not in attributes
    assert not re.search(r"url\(|@import|https?://", text)


def test_the_report_shows_every_section_with_its_numbers(manifest: dict[str, Any]) -> None:
    text = render_report(manifest, samples(4), [ScorerGaps("grammar", [0.5, 0.2, -0.1], [0.1, -0.1])])
    for said in (
        "no_edit 7 · identical 3",
        "replace-object",
        "66.7% guessed right",
        "95.00%",
        "20/s",
        "<del>red</del> <ins>blue</ins>",
    ):
        assert said in text
    assert text == render_report(manifest, samples(4), [ScorerGaps("grammar", [0.5, 0.2, -0.1], [0.1, -0.1])])


def test_hostile_text_stays_text(manifest: dict[str, Any]) -> None:
    of = replace(pair(0, HOSTILE), source=HOSTILE, license=HOSTILE)
    held = [Sample(of, (negative(of, HOSTILE + "!"), conversation(of, HOSTILE, HOSTILE, kind=HOSTILE)))]
    stages = {HOSTILE: {"unit": HOSTILE, "candidates": 1, "kept": 0, "rejected": {HOSTILE: 1}, "seconds": 1.0}}
    evil = manifest | {"name": HOSTILE, "contents": count_contents(held), "stages": stages, "types": {}, "oracle": {}}
    page = Page(render_report(evil, held, [ScorerGaps(HOSTILE, [0.1], [])]))
    assert not {tag for tag, _ in page.tags} & {"script", "img", "a"}
    assert page.open == []
    assert "<script" not in render_card(evil).split("## To make it again")[0].split("---\n", 2)[2]


@given(st.text(max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_marked_text_reads_as_the_text_whatever_the_spans(text: str, start: int, end: int) -> None:
    shown = mark_edits(text, [Edit("was", "is", (0, 3), (start, end))])
    page = re.sub(r"<del>.*?</del> |</?ins>", "", shown)
    assert unescape(page) == unescape(mark_edits(text, []))


def test_samples_are_drawn_by_seed_whatever_their_order() -> None:
    held = samples(30)
    drawn = choose_samples(held, 5, seed=1)
    assert drawn == choose_samples(list(reversed(held)), 5, seed=1)
    assert drawn != choose_samples(held, 5, seed=2)
    assert all(sample.annotations for sample in drawn)


def test_an_image_that_does_not_decode_is_replaced_by_a_note(manifest: dict[str, Any]) -> None:
    broken = replace(samples(1)[0], image=b"\xff\xd8\xff")
    assert "does not decode" in render_report(manifest, [broken])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0213, "0.021 s"), (3.14, "3.1 s"), (45.2, "45 s"), (200.4, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations_are_formatted_for_people(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said
