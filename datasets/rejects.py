"""Rejected rows: place, reason code, detail, and how to fix them.

A candidate that does not become a pair becomes a `Reject` with its place (``file:line``, ``shard.tar::sample``,
``file:row N``), the reason, a sentence of detail, and the beginning of the raw row. Builds store them as Parquet
(`REJECTS`), so that losses can be counted and inspected.

`REASONS` is the complete list of reasons, each with its fix; captions and rows are checked in `readers/normaliser.py`.
`RejectError` carries a reason from the code that finds a
flaw to the code that knows the place.

Limits: `excerpt` and `detail` are cut to `EXCERPT_LENGTH` code points, and code points that UTF-8 cannot encode (half of
a surrogate pair) are escaped.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames

EXCERPT_LENGTH = 400
BAD_BOX = "bad_box"  # the one reason of rejected boxes, whose row is a pair without boxes
NOT_SELECTED = "not_selected"
FLAGGED_CAPTION = "flagged_caption"
NO_CONTENT = "no_content"
COPY_OF_EVALUATION_IMAGE = "copy_of_evaluation_image"
DUPLICATE_CAPTION = "duplicate_caption"
NEAR_DUPLICATE_IMAGE = "near_duplicate_image"
RejectedPart = Literal["row", "caption", "boxes", "field"]
_WITHOUT = {"boxes": "read such rows without boxes", "field": "read such rows without the field"}


def _name_column_advice(option_names: OptionNames) -> str:
    if option_names.no_options:
        return "Name the caption column `caption`."
    how = option_names.column("caption", "NAME")
    return f"Name the column: {how}; `pairwright init` proposes one."


def _encoding_advice(option_names: OptionNames) -> str:
    if option_names.no_options:
        return "Write text and names as UTF-8; a CSV of Excel: `iconv -f cp1252 -t utf-8 OLD.csv > NEW.csv`."
    how = option_names.setting("encoding", "cp1252")
    return f"Write text and names as UTF-8, or name the encoding of a CSV, TSV or JSON Lines file: {how}."


REASONS = {
    "bad_box": "Give boxes as label and x1, y1, x2, y2 in 0-1, or in pixels with the image's width and height.",
    "bad_certificate": "Check this machine's clock and its certificates (SSL_CERT_FILE); else the site cannot be trusted.",
    "bad_image": "Replace the image file, or drop the row.",
    "bad_turns": "Alternate turns of human and assistant, each question with its answer.",
    "broken_csv": "Quote the field: double quotes around it, and double those inside it.",
    "broken_json": "Fix the JSON.",
    "broken_parquet": "Copy or write the file again.",
    "broken_tar": "Write the shard again.",
    "candidate_row": "Files of negatives are input of refine, audit, validate and generate triples; here, give the captions.",
    "caption_too_long": "Raise the limit (--max-caption; in a config, max_caption under input), or shorten the caption.",
    "common_concepts": "Not an error: other pairs have its concepts already. A higher --concept-cap keeps more.",
    "control_character": "Remove the character, or drop the row; the text may be of another encoding, or damaged.",
    "download_failed": "Download it again, or continue without it.",
    COPY_OF_EVALUATION_IMAGE: "Not an error: its image is a copy of an evaluation image, and so excluded from training.",
    "duplicate_caption": "Not an error: without HTML, addresses and hashtags (clean_captions), the caption is that of an earlier row of the image.",
    "duplicate_key": "Remove the repeated row, or a file that is a copy of another input; or give the rows unique ids.",
    "duplicate_member": "Keep one file of each kind per sample.",
    "empty_caption": "Fill in the caption, or drop the row.",
    "empty_negative": "Fill in the negative, or drop the row.",
    "empty_turn": "Fill in the turn, or drop the row.",
    "excluded": "Not an error: it is in the evaluation set, and so excluded from training.",
    "field_too_long": "Shorten the field, or close an open quote.",
    "flagged_caption": "Not an error: the dataset marks the caption as spam or as a ready-made answer.",
    "image_count_mismatch": "Write <image> in the questions once for each image of the row; or nowhere, for all images before the first question.",
    "image_token": "Remove <image> from the caption, or drop the row: trainers put this token where the image goes.",
    "image_in_table": "Name the table *.parquet with one image per row in its own column, or use texts only (verify_images: off under input, images: false under shards).",
    "image_outside_root": "Move the image below the image root, or set the image root to a folder above all images.",
    "image_too_large": "Resize the image first.",
    "low_clip_score": "Lower or omit --min-clip-score: image and caption are hardly related.",
    "missing_caption": "Put the caption in a .txt with the name of the image, or as `caption` in a .json; or let a model write it: `pairwright generate captions`, or `captions` in a build.",
    "missing_column": _name_column_advice(COMMAND_LINE),
    "missing_image": "Add the image, set the folder of the images (--image-root; in a config, image_root), or turn image checks off (verify_images) if only texts are needed.",
    "missing_sample": "Write the shard again; its table lists the sample.",
    "near_duplicate": "Not an error: an earlier caption is nearly the same. A higher --near-duplicates keeps more.",
    NEAR_DUPLICATE_IMAGE: "Not an error: its image is a copy of an earlier image of the pool.",
    "no_content": "Not an error: without HTML, addresses and hashtags (clean_captions), the caption says nothing.",
    "no_conversation": "Give rows with conversations, or name the columns: --columns question=NAME,answer=NAME (in a config, columns: {question: NAME, answer: NAME}).",
    "not_a_file": "Store the file itself in the tar, not a link or a device.",
    "not_a_url": "Give the pair an http or https URL, or read its local image without fetching.",
    "not_fetched": "Fetch the images first and read the local copies, or pack texts only (`images: false` under shards).",
    "not_finite": "Write a number, or omit the field; compute a vector again.",
    "not_found": "The image no longer exists: continue without it, or find another copy.",
    "not_selected": "Not an error if other rows are wanted: `where` selects rows by this column.",
    "not_retrieved": "Raise `k` or lower `min_score` under retrieve.",
    "not_unicode": "Remove the half surrogate pair (an escape such as \\ud800 without its other half).",
    "not_utf8": _encoding_advice(COMMAND_LINE),
    "other_language": "Not an error: the caption is in another language than --language names.",
    "opted_out": "The site opted out of training: omit the image.",
    "unsupported_image_format": "Recode it: --image-format jpg, png or webp (in a config, image_format under shards).",
    "unsafe_member_path": "Store the member under a relative name without '..'.",
    "ragged_row": "Give the row as many fields as the header.",
    "rare_concepts": "Lower --concept-floor: none of its noun phrases is frequent enough.",
    "blocked_address": "Only http and https to public addresses are fetched; --allow-loopback adds this machine.",
    "refused_by_server": "Identify yourself with --user-agent, ask the site, or continue without it.",
    "several_images": "Write a row for each image, or drop the row: a pair, and a row of some layouts, has one image; llava, trl and shards hold several.",
    "server_busy": "Fetch again later, or with more --retries or fewer --threads.",
    "image_too_small": "Lower --min-side, or find a larger copy.",
    "misplaced_image_token": "Write <image> in questions only, and only in rows with an image; in a row of one image once, before or after the first question.",
    "extreme_aspect_ratio": "Raise --max-aspect, or crop the image.",
    "timed_out": "Raise --timeout, or fetch again with more --retries.",
    "too_long": "Raise --max-words, or cut the caption.",
    "too_many_tokens": "Raise batches.max_tokens, or shorten the conversation.",
    "too_short": "Lower --min-words, or write a longer caption.",
    "truncated_tar": "Copy or write the shard again; its end is missing.",
    "unknown_host": "Check the host name and the name server, then fetch again.",
    "unknown_image": "Add the image to `images`, or drop the annotation.",
    "wrong_type": "Write the field with the expected type.",
    "zero_vector": "Compute the vector again, or continue without it.",
}


_ADVICE = {"missing_column": _name_column_advice, "not_utf8": _encoding_advice}  # that names an option

NEVER_FATAL_REASONS = frozenset({"caption_too_long", NOT_SELECTED, FLAGGED_CAPTION, NO_CONTENT, DUPLICATE_CAPTION})
"""Reasons of valid rows that exceed a limit of the run, or are not wanted: they never stop a run."""


def fix_for(reason: str, option_names: OptionNames) -> str:
    """Return the fix of a reason, with option names as the caller writes them."""
    advice = _ADVICE.get(reason)
    return advice(option_names) if advice else REASONS[reason]


@dataclass(frozen=True, slots=True)
class Reject:
    """A candidate that was not accepted.

    Attributes:
        place: file and line, row or member.
        reason: a key of `REASONS`.
        detail: what is wrong, in a sentence without a final stop.
        excerpt: beginning of the raw row, at most `EXCERPT_LENGTH` code points.
        source: name of the dataset that was read.
        part: of the row that is rejected: all of it, one of several captions, its boxes, or an optional field; not stored.
    """

    place: str
    reason: str
    detail: str
    excerpt: str = ""
    source: str = ""
    part: RejectedPart = field(default="row", compare=False)

    def error(self, option_names: OptionNames = COMMAND_LINE, *, whole_file: bool = False) -> InputError:
        """Return this rejection as the error that stops a run.

        Args:
            option_names: how messages name options.
            whole_file: whether all rows of the file have this flaw, so that skipping them would leave none.
        """
        fix = fix_for(self.reason, option_names)
        if not (option_names.no_options or whole_file):
            other = _WITHOUT.get(self.part, "skip such rows")
            fix += f" To {other}: {option_names.setting('on_error', 'skip')}."
        return InputError(f"{self.reason}: {self.detail}", where=self.place, fix=fix)


class RejectError(Exception):
    """A flaw without its place, which the caller adds."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


# Fields may be megabytes long or nested a thousand levels deep.
_SHORT_REPR = reprlib.Repr()
_SHORT_REPR.maxlevel, _SHORT_REPR.maxdict, _SHORT_REPR.maxlist, _SHORT_REPR.maxstring, _SHORT_REPR.maxother = (
    4,
    20,
    10,
    200,
    100,
)


def rank_reasons(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return reasons and their counts, the most frequent first."""
    return sorted(((reason, count) for reason, count in counts.items() if count), key=lambda one: (-one[1], one[0]))


def list_reasons(counts: Mapping[str, int], most: int | None = None) -> str:
    """Return ``too_long 1,200, identical 3``: the ``most`` frequent reasons, all by default."""
    return ", ".join(f"{reason} {count:,}" for reason, count in rank_reasons(counts)[:most])


def make_reject(place: str, reason: str, detail: str, raw: Any = "", *, part: RejectedPart = "row") -> Reject:
    """Return a `Reject` whose texts are short, on one line and encodable as UTF-8.

    Args:
        place: file and line, row or member.
        reason: a key of `REASONS`.
        detail: what is wrong.
        raw: the raw row: text, bytes, or a mapping of fields.
        part: of the row that is rejected.
    """
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
    excerpt = text if isinstance(text, str) else _SHORT_REPR.repr(text)
    short = _escape_surrogates(excerpt)[:EXCERPT_LENGTH]
    return Reject(_escape_surrogates(place), reason, _one_line(detail), short, part=part)


def _one_line(text: str) -> str:
    return _escape_surrogates(" ".join(text[:EXCERPT_LENGTH].split()))[:EXCERPT_LENGTH]


def _escape_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def is_utf8_encodable(text: str) -> bool:
    """Return whether ``text`` can be encoded as UTF-8: it has no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
