"""The base class of the sections of configs."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base class of sections: frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
