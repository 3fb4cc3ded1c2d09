"""The JSON schema of a pydantic model, in the subset that servers hold a model to.

The subset is that of OpenAI's strict mode (https://platform.openai.com/docs/guides/structured-outputs), less what other
servers do not know: every property is required, no other is allowed, references are written out where they do not
recur, and bounds of values (lengths, ranges, patterns) are left out. What is left out still counts: answers are
validated against the pydantic model itself.
"""

import re

from pydantic import BaseModel

from pairwright.generators.llm.messages import Schema

_NAME = re.compile(r"[^a-zA-Z0-9_-]+")


def schema_of(shape: type[BaseModel]) -> Schema:
    """Return the schema of a shape.

    Raises:
        UsageError: when it holds what the subset cannot say: free-form dicts, tuples, values of any type.
    """
    return Schema(_NAME.sub("_", shape.__name__)[:64], shape.model_json_schema())
