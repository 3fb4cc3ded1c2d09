"""Counts of skipped rows and single captions."""

import json
from pathlib import Path

from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts, describe_skip_counts
from pairwright.datasets.record_tables import REJECTS
from pairwright.datasets.rejects import make_reject


def skipped(path: Path) -> SkipCounts:
    found = SkipCounts()
    for batch in read_pairs(ReadOptions(str(path), on_error="skip", verify_images="off")):
        found.add(batch.rejects)
    return found


def test_rows_and_captions_are_counted_each_by_itself(tmp_path: Path) -> None:
    """An invalid caption is skipped alone if its row has another; the only caption of a row counts as the row."""
    rows = ['{"captions": ["a dog", "", null]}', '{"captions": [""]}', '{"caption": null}', '{"capt']
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(rows))
    assert skipped(path).describe() == "3 rows (empty_caption 2, broken_json 1) and 2 captions (empty_caption 2)"


def test_an_annotation_of_coco_is_a_caption(tmp_path: Path) -> None:
    """A row is an image there."""
    captions = [(1, "a dog"), (1, ""), (9, "a cat")]
    data = {
        "images": [{"id": 1, "file_name": "1.jpg"}, {"id": 2, "file_name": "2.jpg"}],
        "annotations": [{"id": n, "image_id": image, "caption": text} for n, (image, text) in enumerate(captions)],
    }
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(data))
    assert skipped(path).describe() == "1 row (empty_caption 1) and 2 captions (empty_caption 1, unknown_image 1)"


def test_empty_counts_have_an_empty_description() -> None:
    """Whole inputs are the rule."""
    assert SkipCounts().describe() == ""
    assert describe_skip_counts(SkipCounts().as_json()) == ""


def test_a_result_has_the_total_and_the_captions_in_it() -> None:
    """``broken`` stays the sum, by reason, of all that is not among the pairs."""
    found = SkipCounts()
    found.add(
        [
            make_reject("a:1", "bad_image", ""),
            make_reject("a:2, caption 1", "wrong_type", "", part="caption"),
            make_reject("a:2, boxes", "bad_box", "", part="boxes"),
            make_reject("a:2, width", "not_finite", "", part="field"),
        ]
    )
    assert found.as_json() == {
        "broken": {"bad_box": 1, "bad_image": 1, "not_finite": 1, "wrong_type": 1},
        "broken_captions": {"wrong_type": 1},
        "broken_boxes": {"bad_box": 1},
        "broken_fields": {"not_finite": 1},
    }
    described = (
        "1 row (bad_image 1), 1 caption (wrong_type 1), the boxes of 1 image (bad_box 1) and 1 field (not_finite 1)"
    )
    assert describe_skip_counts(found.as_json()) == described
    assert (found + found).fields == {"not_finite": 2}
    assert SkipCounts(boxes=found.boxes).describe() == "the boxes of 1 image (bad_box 1)"


def test_a_rejected_row_at_rest_is_the_same_row(tmp_path: Path) -> None:
    """Incremental builds look for what was rejected before among what is rejected now."""
    row = make_reject("a:2, caption 1", "wrong_type", "a number", part="caption")
    REJECTS.write([row], tmp_path / "r.parquet")
    assert REJECTS.read(tmp_path / "r.parquet") == [row]
