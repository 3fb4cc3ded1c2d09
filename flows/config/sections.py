"""Sections of a build config: the settings of each stage with their defaults and meanings."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import MAX_EDITABLE_CAPTION
from pairwright.datasets.remote.object_store import folder_url
from pairwright.datasets.suggestions import find_duplicates, suggest_alternatives
from pairwright.filters.refinement.defaults import DEFAULT_MIN_KEEP, DEFAULT_TARGET
from pairwright.flows.config.base import Section
from pairwright.generators.conversations.question_templates import (
    CHOICE_FORMAT,
    MAX_TURNS,
    SHORT_FORMAT,
    PromptPlace,
    PromptTurns,
)
from pairwright.generators.edit_types import BENCHMARK_TYPES, POSITIVE_TYPES, NegativeType, PositiveType
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.llm.group_size import CAPTIONS_PER_REQUEST, MAX_CANDIDATES
from pairwright.indexes.fetching.options import FetchOptions
from pairwright.indexes.hnsw.options import IndexOptions

PRECOMPUTED = "precomputed"  # instead of an encoder: vectors that the input has
ConversationType = Literal["conversation", "brief", "short", "choice", "detail", "reasoning"]


Score = Annotated[float, Field(ge=-1, le=1)]
_AtLeast0 = Annotated[int, Field(ge=0)]


def _as_written(value: object) -> str:
    """Return a YAML value as the text that a row has: ``true``, ``3``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class InputSection(Section):
    """The source of the pairs and how they are read."""

    path: str = Field(min_length=1, description="file, folder, or brace pattern such as data/{00000..00009}.tar")
    format: str = Field("", description="empty: detected from the path")
    columns: dict[str, str] = Field({}, description="field to column name, such as key: image_id")
    where: dict[str, tuple[str, ...]] = Field(
        {},
        description="column to the values of rows that are read, such as split: [train, restval]; others are rejected",
    )
    explode: bool = Field(default=False, description="one pair per caption instead of one per image")
    image_root: str = Field(
        "",
        description="folder of relative image paths; images outside of it are not read. Empty: the folder of the input, without this limit",
    )
    instances: str = Field("", description="COCO instances JSON with boxes")
    source: str = Field("", description="name of the dataset; empty: name of the file")
    verify_images: Literal["off", "header", "full"] = Field(
        "header", description="check of images when they are read; off if only texts are needed"
    )
    on_error: Literal["stop", "skip"] = Field("stop", description="how broken rows are handled")
    max_caption: int = Field(
        MAX_EDITABLE_CAPTION, ge=1, description="characters of a caption; longer ones are rejected as caption_too_long"
    )

    clean_captions: bool = Field(
        default=False,
        description="remove HTML, addresses, mentions, hashtags, emoji and notes of agencies ('stock photo') from captions; "
        "those of which nothing is left are rejected as no_content",
    )

    encoding: str = Field(
        "", description="of rows of CSV, TSV and JSON Lines that are not UTF-8, such as cp1252; empty: they are broken"
    )

    @field_validator("where", mode="before")
    @classmethod
    def _where_has_lists(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {name: list(map(_as_written, one if isinstance(one, list) else [one])) for name, one in value.items()}

    @field_validator("verify_images", mode="before")
    @classmethod
    def _yaml_reads_off_as_false(cls, value: object) -> object:
        return "off" if value is False else value


class IndexSection(Section):
    """The FAISS HNSW index over captions, images, or both; `retrieve` builds one without this section too."""

    removed_keys: ClassVar[Mapping[str, str]] = {"near": "Use `near_duplicates`."}

    encoder: str = Field(
        "lexical", description="lexical, minilm, clip, precomputed, or the name of an installed encoder"
    )
    model: str = Field(
        "", description="checkpoint of minilm or clip, by name or folder; for precomputed: the encoder of its queries"
    )
    device: str = Field("", description="cpu, cuda, ...; empty: the best available")
    modalities: tuple[Literal["text", "image"], ...] = Field(("text",), min_length=1, description="what is indexed")
    m: int = Field(IndexOptions.m, ge=2, le=128, description="links per vector")
    ef_construction: int = Field(IndexOptions.ef_construction, ge=8, le=2000)
    recall: float = Field(IndexOptions.recall, gt=0, le=1, description="recall@10 that efSearch is tuned to")
    storage: Literal["auto", "flat", "fp16", "int8", "ivfpq"] = IndexOptions.storage
    memory: float = Field(
        IndexOptions.memory_gib, gt=0, description="GiB of memory that `auto` chooses the storage for"
    )
    near_duplicates: float = Field(
        IndexOptions.near,
        gt=0,
        le=1,
        description="cosine from which a vector counts as a copy of another (1 = equal vectors only)",
    )
    shards: int = Field(
        0,
        ge=0,
        description="parts of the index, built in parallel by `workers`; memory is that of the parts being built; "
        "0: the square root of pairs / 4,096",
    )

    @field_validator("encoder")
    @classmethod
    def _encoder_exists(cls, value: str) -> str:
        from pairwright.indexes.encoders.registry import ENCODERS

        known = [*ENCODERS.names(), PRECOMPUTED]
        if value not in known:
            raise ValueError(f"no encoder named {value}. {suggest_alternatives([value], known)}")
        return value


class RetrieveSection(Section):
    """Selection of the pairs that queries retrieve."""

    queries: str = Field(description="a .txt with one query per line, a JSON of classes and templates, or pairs")
    query_vectors: str = Field("", description="a .npy with one vector per query, for an index without an encoder")
    k: int = Field(50, ge=1, description="hits per query or concept")
    per: Literal["query", "concept"] = "query"
    mode: Literal["t2t", "t2i", "both"] = Field("t2t", description="search of captions (t2t), images (t2i), or both")
    cap: int | None = Field(None, ge=1, description="maximum of distinct pairs per concept")
    min_score: Score | dict[Literal["t2t", "t2i"], Score] = Field(
        -1.0, description="minimal cosine of a hit; for both modes {t2t: 0.5, t2i: 0.2}"
    )
    floor: Score | dict[Literal["t2t", "t2i"], Score] | None = Field(
        None, description="cosine to the name of a concept from which a pair covers it; empty: default of the encoder"
    )
    recall: float = Field(0.95, gt=0, le=1, description="recall@k that efSearch is tuned to on the queries")
    exclude: tuple[str, ...] = Field((), description="evaluation data to exclude: pairs, images or lists")
    exclude_images: tuple[str, ...] = Field(
        (), description="folders of evaluation images whose copies to exclude: resized, re-encoded, slightly cropped"
    )

    @model_validator(mode="after")
    def _scores_of_two_modes_do_not_compare(self) -> "RetrieveSection":
        for name, value in (("min_score", self.min_score), ("floor", self.floor)):
            if self.mode == "both" and isinstance(value, float) and value > -1:
                raise ValueError(
                    f"{name}: scores of t2t and t2i are not comparable; set both, such as {{t2t: 0.5, t2i: 0.2}}"
                )
        return self


class FetchSection(Section):
    """Downloads of images that are URLs, with img2dataset."""

    image_size: int = Field(FetchOptions.image_size, ge=16, description="pixels for resize_mode")
    resize_mode: Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "no"] = FetchOptions.resize_mode
    only_if_bigger: bool = Field(default=FetchOptions.only_if_bigger, description="keep the size of smaller images")
    image_format: Literal["jpg", "png", "webp"] = FetchOptions.image_format
    quality: int = Field(
        FetchOptions.quality, ge=-1, le=100, description="-1: 95 for jpg, 90 for webp, 6 (compression) for png"
    )
    timeout: float = Field(FetchOptions.timeout, gt=0, description="seconds per network operation")
    threads: int = Field(FetchOptions.threads, ge=1, description="parallel downloads per process")
    processes: int = Field(FetchOptions.processes, ge=0, description="maximum (0 = one per core)")
    retries: int = Field(
        FetchOptions.retries, ge=0, description="retries after temporary errors: timeouts, busy servers"
    )
    ignore_opt_outs: bool = Field(default=False, description="also fetch images that a site opts out of AI training")
    allow_loopback: bool = Field(default=False, description="also fetch from localhost")
    proxy: str = Field("", description="http://host:port; empty: proxy of the environment")
    user_agent: str = Field("", description="User-Agent header; empty: pairwright")
    min_success: float = Field(0.0, ge=0, le=1, description="share of images that must arrive, or the build stops")


class CaptionsSection(Section):
    """Captions of images that have none, by a model that sees them; each becomes a pair."""

    forms: tuple[Literal["short", "long", "tags"], ...] = Field(("short",), min_length=1)
    per_image: int = Field(1, ge=1, description="captions per image and form")
    max_hallucination: float = Field(
        1.0, ge=0, le=1, description="share of things without support in the boxes of the image; above: rejected"
    )


_SEE_IMAGE = Field(default=False, description="llm: send the image too; pairs without a readable one are rejected")


class GeneratorMethodSection(Section):
    """Base class of sections with a generator by rules or by a model; the other keys are its options."""

    method: Literal["rules", "llm"] = Field("rules", description="rules: without a model; llm: with the model of `llm`")

    def options(self) -> dict[str, Any]:
        """Return the options of the generator."""
        return self.model_dump(exclude={"method"})


def _check_types(types: tuple[str, ...], quota: int | Mapping[Any, int]) -> None:
    """Refuse a duplicate type, and a quota of a type that is not generated."""
    if twice := find_duplicates(types):
        raise ValueError(f"types: duplicate {twice[0]}")
    if isinstance(quota, Mapping) and (unasked := set(quota) - set(types)):
        raise ValueError(f"quota: {min(unasked)} is not among the types")


_OF_RULES = ("floor", "vocabulary")
_OF_MODEL = ("variant", "candidates", "captions_per_request", "see_image")


class NegativesSection(GeneratorMethodSection):
    """Hard negatives, by rules or by a model."""

    removed_keys: ClassVar[Mapping[str, str]] = {
        "last_resorts": "Remove it: no relation is negated now. Texts with a negation are the type `negation`."
    }

    types: tuple[NegativeType, ...] = Field(
        BENCHMARK_TYPES,
        min_length=1,
        description="by rules also negation, which needs a vocabulary, and shuffle, for training only; "
        "with `refine` and without `both_sides` by default no additions, which their length tells",
    )
    per_type: int = Field(1, ge=1, description="negatives per type and caption")
    floor: float = Field(
        DEFAULT_FLOOR,
        gt=0,
        le=1,
        description="rules: least probability of a replacement in its context; higher reads better, lower gives more",
    )
    vocabulary: tuple[str, ...] = Field(
        (), description="negation: labels that the source annotates exhaustively; coco: COCO's 80"
    )
    both_sides: bool = Field(
        default=False,
        description="add a rewritten, true caption to each negative except shuffle, to compare it with",
    )
    variant: Literal["one-call", "workflow"] = Field(
        "one-call", description="llm: all types in one answer, or SugarCrepe's find, propose and compose"
    )
    candidates: int = Field(
        1,
        ge=1,
        le=MAX_CANDIDATES,
        description="llm: negatives of each type in one answer, for `pairwright refine --fix choose`",
    )
    captions_per_request: int = Field(CAPTIONS_PER_REQUEST, ge=1, description="llm: captions in one request, at most")
    see_image: bool = _SEE_IMAGE
    quota: _AtLeast0 | dict[NegativeType, _AtLeast0] = Field(
        {}, description="maximum of kept negatives of each type, or of some, such as {replace-object: 5000}"
    )
    max_word_share: float = Field(
        1.0,
        ge=0,
        le=1,
        description="maximum share of a type's negatives with the same inserted word; one is always allowed",
    )

    @model_validator(mode="after")
    def _fits_its_method(self) -> "NegativesSection":
        if self.method == "llm":
            changed = [name for name in _OF_RULES if getattr(self, name) != type(self).model_fields[name].default]
            if wrong := [*changed, *(kind for kind in ("negation", "shuffle") if kind in self.types)]:
                raise ValueError(f"{wrong[0]} requires method: rules")
            if self.variant == "workflow" and (self.candidates > 1 or self.both_sides or self.see_image):
                raise ValueError("candidates, both_sides and see_image require variant: one-call")
            if self.see_image and self.both_sides:
                raise ValueError("both_sides and see_image are mutually exclusive")
        elif self.see_image:
            raise ValueError("see_image requires method: llm")
        if ("negation" in self.types) != bool(self.vocabulary):
            raise ValueError("negation and vocabulary require each other; coco names COCO's 80 labels")
        if self.both_sides and self.types == ("shuffle",):
            raise ValueError("both_sides: shuffle has no positives; add another type, or remove both_sides")
        return self

    @model_validator(mode="after")
    def _names_each_type_once(self) -> "NegativesSection":
        _check_types(self.types, self.quota)
        return self

    def options(self) -> dict[str, Any]:
        """Return the options of the generator."""
        own = _OF_MODEL if self.method == "llm" else _OF_RULES
        return {name: getattr(self, name) for name in ("types", "per_type", "both_sides", *own)}


class PositivesSection(GeneratorMethodSection):
    """Hard positives, by rules or by a model."""

    types: tuple[PositiveType, ...] = Field(POSITIVE_TYPES, min_length=1)
    captions_per_request: int = Field(CAPTIONS_PER_REQUEST, ge=1, description="llm: captions in one request, at most")
    see_image: bool = _SEE_IMAGE
    quota: _AtLeast0 | dict[PositiveType, _AtLeast0] = Field(
        {}, description="maximum of kept positives of each type, or of some"
    )
    max_word_share: float = Field(
        1.0,
        ge=0,
        le=1,
        description="maximum share of a type's positives with the same inserted word; one is always allowed",
    )

    @model_validator(mode="after")
    def _sees_with_a_model(self) -> "PositivesSection":
        if self.see_image and self.method == "rules":
            raise ValueError("see_image requires method: llm")
        return self

    @model_validator(mode="after")
    def _names_each_type_once(self) -> "PositivesSection":
        _check_types(self.types, self.quota)
        return self

    def options(self) -> dict[str, Any]:
        """Return the options of the generator."""
        own = ("captions_per_request", "see_image") if self.method == "llm" else ()
        return {"types": self.types, **{name: getattr(self, name) for name in own}}


_OF_TEMPLATES = ("vocabulary", "max_turns", "short_prompt", "choice_prompt", "prompt_place", "prompt_turns")


class ConversationsSection(Section):
    """Conversations from captions and boxes, by templates or by a model."""

    method: Literal["templates", "llm"] = Field(
        "templates", description="templates: turns that captions and boxes prove; llm: with the model of `llm`"
    )
    types: tuple[ConversationType, ...] = Field(
        (),
        description="templates: conversation, brief (both if empty), short, choice; llm: conversation, detail, reasoning "
        "(all if empty)",
    )
    vocabulary: tuple[str, ...] = Field(
        (), description="labels that the source annotates exhaustively, required for the answer no; coco: COCO's 80"
    )
    max_turns: int = Field(MAX_TURNS, ge=0, description="templates: turns per conversation (0 = unlimited)")
    short_prompt: str = Field(SHORT_FORMAT, description="request for a word or phrase, in type short; off: none")
    choice_prompt: str = Field(CHOICE_FORMAT, description="request for the letter, in type choice; off: none")
    prompt_place: PromptPlace = Field(
        "below", description="place of these prompts: below question and options, behind the question, or above it"
    )
    prompt_turns: PromptTurns = Field("each", description="turns with these prompts: each, or the first only")
    ratios: dict[ConversationType, float] = Field(
        {},
        description="llm: one type per pair, sampled in these proportions, such as {conversation: 58, detail: 23, ...}",
    )
    counts: dict[ConversationType, Annotated[int, Field(ge=0)]] = Field(
        {},
        description="number of each type, such as {conversation: 58000, ...}; only these types if types is empty. "
        "templates: number of conversations to keep; llm: number of pairs to request",
    )
    see_image: bool = _SEE_IMAGE

    @field_validator("short_prompt", "choice_prompt", mode="before")
    @classmethod
    def _yaml_reads_off_as_false(cls, value: object) -> object:
        return "" if value in (False, "off") else value

    @model_validator(mode="after")
    def _fits_its_method(self) -> "ConversationsSection":
        known = (
            ("conversation", "detail", "reasoning")
            if self.method == "llm"
            else ("conversation", "brief", "short", "choice")
        )
        if wrong := [kind for kind in (*self.types, *self.counts) if kind not in known]:
            raise ValueError(
                f"{wrong[0]} is not available with method {self.method}. {suggest_alternatives(wrong[:1], known)}"
            )
        if self.method == "templates" and (self.ratios or self.see_image):
            raise ValueError("ratios and see_image require method: llm")
        changed = [name for name in _OF_TEMPLATES if getattr(self, name) != type(self).model_fields[name].default]
        if self.method == "llm" and changed:
            raise ValueError(f"{changed[0]} requires method: templates")
        _check_types(self.types, {})
        if self.types and (unasked := set(self.counts) - set(self.types)):
            raise ValueError(f"counts: {min(unasked)} is not among the types")
        if self.counts and self.ratios:
            raise ValueError("counts and ratios are mutually exclusive")
        return self

    def options(self) -> dict[str, Any]:
        """Return the options of the generator."""
        asked = self.types or tuple(self.counts)
        types = {"types": asked} if asked else {}
        if self.method == "llm":
            ratios = {str(kind): part for kind, part in self.ratios.items()}
            counts = {str(kind): count for kind, count in self.counts.items()}
            return {**types, "ratios": ratios, "counts": counts, "see_image": self.see_image}
        return {**types, **{name: getattr(self, name) for name in _OF_TEMPLATES}}


class RationalesSection(Section):
    """Rationales by a model: why hard negatives do not match their image and true captions do."""

    label_given: bool = Field(default=False, description="give the model the right answer to explain")
    samples: int = Field(1, ge=1, le=100, description="answers per row, whose labels vote")
    wrong_labels: Literal["apart", "keep"] = Field(
        "apart", description="rows with a wrong label: reject them, or keep them with the right label"
    )
    validation: float = Field(0.1, ge=0, le=1, description="share of the rows for validation")
    see_image: bool = _SEE_IMAGE


class GeneratorSection(Section):
    """A third-party generator, by the name of its entry point."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    options: dict[str, Any] = Field({})


class RefineSection(Section):
    """Adversarial refinement: rejects negatives that a text-only model can detect."""

    method: Literal["reference", "general"] = Field(
        "reference",
        description="reference: Algorithm 1 of SugarCrepe, over two text-only scorers;"
        " general: all text-only attacks, for thousands of negatives",
    )
    cells: int | None = Field(
        None,
        ge=2,
        le=1000,
        description="reference: K of the K x K grid over the two gaps; empty: the square root of the rows of a type,"
        " 10 to 100",
    )
    target: float = Field(DEFAULT_TARGET, ge=0.505, le=1.0, description="general: maximal accuracy of an attack")
    min_keep: float = Field(DEFAULT_MIN_KEEP, ge=0.0, le=1.0, description="general: minimal share of negatives to keep")
    by_type: bool = Field(default=True, description="balance each type of negative separately")
    add_attacks: tuple[str, ...] = Field(
        (), description="general: more attacks: cloze, meaning, cola, vera, or scorers of other packages"
    )

    @model_validator(mode="after")
    def _adds_attacks_to_the_general_method(self) -> "RefineSection":
        if self.add_attacks and self.method == "reference":
            raise ValueError("add_attacks: Algorithm 1 has two fixed scorers; set method: general")
        if "llm" in self.add_attacks:
            raise ValueError("add_attacks: llm asks a model, which a build does not do here; use `pairwright refine`")
        return self


class ShardsSection(Section):
    """The WebDataset shards."""

    samples: int = Field(10_000, ge=1, description="maximum of samples per shard")
    megabytes: int = Field(512, ge=1, description="maximum of MiB per shard, by the sizes of the source images")
    images: bool = Field(default=True, description="false: pack texts only")
    image_format: Literal["", "jpg", "png", "webp"] = Field("", description="empty: keep the bytes")
    longest_side: int = Field(0, ge=0, description="pixels; larger images are scaled down (0 = keep sizes)")
    to: str = Field(
        "",
        description="URL of a folder for the shards, such as s3://bucket/birds, to which each is sent when it is complete; "
        "empty: `shards/` of the build",
    )

    @field_validator("to")
    @classmethod
    def _is_a_folder_of_a_store(cls, value: str) -> str:
        if not value:
            return value
        try:
            return folder_url(value)
        except UsageError as error:
            raise ValueError(str(error).rstrip(".")) from None


class SlurmSection(Section):
    """The array tasks of a build with runner slurm; empty settings are the cluster's defaults."""

    partition: str = ""
    account: str = ""
    time: str = Field(
        "", description="limit of a task, such as 02:00:00; the jobs that it cuts off are submitted again"
    )
    cpus: int = Field(
        1, ge=1, description="cores per task: so many jobs at a time, or threads where a stage is one job"
    )
    memory: str = Field("", description="per task, such as 8G")
    array: int = Field(100, ge=1, description="tasks per array, at most; each runs a share of the jobs of a stage")
    at_once: int = Field(0, ge=0, description="tasks of an array that run at the same time, at most (0 = unlimited)")
    options: tuple[str, ...] = Field((), description="further options of sbatch, such as --qos=long")
    setup: tuple[str, ...] = Field((), description="shell commands before each task, such as module load python/3.12")
    poll_seconds: float = Field(10.0, gt=0, description="seconds between calls of squeue")
