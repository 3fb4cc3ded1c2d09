"""The parts of Prefect that builds use, imported after its environment is set (`preflight.prepare_prefect`).

Importing Prefect takes seconds: code that also runs without it imports this module inside functions.
"""

from pairwright.flows.prefect.preflight import prepare_prefect

prepare_prefect()

from prefect import flow, task  # noqa: E402 - Prefect reads its settings when it is imported
from prefect.artifacts import (  # noqa: E402 - likewise
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)
from prefect.cache_policies import NO_CACHE  # noqa: E402 - likewise
from prefect.client.orchestration import get_client  # noqa: E402 - likewise
from prefect.client.schemas.objects import State  # noqa: E402 - likewise
from prefect.context import FlowRunContext  # noqa: E402 - likewise
from prefect.events import Event  # noqa: E402 - likewise
from prefect.events.worker import EventsWorker  # noqa: E402 - likewise
from prefect.exceptions import TerminationSignal  # noqa: E402 - likewise
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings  # noqa: E402 - likewise
from prefect.states import Completed  # noqa: E402 - likewise

# By default Prefect completes this type at the first heartbeat of a flow, in a thread, with `ast.parse`. NumPy uses the
# same for the header of an array; in two threads at a time CPython before 3.11.8 sometimes raises SystemError.
Event.model_rebuild()

__all__ = [
    "NO_CACHE",
    "PREFECT_API_URL",
    "PREFECT_CLIENT_MAX_RETRIES",
    "Completed",
    "EventsWorker",
    "FlowRunContext",
    "State",
    "TerminationSignal",
    "acreate_link_artifact",
    "acreate_markdown_artifact",
    "acreate_progress_artifact",
    "acreate_table_artifact",
    "aupdate_progress_artifact",
    "flow",
    "get_client",
    "task",
    "temporary_settings",
]
