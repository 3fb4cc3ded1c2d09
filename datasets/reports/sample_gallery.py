"""Samples in the report: image, caption, texts with edits marked, conversations.

The shown samples are a function of seed and key, samples with texts first. All text is escaped.
"""

import base64
import heapq
from collections.abc import Iterable, Sequence
from html import escape

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.recoding import Recoding, recode_image
from pairwright.datasets.records import Annotation, Edit
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.content_counts import annotation_type
from pairwright.datasets.shards.samples import Sample

VERSION = 1
_THUMBNAIL = Recoding(format="jpg", longest_side=320, quality=80)
_MAX_TURNS = 6


def choose_samples(samples: Iterable[Sample], count: int, seed: int = 0) -> list[Sample]:
    """Return ``count`` samples drawn by seed and key, those with the most kinds of text first."""

    def rank(sample: Sample) -> tuple[int, float]:
        kinds = {a.kind for a in sample.annotations}
        return (-len(kinds), make_rng(seed, 0, "gallery", VERSION, sample.pair.key).random())

    return heapq.nsmallest(count, samples, key=rank)


def render_gallery(samples: Sequence[Sample]) -> str:
    """Return the cards of ``samples`` as HTML."""
    return f'<div class="gallery">{"".join(map(_card, samples))}</div>'


def _card(sample: Sample) -> str:
    texts = {"hard_negative": "", "hard_positive": "", "": ""}
    for annotation in sample.annotations:
        if annotation.kind in texts:
            texts[annotation.kind] += _text(annotation)
        elif annotation.turns:
            texts[""] += _conversation(annotation)
    parts = [
        f"<h4>{title}</h4>{body}"
        for title, body in (("Hard negatives", texts["hard_negative"]), ("Hard positives", texts["hard_positive"]))
        if body
    ]
    return (
        f'<article class="sample">{_picture(sample)}<div class="words"><p class="caption">{escape(sample.pair.caption)}</p>'
        f'{"".join(parts)}{texts[""]}<p class="key">{escape(sample.pair.key)}</p></div></article>'
    )


def _picture(sample: Sample) -> str:
    if sample.image is None:
        return ""
    try:
        data, _ = recode_image(sample.image, _THUMBNAIL, sample.pair.image)
    except InputError as error:
        return f'<p class="note">{escape(error.what)}</p>'
    inline = base64.b64encode(data).decode()
    return f'<img src="data:image/jpeg;base64,{inline}" alt="{escape(sample.pair.caption)}">'


def _text(annotation: Annotation) -> str:
    return (
        f'<p class="text"><span class="type">{escape(annotation_type(annotation))}</span> '
        f"{mark_edits(annotation.text, annotation.edits)}</p>"
    )


def mark_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return ``text`` as HTML with each edit as old (``<del>``) and new text (``<ins>``)."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: edit.after_span):
        start, end = edit.after_span
        if not at <= start <= end <= len(text):
            return escape(text)  # spans of another text: show it without marks
        removed = f"<del>{escape(edit.before)}</del> " if edit.before else ""
        inserted = f"<ins>{escape(text[start:end])}</ins>" if end > start else ""
        parts += [escape(text[at:start]), removed, inserted]
        at = end
    return "".join(parts) + escape(text[at:])


def _conversation(annotation: Annotation) -> str:
    shown = annotation.turns[:_MAX_TURNS]
    turns = "".join(f'<p class="turn {turn.role}">{escape(turn.text)}</p>' for turn in shown)
    left = len(annotation.turns) - len(shown)
    more = f'<p class="note">and {left} turns more</p>' if left else ""
    return f"<h4>{escape(annotation.kind.capitalize())}</h4>{turns}{more}"
