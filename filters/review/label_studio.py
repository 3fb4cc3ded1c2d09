"""Reviews in Label Studio: rows as its tasks, and its JSON export as decisions.

`write_tasks` writes the JSON that a project imports, with images as data URLs, and next to it the labeling configuration
(``.xml``). The JSON export of the project is a file of decisions for ``review --report`` and ``--apply``: of each annotation the
choice, the text of a fix, who made it and when. Cancelled annotations are no decisions. The reviewer is the e-mail address or
number of the user.

Source: Label Studio, Import data (JSON) and Export annotations (JSON).
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import replace_atomically, write_text
from pairwright.datasets.errors import InputError
from pairwright.filters.review.decisions import DECISION_WORDS, Decision
from pairwright.filters.review.images import load_browser_image
from pairwright.filters.review.rows import ReviewRows, order_for_review

_CONFIG = """<View>
  <Image name="image" value="$image"/>
  <Header value="Caption"/>
  <Text name="caption" value="$caption"/>
  <Header value="{title}"/>
  <Text name="candidate" value="$candidate"/>
  <Choices name="decision" toName="candidate" choice="single" required="true">
{choices}
  </Choices>
  <TextArea name="fix" toName="candidate" value="$candidate" rows="2" maxSubmissions="1"
            visibleWhen="choice-selected" whenTagName="decision" whenChoiceValue="fix"/>
</View>
"""
_FIX = "Give the JSON export of a project with the tasks of `review --to-label-studio`."


def write_tasks(rows: ReviewRows, out: Path, *, sample: int = 0, seed: int = 0) -> int:
    """Write the rows to review as tasks to ``out``, and the labeling configuration next to it; return their number.

    Raises:
        InputError: a row names an image that is missing, or no image.
    """
    entering = rows.entering()
    order = order_for_review(entering["id"].to_list(), entering["type"].to_list(), seed)
    chosen = order[: sample or len(order)]
    with replace_atomically(out) as temporary, temporary.open("wb") as handle:
        handle.write(b"[")
        for number, at in enumerate(chosen):
            task = {"data": _data_of(entering.row(at, named=True), rows)}
            handle.write((b",\n" if number else b"\n") + orjson.dumps(task))
        handle.write(b"\n]\n")
    choices = "\n".join(f'    <Choice value="{word}"/>' for word in DECISION_WORDS)
    title = "True of the image?" if rows.positives else "False of the image?"
    write_text(out.with_suffix(".xml"), _CONFIG.format(title=title, choices=choices))
    return len(chosen)


def _data_of(row: dict[str, Any], rows: ReviewRows) -> dict[str, str]:
    shown = {"id": row["id"], "caption": row["caption"], "candidate": row["negative"], "type": row["type"], "image": ""}
    if row["image"]:
        image = load_browser_image(rows.images.locate(row["key"], row["image"]))
        shown["image"] = f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
    return shown


def parse_export(tasks: list[Any], place: str) -> Iterator[Decision]:
    """Yield the decisions in a Label Studio export, earliest first.

    Raises:
        InputError: a task of another project, or an annotation without a decision.
    """
    found: list[Decision] = []
    for number, task in enumerate(tasks):
        data = task.get("data") if isinstance(task, dict) else None
        if not isinstance(data, dict) or not data.get("id") or "candidate" not in data:
            raise InputError("not a task of a review", where=f"{place}: task {number}", fix=_FIX)
        kept = [each for each in task.get("annotations") or () if not each.get("was_cancelled")]
        found += [_decision_of(each, data, f"{place}: task {number}") for each in kept]
    return iter(sorted(found, key=lambda each: each.at))


def _decision_of(annotation: dict[str, Any], data: dict[str, str], place: str) -> Decision:
    given = {each.get("from_name"): each.get("value", {}) for each in annotation.get("result") or ()}
    word = "".join(given.get("decision", {}).get("choices", ())[:1])
    text = " ".join(given.get("fix", {}).get("text", ())).strip() if word == "fix" else ""
    if word not in DECISION_WORDS or (word == "fix" and not text):
        raise InputError(f"no decision, but {word!r} with the text {text!r}", where=place, fix=_FIX)
    by = annotation.get("completed_by")
    name = by.get("email") or by.get("id") if isinstance(by, dict) else by
    at = str(annotation.get("updated_at") or annotation.get("created_at") or "")
    return Decision(str(data["id"]), str(name), word, str(data["candidate"]), text, at)
