"""The section of the language model in a build config; a run without a build reads no other section."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from pairwright.flows.config.base import Section
from pairwright.flows.config.llm_options import SERVER_ONLY_KEYS, LLMOptions, ModelName, Parameters


class LLMSection(Section, LLMOptions):
    """The language model of the stages that use one; its API key is read from the environment (OPENAI_API_KEY)."""

    model: ModelName = Field(min_length=1)
    parameters: Parameters = Field({})

    @field_validator("base_url")
    @classmethod
    def _contains_no_secret(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.username or parts.password or parts.query:
            raise ValueError("a config must not contain keys: put a URL with a user or a query into OPENAI_BASE_URL")
        return value

    @model_validator(mode="after")
    def _local_model_has_no_server(self) -> Self:
        if not self.model.startswith("local:"):
            return self
        fields = type(self).model_fields
        changed = [name for name in SERVER_ONLY_KEYS if getattr(self, name) != fields[name].default]
        if changed:
            raise ValueError(f"{changed[0]} is for servers, but {self.model} is a local model: remove one of them")
        if self.structured not in {"auto", "json"}:
            raise ValueError(f"{self.model} is a local model, which supports no schema: set structured to auto or json")
        return self
