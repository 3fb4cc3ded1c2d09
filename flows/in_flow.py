"""Whether Prefect runs this, asked without importing Prefect: what it runs it has been imported for."""

import sys


def in_a_flow() -> bool:
    """Say whether Prefect runs this: a flow's function can also be called as it is."""
    context = sys.modules.get("prefect.context")
    return context is not None and context.FlowRunContext.get() is not None


def own_server() -> int | None:
    """Return the process id of the ephemeral server that Prefect started for us, if it did."""
    server = sys.modules.get("prefect.server.api.server")
    process = server.SubprocessASGIServer().server_process if server and in_a_flow() else None
    return process.pid if process else None
