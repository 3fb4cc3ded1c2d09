"""The sections of a build config: what can be set for each stage, with its default and its meaning.

Each is frozen and closed to unknown keys; `config.BuildConfig` holds them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pairwright.datasets.records import MAX_EDITABLE_CAPTION
from pairwright.datasets.suggestions import find_duplicates, suggest_alternatives
from pairwright.generators.conversations.question_templates import (
    CHOICE_FORMAT,
    MAX_TURNS,
    SHORT_FORMAT,
    PromptPlace,
    PromptTurns,
)
from pairwright.indexes.fetching.options import FetchOptions
from pairwright.indexes.hnsw.options import IndexOptions

NegativeType = Literal[
    "replace-object",
    "replace-attribute",
    "replace-relation",
    "swap-object",
    "swap-attribute",
    "add-object",
    "add-attribute",
    "shuffle",
]
BENCHMARK_TYPES = get_args(NegativeType)[:-1]  # SHUFFLE is for training only
PositiveType = Literal["replace-object", "replace-attribute", "replace-relation", "swap-object"]
ConversationType = Literal["conversation", "brief", "short", "choice", "detail", "reasoning"]


Score = Annotated[float, Field(ge=-1, le=1)]
_AtLeast0 = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    """A part of the config: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class InputSection(Section):
    """Where the pairs come from and how they are read."""

    path: str = Field(min_length=1, description="file, folder, or brace pattern such as data/{00000..00009}.tar")
    format: str = Field("", description="empty: guessed from the path")
    columns: dict[str, str] = Field({}, description="our name to the column's name, such as key: image_id")
    explode: bool = Field(default=False, description="one pair per caption, not one per image")
    image_root: str = Field(
        "",
        description="folder that relative image paths start from, and outside of which no image is read; empty: the folder of the input, and images may lie anywhere",
    )
    instances: str = Field("", description="COCO instances JSON, for boxes")
    source: str = Field("", description="name of this dataset; empty: the file's name")
    verify_images: Literal["off", "header", "full"] = Field(
        "header", description="how images are checked when read; off when only texts are needed"
    )
    on_error: Literal["stop", "skip"] = Field("stop", description="what a broken row does")
    max_caption: int = Field(
        MAX_EDITABLE_CAPTION, ge=1, description="characters of a caption; longer ones are rejected as caption_too_long"
    )

    @field_validator("verify_images", mode="before")
    @classmethod
    def _yaml_reads_off_as_false(cls, value: object) -> object:
        return "off" if value is False else value


class IndexSection(Section):
    """The FAISS HNSW index over the captions, the images, or both; made without this section too where `retrieve` is there."""

    encoder: str = Field(
        "lexical", description="lexical, minilm, clip, precomputed, or the name of an installed encoder"
    )
    model: str = Field(
        "", description="checkpoint of minilm or clip, by name or folder; for precomputed: of its queries"
    )
    device: str = Field("", description="cpu, cuda, ...; empty: the best there is")
    modalities: tuple[Literal["text", "image"], ...] = Field(("text",), min_length=1, description="what is indexed")
    m: int = Field(IndexOptions.m, ge=2, le=128, description="links a vector")
    ef_construction: int = Field(IndexOptions.ef_construction, ge=8, le=2000)
    recall: float = Field(IndexOptions.recall, gt=0, le=1, description="recall@10 that efSearch is raised for")
    storage: Literal["auto", "flat", "fp16", "int8", "ivfpq"] = IndexOptions.storage
    memory: float = Field(IndexOptions.memory_gib, gt=0, description="GiB that `auto` chooses the storage by")
    near_duplicates: float = Field(
        IndexOptions.near, gt=0, le=1, description="cosine from which a vector is a copy of another; 1: equal ones only"
    )
    shards: int = Field(
        1,
        ge=1,
        description="parts of the index, built side by side by as many `workers`; memory is that of the parts being built",
    )

    @field_validator("encoder")
    @classmethod
    def _encoder_exists(cls, value: str) -> str:
        from pairwright.indexes.encoders.registry import ENCODERS

        known = [*ENCODERS.names(), "precomputed"]
        if value not in known:
            raise ValueError(f"no encoder named {value}. {suggest_alternatives([value], known)}")
        return value


class RetrieveSection(Section):
    """Keep only the pairs that some query retrieves."""

    queries: str = Field(description="a .txt of one query a line, a JSON of classes and templates, or pairs")
    query_vectors: str = Field("", description="a .npy with a vector for each query, for an index without an encoder")
    k: int = Field(50, ge=1, description="hits a query, or a concept, as `per` says")
    per: Literal["query", "concept"] = "query"
    mode: Literal["t2t", "t2i", "both"] = Field("t2t", description="queries against captions, images, or both")
    cap: int | None = Field(None, ge=1, description="distinct pairs a concept at most")
    min_score: Score | dict[Literal["t2t", "t2i"], Score] = Field(
        -1.0, description="cosine below which a hit does not count; for both modes {t2t: 0.5, t2i: 0.2}"
    )
    floor: Score | dict[Literal["t2t", "t2i"], Score] | None = Field(
        None, description="cosine with its bare name from which a pair is near to a concept; empty: the encoder's own"
    )
    recall: float = Field(0.95, gt=0, le=1, description="recall@k that efSearch is tuned to on the queries")
    exclude: tuple[str, ...] = Field((), description="evaluation data that must not leak: pairs, images or lists")

    @model_validator(mode="after")
    def _scores_of_two_modes_do_not_compare(self) -> "RetrieveSection":
        for name, value in (("min_score", self.min_score), ("floor", self.floor)):
            if self.mode == "both" and isinstance(value, float) and value > -1:
                raise ValueError(f"{name}: scores of t2t and t2i do not compare; give one each, {{t2t: 0.5, t2i: 0.2}}")
        return self


class FetchSection(Section):
    """Fetch the images that are URLs, with img2dataset."""

    image_size: int = Field(FetchOptions.image_size, ge=16, description="pixels that resize_mode aims at")
    resize_mode: Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "no"] = FetchOptions.resize_mode
    only_if_bigger: bool = Field(
        default=FetchOptions.only_if_bigger, description="leave smaller pictures at their size"
    )
    image_format: Literal["jpg", "png", "webp"] = FetchOptions.image_format
    quality: int = Field(
        FetchOptions.quality, ge=-1, le=100, description="-1: 95 for jpg, 90 for webp, 6 (effort) for png"
    )
    timeout: float = Field(FetchOptions.timeout, gt=0, description="seconds for each wait on the network")
    threads: int = Field(FetchOptions.threads, ge=1, description="downloads at a time in each process")
    processes: int = Field(FetchOptions.processes, ge=0, description="at most; 0: one a core")
    retries: int = Field(
        FetchOptions.retries, ge=0, description="further tries for what may pass: timeouts, busy servers"
    )
    ignore_opt_outs: bool = Field(default=False, description="fetch what a site keeps from AI training")
    allow_loopback: bool = Field(default=False, description="fetch from this machine, too")
    proxy: str = Field("", description="http://host:port; empty: that of the environment")
    user_agent: str = Field("", description="who asks; empty: pairwright")
    min_success: float = Field(0.0, ge=0, le=1, description="share that has to arrive, or the build stops")


class GeneratorMethodSection(Section):
    """What is made by rules or by a model; all other keys are the maker's options."""

    method: Literal["rules", "llm"] = Field("rules", description="rules: no model, no network; llm: ask the model")

    def options(self) -> dict[str, Any]:
        """Return the maker's options."""
        return self.model_dump(exclude={"method"})


def _check_types(types: tuple[str, ...], quota: int | Mapping[Any, int]) -> None:
    """Refuse a type that stands twice, and a quota of one that is not made."""
    if twice := find_duplicates(types):
        raise ValueError(f"types: {twice[0]} stands there twice")
    if isinstance(quota, Mapping) and (unasked := set(quota) - set(types)):
        raise ValueError(f"quota: {min(unasked)} is not among the types")


class NegativesSection(GeneratorMethodSection):
    """Hard negatives, by rules or by a model."""

    types: tuple[NegativeType, ...] = Field(
        BENCHMARK_TYPES, min_length=1, description="of all; shuffle is made by rules, and for training only"
    )
    per_type: int = Field(1, ge=1, description="negatives of each type a caption")
    last_resorts: bool = Field(
        default=True,
        description="by rules: where no relation can be exchanged, deny one (without, has no, far from), which shows in the text",
    )
    both_sides: bool = Field(
        default=False,
        description="by rules: a rewritten, true caption beside each negative but those of shuffle, to compare it with",
    )
    variant: Literal["one-call", "workflow"] = Field(
        "one-call", description="by a model: all types in one answer, or SugarCrepe's find, propose and compose"
    )
    quota: _AtLeast0 | dict[NegativeType, _AtLeast0] = Field(
        {}, description="the most that are kept of each type, or of those named, such as {replace-object: 5000}"
    )
    max_word_share: float = Field(
        1.0, ge=0, le=1, description="of a type's negatives, the most that one new word may be in; one always may"
    )

    @model_validator(mode="after")
    def _fits_its_method(self) -> "NegativesSection":
        if self.method == "llm" and (self.both_sides or not self.last_resorts or "shuffle" in self.types):
            raise ValueError("both_sides, last_resorts and shuffle are of rules; take them out, or set method: rules")
        if self.both_sides and self.types == ("shuffle",):
            raise ValueError("both_sides: shuffle gets no positive beside it; take one of them out")
        return self

    @model_validator(mode="after")
    def _names_each_type_once(self) -> "NegativesSection":
        _check_types(self.types, self.quota)
        return self

    def options(self) -> dict[str, Any]:
        """Return the maker's options."""
        by_rules = {"both_sides": self.both_sides, "last_resorts": self.last_resorts}
        own = {"variant": self.variant} if self.method == "llm" else by_rules
        return {"types": self.types, "per_type": self.per_type, **own}


class PositivesSection(GeneratorMethodSection):
    """Hard positives, by rules or by a model."""

    types: tuple[PositiveType, ...] = Field(get_args(PositiveType), min_length=1)
    quota: _AtLeast0 | dict[PositiveType, _AtLeast0] = Field(
        {}, description="the most that are kept of each type, or of those named"
    )
    max_word_share: float = Field(
        1.0, ge=0, le=1, description="of a type's positives, the most that one new word may be in; one always may"
    )

    @model_validator(mode="after")
    def _names_each_type_once(self) -> "PositivesSection":
        _check_types(self.types, self.quota)
        return self

    def options(self) -> dict[str, Any]:
        """Return the maker's options."""
        return {"types": self.types}


_OF_TEMPLATES = ("vocabulary", "max_turns", "short_prompt", "choice_prompt", "prompt_place", "prompt_turns")


class ConversationsSection(Section):
    """Conversations from captions and boxes, by templates or by a model."""

    method: Literal["templates", "llm"] = Field(
        "templates", description="templates: provable turns; llm: ask the model"
    )
    types: tuple[ConversationType, ...] = Field(
        (),
        description="by templates conversation, brief (these when empty), short, choice; by a model conversation, "
        "detail, reasoning (all when empty)",
    )
    vocabulary: tuple[str, ...] = Field(
        (), description="labels that the source annotates exhaustively, needed for the answer no; coco: COCO's 80"
    )
    max_turns: int = Field(
        MAX_TURNS, ge=0, description="by templates: turns of a conversation; 0: all that can be proved"
    )
    short_prompt: str = Field(SHORT_FORMAT, description="what asks for a word or phrase, in type short; off: nothing")
    choice_prompt: str = Field(CHOICE_FORMAT, description="what asks for the letter, in type choice; off: nothing")
    prompt_place: PromptPlace = Field(
        "below", description="of these prompts: below question and options, behind the question, or above it"
    )
    prompt_turns: PromptTurns = Field("each", description="which turns have these prompts: each, or the first only")
    ratios: dict[ConversationType, float] = Field(
        {}, description="by a model: one type a pair, drawn by these parts, such as {conversation: 58, detail: 23, ...}"
    )
    counts: dict[ConversationType, Annotated[int, Field(ge=0)]] = Field(
        {},
        description="how many of each type, such as {conversation: 58000, ...}; only these types when types is empty. "
        "By templates: of what was made, so many are kept; by a model: so many pairs are asked about",
    )
    see_image: bool = Field(default=False, description="by a model that sees: the image is sent as well")

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
                f"{wrong[0]} is not made with method {self.method}. {suggest_alternatives(wrong[:1], known)}"
            )
        if self.method == "templates" and (self.ratios or self.see_image):
            raise ValueError("ratios and see_image say how a model is asked; they need method: llm")
        changed = [name for name in _OF_TEMPLATES if getattr(self, name) != type(self).model_fields[name].default]
        if self.method == "llm" and changed:
            raise ValueError(f"{changed[0]} says how templates are filled; it needs method: templates")
        _check_types(self.types, {})
        if self.types and (unasked := set(self.counts) - set(self.types)):
            raise ValueError(f"counts: {min(unasked)} is not among the types")
        if self.counts and self.ratios:
            raise ValueError("give counts or ratios, not both")
        return self

    def options(self) -> dict[str, Any]:
        """Return the maker's options."""
        asked = self.types or tuple(self.counts)
        types = {"types": asked} if asked else {}
        if self.method == "llm":
            ratios = {str(kind): part for kind, part in self.ratios.items()}
            counts = {str(kind): count for kind, count in self.counts.items()}
            return {**types, "ratios": ratios, "counts": counts, "see_image": self.see_image}
        return {**types, **{name: getattr(self, name) for name in _OF_TEMPLATES}}


class RationalesSection(Section):
    """Why hard negatives do not fit their image and what they compete with does, by a model (image-text matching)."""

    label_given: bool = Field(default=False, description="tell the model the right answer, to be explained")
    samples: int = Field(1, ge=1, le=100, description="answers a row, whose labels vote")
    wrong_labels: Literal["apart", "keep"] = Field(
        "apart", description="rows whose label is wrong: reject them, or keep them with the right label"
    )
    validation: float = Field(0.1, ge=0, le=1, description="share of the rows for validation")


class GeneratorSection(Section):
    """A generator of a third party, by its entry point name."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    options: dict[str, Any] = {}


class RefineSection(Section):
    """Adversarial refinement: negatives that text alone betrays are set aside."""

    method: Literal["reference", "general"] = Field(
        "reference",
        description="reference: Algorithm 1 of SugarCrepe, over two text-only scorers;"
        " general: against every blind attack, for sets of thousands",
    )
    cells: int | None = Field(
        None,
        ge=2,
        le=1000,
        description="reference: K of the K x K grid over the two gaps; empty: the square root of a type's rows,"
        " 10 to 100",
    )
    target: float = Field(0.52, ge=0.505, le=1.0, description="general: accuracy that no attack may exceed")
    min_keep: float = Field(0.1, ge=0.0, le=1.0, description="general: share of the negatives to keep at least")
    by_type: bool = Field(default=True, description="balance each type of negative on its own")


class ShardsSection(Section):
    """The WebDataset shards."""

    samples: int = Field(10_000, ge=1, description="samples a shard, at most")
    megabytes: int = Field(
        512, ge=1, description="MiB a shard, at most; reckoned from the sizes of the source's images"
    )
    images: bool = Field(default=True, description="false: texts only, though the pairs name images")
    image_format: Literal["", "jpg", "png", "webp"] = Field("", description="empty: bytes pass through untouched")
    longest_side: int = Field(0, ge=0, description="pixels; larger pictures are scaled down to it; 0: sizes stay")


# What only a server's client uses; see `LLMSection`.
SERVER_ONLY_KEYS = (
    *("base_url", "endpoint", "transport", "requests_per_minute", "tokens_per_minute", "timeout", "max_retries"),
    *("patience", "max_cost", "prices", "price", "batch"),
)


class LLMSection(Section):
    """The model that texts are asked of. Its key is no setting: it stands in the environment, as OPENAI_API_KEY."""

    model: str = Field(
        min_length=1,
        description="its name at the server (Azure: the deployment's); local:FOLDER: a model on this machine",
    )
    base_url: str = Field("", description="of an OpenAI-compatible server; empty: OPENAI_BASE_URL, else OpenAI")
    endpoint: str = Field("", description="name for the server in cache keys; empty: scheme, host, port and path")
    transport: Literal["auto", "direct", "sdk"] = Field("auto", description="auto: the SDK for Azure, else direct")
    structured: Literal["auto", "json_schema", "tool", "json"] = Field(
        "auto", description="how JSON is asked for: by schema, tool call or in words; auto: what the server can"
    )
    max_concurrency: int = Field(64, ge=1, description="requests at once, at most; fewer while the server refuses")
    requests_per_minute: int = Field(0, ge=0, description="at most; 0: no ceiling")
    tokens_per_minute: int = Field(0, ge=0, description="at most; 0: no ceiling")
    timeout: float = Field(120.0, gt=0, description="seconds until an answer has to be whole")
    max_retries: int = Field(6, ge=0, description="further tries of a request after a fault that may pass")
    patience: float = Field(
        300.0, gt=0, description="seconds to wait for a server that has answered before and is away, or refuses all"
    )
    max_cost: float | None = Field(None, gt=0, description="USD at which the run stops; what is done is kept")
    max_requests: int | None = Field(None, ge=1, description="requests at which the run stops; what is done is kept")
    prices: str = Field("", description="YAML file of prices that add to ours or replace them")
    price: str = Field("", description="IN/OUT, USD per million tokens, in place of any table; 0/0: your own server")
    parameters: dict[str, Any] = Field(
        {}, description="sent in place of the prompts' own, such as temperature: 0; null leaves one out"
    )
    prompts: str = Field("", description="folder of prompt files that replace ours by name")
    cache: str = Field(
        "",
        description="SQLite file of the model's answers, on a local disk, not NFS; empty: llm-cache.sqlite in the build directory",
    )
    batch: bool = Field(default=False, description="OpenAI's Batch API: half the price, answers within a day")

    @field_validator("base_url")
    @classmethod
    def _holds_no_secret(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.username or parts.password or parts.query:
            raise ValueError("a config holds no keys; put a URL with a user or a query into OPENAI_BASE_URL")
        return value

    @model_validator(mode="after")
    def _asks_no_server_of_a_local_model(self) -> Self:
        if not self.model.startswith("local:"):
            return self
        usual = type(self).model_fields
        given = [name for name in SERVER_ONLY_KEYS if getattr(self, name) != usual[name].default]
        if given:
            raise ValueError(f"{given[0]} is for servers, and {self.model} is on this machine: leave one of them out")
        if self.structured not in {"auto", "json"}:
            raise ValueError(f"nothing holds {self.model} to a schema: leave structured at auto")
        return self
