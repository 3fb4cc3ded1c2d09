"""What a reader could not take: a rejected row, its reason in one countable word, and how to mend it.

A candidate that does not become a pair becomes a `Reject`. It tells the place (``file:line``,
``shard.tar::sample``, ``file:row N``), the reason, a sentence of detail, and how the raw row began. Builds
keep them as Parquet (`REJECTS`), so that what was lost can be counted and looked at.

`REASONS` is the closed list of reasons, each with what to do about it. `Refused` carries a reason from
the code that finds a flaw to the code that knows the place.

Limits: `excerpt` and `detail` are cut to `EXCERPT_LENGTH` code points, and what no UTF-8 file can hold
(half of a surrogate pair) is written as an escape.
"""

import reprlib
from dataclasses import dataclass, field
from typing import Any

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames

EXCERPT_LENGTH = 400


def _name_column_advice(wording: OptionNames) -> str:
    if wording.bare:
        return "Call the column of the captions `caption`."
    return f"Name the column: {wording.column('caption', 'NAME')}."


REASONS = {
    "bad_box": "Give boxes as label and x1, y1, x2, y2 in 0-1, or in pixels with the image's width and height.",
    "bad_certificate": "Check this machine's clock and its certificates (SSL_CERT_FILE); else the site cannot be trusted.",
    "bad_image": "Replace the image file, or drop the row.",
    "bad_turns": "Let the turns alternate from human to assistant, each question with its answer.",
    "broken_csv": "Quote the field as CSV asks: quotes around it, quotes inside it doubled.",
    "broken_json": "Correct the JSON.",
    "broken_parquet": "Copy or write the file again.",
    "broken_tar": "Write the shard again.",
    "candidate_row": "A file of negatives is read by refine, audit, validate and generate triples; here, give the captions themselves.",
    "caption_too_long": "Raise the limit (--max-caption; in a config, max_caption under input), or shorten the caption.",
    "common_concepts": "Nothing is wrong with it: other pairs hold its concepts already. A higher --concept-cap keeps more.",
    "download_failed": "Download it again, or go on without it.",
    "duplicate_key": "Remove the repeated row, or give rows ids of their own.",
    "duplicate_member": "Give every sample one file of each kind.",
    "empty_caption": "Fill in the caption, or drop the row.",
    "empty_negative": "Fill in the negative, or drop the row.",
    "empty_turn": "Fill in the turn, or drop the row.",
    "excluded": "Nothing is wrong with it: the evaluation set holds it, so it is kept out of training.",
    "field_too_long": "Shorten the field; an opening quote that is never closed looks like this too.",
    "image_token": "Take <image> out of the caption, or drop the row: trainers put this mark where the image is to be.",
    "image_in_table": "Let the table's name end in .parquet, and give each row one picture in a column of its own; or go on with texts alone (verify_images: off under input, images: false under shards).",
    "image_outside_root": "Put the image below the image root, or name a folder above all images as the image root.",
    "image_too_large": "Resize the image first.",
    "low_clip_score": "Lower --min-clip-score, or leave it out: image and caption seem to have little to do with each other.",
    "missing_caption": "Put the caption in a .txt beside the image, or `caption` in a .json.",
    "missing_column": _name_column_advice(COMMAND_LINE),
    "missing_image": "Put the image there or set the image root; or switch image checks off when only texts are needed.",
    "missing_sample": "Write the shard again; its table says that the sample is there.",
    "near_duplicate": "Nothing is wrong with it: an earlier caption says nearly the same. A higher --near-duplicates keeps more.",
    "no_conversation": "Give rows with conversations, or name the columns of question and answer: columns: {question: NAME, answer: NAME}.",
    "not_a_file": "Store the file itself in the tar, not a link or a device.",
    "not_a_url": "Give the pair an http or https URL, or read its local image as it is.",
    "not_fetched": "Fetch the images first and read the local copies, or pack texts alone (`images: false` under shards).",
    "not_finite": "Write a number, or leave the field out; a vector has to be computed again.",
    "not_found": "The image is gone: go on without it, or look for it elsewhere.",
    "not_retrieved": "Ask for more: a larger `k` or a lower `min_score` under retrieve.",
    "not_unicode": "Remove the half surrogate pair (an escape such as \\ud800 without its other half).",
    "not_utf8": "Write text and names as UTF-8.",
    "opted_out": "Its site asks not to use it for training: leave it out.",
    "unsupported_image_format": "Set image_format to jpg, png or webp.",
    "unsafe_member_path": "Store the member under a relative name without '..'.",
    "ragged_row": "Give the row as many fields as the header.",
    "rare_concepts": "Lower --concept-floor: none of its noun phrases is frequent enough.",
    "blocked_address": "Only http and https to public addresses are fetched; --allow-loopback adds this machine.",
    "refused_by_server": "Say who you are with --user-agent, ask the site, or go on without it.",
    "server_busy": "Fetch again later, or with more --retries or fewer --threads.",
    "image_too_small": "Lower --min-side, or find a larger copy.",
    "misplaced_image_token": "Put <image> once, before or after the first question, and only where the row names an image.",
    "extreme_aspect_ratio": "Raise --max-aspect, or crop the image.",
    "timed_out": "Raise --timeout, or fetch again with more --retries.",
    "too_long": "Raise --max-words, or cut the caption.",
    "too_short": "Lower --min-words, or write a longer caption.",
    "truncated_tar": "Copy or write the shard again; its end is missing.",
    "unknown_host": "The host is gone, or the name server is out: check it, then fetch again.",
    "unknown_image": "Add the image to `images`, or drop the annotation.",
    "wrong_type": "Write the field as its type asks.",
    "zero_vector": "Compute the vector again, or go on without it.",
}


NEVER_FATAL_REASONS = frozenset({"caption_too_long"})
"""Reasons of what was read well and exceeds a limit of the run: it never stops a run."""


def fix_for(reason: str, wording: OptionNames) -> str:
    """Return what `REASONS` says to do, in the words of one who asks."""
    return _name_column_advice(wording) if reason == "missing_column" else REASONS[reason]


@dataclass(frozen=True, slots=True)
class Reject:
    """A candidate that was not taken.

    Attributes:
        place: file and line, row or member.
        reason: one word of `REASONS`.
        detail: what is wrong, in a sentence without a final stop.
        excerpt: how the raw row begins, at most `EXCERPT_LENGTH` code points.
        source: name of the dataset that was read.
        is_single_caption: whether it is one caption of a row that has several, and not the row; at rest only the place tells.
    """

    place: str
    reason: str
    detail: str
    excerpt: str = ""
    source: str = ""
    is_single_caption: bool = field(default=False, compare=False)

    def error(self, wording: OptionNames = COMMAND_LINE, *, whole_file: bool = False) -> InputError:
        """Return this rejection as the error that stops a run.

        Args:
            wording: of whoever asked for the row.
            whole_file: the whole file has this flaw, so that setting rows aside would leave none.
        """
        fix = fix_for(self.reason, wording)
        if not (wording.bare or whole_file):
            fix += f" To set such rows aside: {wording.setting('on_error', 'skip')}."
        return InputError(f"{self.reason}: {self.detail}", where=self.place, fix=fix)


class RejectError(Exception):
    """A flaw, on its way to whoever knows the place."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


# Fields may be megabytes long or nested a thousand deep; an excerpt needs neither.
_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxlevel, _SHORT_REPR.maxdict, _SHORT_REPR.maxlist, _SHORT_REPR.maxstring, _SHORT_REPR.maxother = (
    4,
    20,
    10,
    200,
    100,
)


def make_reject(place: str, reason: str, detail: str, raw: Any = "", *, is_single_caption: bool = False) -> Reject:
    """Return a `Reject` whose texts are short, on one line and storable as UTF-8.

    Args:
        place: file and line, row or member.
        reason: one word of `REASONS`.
        detail: what is wrong.
        raw: the row as it came: text, bytes, or a mapping of fields.
        is_single_caption: whether it is one caption of a row that has several.
    """
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
    excerpt = text if isinstance(text, str) else _SHORT_REPR.repr(text)
    short = _escape_surrogates(excerpt)[:EXCERPT_LENGTH]
    return Reject(_escape_surrogates(place), reason, _one_line(detail), short, is_single_caption=is_single_caption)


def _one_line(text: str) -> str:
    return _escape_surrogates(" ".join(text[:EXCERPT_LENGTH].split()))[:EXCERPT_LENGTH]


def _escape_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def is_utf8_encodable(text: str) -> bool:
    """Say whether ``text`` can be written as UTF-8: it holds no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
