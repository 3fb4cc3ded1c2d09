"""Builders of pairs, texts and images for tests of shards, exports, card and report."""

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from pairwright.datasets.records import Annotation, Edit, Example, Origin, Pair, Turn, annotation_id, pair_key
from pairwright.datasets.shards.samples import Sample

RULES = Origin("rules-negatives", 1, seed=7)
TEMPLATES = Origin("templates", 2, seed=7, prompt="brief.yaml:abc")


def picture(colour: str = "red", image_format: str = "JPEG", size: tuple[int, int] = (32, 24)) -> bytes:
    """Return the bytes of a plain picture."""
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, image_format)
    return out.getvalue()


def pair(number: int, caption: str = "", image: str = "") -> Pair:
    """Return pair ``number``; without an image unless one is named."""
    caption = caption or f"a red circle above {number} squares"
    return Pair(
        key=pair_key("test", str(number), caption),
        caption=caption,
        source_id=f"{number:012d}",
        image=image,
        captions=("another wording",) if number % 2 else (),
        width=32 if image else 0,
        height=24 if image else 0,
        source="test",
        license="CC BY 4.0",
    )


def negative(of: Pair, text: str = "", target: str = "attribute", *, positive_id: str = "") -> Annotation:
    """Return a kept hard negative that replaces the first word "red" by "blue"."""
    text = text or of.caption.replace("red", "blue", 1)
    at = max(of.caption.find("red"), 0)
    return Annotation(
        id=annotation_id(of.key, "hard_negative", RULES, "0", text),
        key=of.key,
        kind="hard_negative",
        origin=RULES,
        form="replace",
        target=target,
        text=text,
        source_text=of.caption,
        edits=(Edit("red", "blue", (at, at + 3), (at, at + 4)),),
        positive_id=positive_id,
        scores={"grammar": 1.0, "plausibility": 0.25} if target == "attribute" else {},
    )


def positive(of: Pair) -> Annotation:
    """Return a kept hard positive."""
    text = of.caption.replace("circle", "disc", 1)
    return Annotation(
        id=annotation_id(of.key, "hard_positive", RULES, "0", text),
        key=of.key,
        kind="hard_positive",
        origin=RULES,
        form="replace",
        target="object",
        text=text,
        source_text=of.caption,
    )


def conversation(of: Pair, *texts: str, kind: str = "conversation") -> Annotation:
    """Return a kept conversation; ``texts`` alternate between human and assistant."""
    texts = texts or ("What color is the circle?", "The circle is red.", "Is there a star?", "No, there is no star.")
    turns = tuple(Turn("assistant" if number % 2 else "human", text) for number, text in enumerate(texts))
    return Annotation(
        id=annotation_id(of.key, kind, TEMPLATES, "0", "".join(texts)),
        key=of.key,
        kind=kind,
        origin=TEMPLATES,
        turns=turns,
    )


def rationale(of: Pair) -> Example:
    """Return a kept rationale row of image-text matching."""
    return Example(
        id=annotation_id(of.key, "itm", RULES, "0", "r"),
        task="itm",
        input="Does it fit?",
        origin=RULES,
        label="no",
        rationale="The circle is red, not blue. So the answer is no.",
        key=of.key,
    )


def sample(number: int, *, image: bytes | None = None, ext: str = "jpg") -> Sample:
    """Return sample ``number``: every second one has no annotations at all."""
    of = pair(number, image=f"/pool/{number}.{ext}" if image else "")
    texts = () if number % 2 else (negative(of), positive(of), conversation(of))
    return Sample(of, texts, () if number % 2 else (rationale(of),), image, ext if image else "")


def samples(count: int) -> list[Sample]:
    """Return ``count`` samples with pictures."""
    return [sample(number, image=picture(("red", "blue", "green")[number % 3])) for number in range(count)]


def image_files(folder: Path, count: int) -> tuple[list[Pair], list[Annotation]]:
    """Write ``count`` pictures into ``folder`` and return their pairs and annotations."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs: list[Pair] = []
    annotations: list[Annotation] = []
    for number in range(count):
        file = folder / f"{number:012d}.jpg"
        file.write_bytes(picture(("red", "blue", "green")[number % 3]))
        one = pair(number, image=str(file))
        pairs.append(one)
        annotations += [
            negative(one),
            negative(one, f"a red star {number}", "object"),
            positive(one),
            conversation(one),
        ]
    return pairs, annotations


def tar_names(path: Path) -> list[str]:
    """Return the member names of a tar, as Python's reader sees them."""
    with tarfile.open(path) as tar:
        return tar.getnames()


def texts_of(annotations: Sequence[Annotation]) -> list[tuple[object, ...]]:
    """Return what a shard keeps of annotations, to compare."""
    return [(a.kind, a.form, a.target, a.text, a.edits, a.turns, a.scores) for a in annotations]
