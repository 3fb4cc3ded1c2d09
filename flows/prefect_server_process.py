"""``python -m pairwright.flows.prefect_server_process server start ...``: Prefect's own command, its scheduler mended.

Prefect 3.8 makes scheduled runs by a bulk insert of rows that hold, beside the columns, a member ``state``. SQLAlchemy
2.0 passes over it; 2.1, which Prefect's bounds let in, refuses it ("Can't evaluate bulk DML statement"), so that no
schedule ever makes a run, and nothing is said of it. The state itself is inserted after, in a statement of its own;
here SQLAlchemy is told to pass over the member again.
"""

from typing import Any

from pairwright.flows.preflight import prepare_prefect


def pass_over_states() -> None:
    """Let bulk inserts of flow runs hold a ``state`` that is no column, as with SQLAlchemy 2.0."""
    from prefect.server.database import orm_models

    state: Any = vars(orm_models.FlowRun)["state"]
    if getattr(state, "bulk_dml_setter", ...) is None:  # absent in 2.0; set where Prefect has mended it itself
        state.bulk_dml_setter = lambda _cls, mapping, _value: mapping.pop("state")


if __name__ == "__main__":
    prepare_prefect()
    pass_over_states()
    from prefect.cli import app

    app()
