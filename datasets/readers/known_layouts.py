"""Column names of published datasets whose captions or images have no common name.

A layout is recognised by the columns of a row, all of which it has, and maps parts of a pair to columns, paths or
templates (`column_expressions.py`). What the user maps has precedence, and so has a column with the name of the part:
Hugging Face's copies of a dataset have its columns and an ``image``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

CONVERSATIONS, FIRST_ANSWER = (
    "conversations",
    "conversations.1.value",
)  # LLaVA's column, where many rows ask for a description
CAPTION_PARTS = frozenset({"caption", "captions"})


@dataclass(frozen=True, slots=True)
class KnownLayout:
    """Rows of a published dataset.

    Attributes:
        about: name of the dataset.
        columns: which a row has, among others.
        mapping: part of a pair to column.
        exact: whether a row has no other columns, since many other files have these.
    """

    about: str
    columns: frozenset[str]
    mapping: Mapping[str, str]
    exact: bool = False

    def matches(self, names: Collection[str]) -> bool:
        """Return whether rows with columns ``names`` have this layout."""
        return self.columns == frozenset(names) if self.exact else self.columns.issubset(names)


def _layout(about: str, columns: str, *, exact: bool = False, **mapping: str) -> KnownLayout:
    return KnownLayout(about, frozenset(columns.split()), mapping, exact)


KNOWN_LAYOUTS = (
    _layout(
        "Karpathy's splits of COCO",
        "filepath filename sentences cocoid",
        key="cocoid",
        image="{filepath}/{filename}",
        captions="sentences.raw",
    ),
    _layout(
        "Karpathy's splits of COCO, without ids",
        "filepath filename sentences",
        image="{filepath}/{filename}",
        captions="sentences.raw",
    ),
    _layout(
        "Karpathy's splits of Flickr8k and Flickr30k",
        "filename sentences imgid",
        key="imgid",
        image="filename",
        captions="sentences.raw",
    ),
    _layout("Flickr30k's results.csv", "image_name comment_number comment", image="image_name", caption="comment"),
    _layout("TextCaps", "caption_str image_id image_path", caption="caption_str", image="{image_id}.jpg"),
    _layout("DOCCI", "example_id image_file description", key="example_id", image="image_file"),
    _layout(
        "Crossmodal-3600",
        "image/key image/locale en",
        key="image/key",
        image="{image/key}.jpg",
        captions="en.caption",
    ),
    _layout("ImageInWords", "image/key image/url IIW", key="image/key", image="image/url", caption="IIW"),
    _layout("LAION-COCO", "top_caption all_captions", caption="top_caption", captions="all_captions"),
    _layout(
        "OpenAI's batch output",
        "custom_id response",
        key="custom_id",
        caption="response.body.choices.0.message.content",
    ),
    _layout("CapsFusion", "image_url laion_2b laion_coco capsfusion", caption="capsfusion"),
    _layout("JourneyDB", "img_path prompt Task2", image="img_path", caption="Task2.Caption"),
    _layout("GBC10M", "img_url short_caption detail_caption", image="img_url", caption="short_caption.text"),
    _layout("WIT", "caption_reference_description image_url", caption="caption_reference_description"),
    _layout("SBU captions", "image_urls user_ids captions", image="image_urls"),
    _layout("Recap-DataComp-1B", "re_caption org_caption", caption="re_caption"),
    _layout("PixelProse", "vlm_caption original_caption", caption="vlm_caption"),
    _layout("LLaVA-Pretrain's metadata", "blip_caption", caption="blip_caption"),
    _layout("Visual Genome", "id regions", exact=True, key="id", image="{id}.jpg", captions="regions.phrase"),
    _layout(
        "Label Studio's JSON",
        "annotations data predictions",
        image="data.image",
        captions="annotations.0.result.0.value.text",
    ),
    _layout("DCI", "short_caption extra_caption", caption="short_caption"),
)


def map_columns(names: Collection[str], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the user's mapping, completed by that of a known layout of rows with columns ``names``."""
    known = next((layout for layout in KNOWN_LAYOUTS if layout.matches(names)), None)
    if known is None:
        return dict(columns)
    settled = {*columns, *(part for part in known.mapping if part in names)}
    if CAPTION_PARTS & (columns.keys() | set(names)):
        settled |= CAPTION_PARTS
    used = set(columns.values())
    added = {part: column for part, column in known.mapping.items() if part not in settled and column not in used}
    return {**added, **columns}
