"""Whether Prefect runs this, asked without importing Prefect: what it runs it has been imported for."""

import sys


def in_flow_run() -> bool:
    """Say whether Prefect runs this: a flow's function can also be called as it is."""
    context = sys.modules.get("prefect.context")
    return context is not None and context.FlowRunContext.get() is not None
