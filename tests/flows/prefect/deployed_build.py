"""Deploy `build_flow` to a process pool and run it once with a worker, for `test_deployment.py`: POOL, CONFIG, OUT.

Prints the state of the run and its task runs as JSON. In a process of its own: Prefect reads its settings when it is
imported.
"""

import json
import subprocess
import sys
from uuid import UUID

from pairwright.flows.prefect.build_flow import build_flow
from pairwright.flows.prefect.runner import EntrypointType, get_client

if __name__ == "__main__":
    pool, config, out = sys.argv[1:]
    prefect = [sys.executable, "-m", "prefect", "--no-prompt"]
    subprocess.run([*prefect, "work-pool", "create", pool, "--type", "process"], check=True, stdout=sys.stderr)
    deployed = build_flow.deploy(
        "birds",
        work_pool_name=pool,
        entrypoint_type=EntrypointType.MODULE_PATH,
        parameters={"config": config, "out": out, "overrides": {"workers": 1, "shards": {"images": False}}},
        print_next_steps=False,
    )
    with get_client(sync_client=True) as client:
        assert isinstance(deployed, UUID)
        run = client.create_flow_run_from_deployment(deployed)
        subprocess.run([*prefect, "worker", "start", "--pool", pool, "--run-once"], check=True, stdout=sys.stderr)
        state = client.read_flow_run(run.id).state
        wanted = {"flow_runs": {"id": {"any_": [str(run.id)]}}}
        tasks = client.request("POST", "/task_runs/filter", json=wanted).json()
    found = {task["name"]: sorted(task["tags"]) for task in tasks}
    print(json.dumps({"state": state.name if state else "", "message": state.message if state else "", "tasks": found}))  # noqa: T201 - what the test reads
