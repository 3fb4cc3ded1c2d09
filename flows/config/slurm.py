"""The config section ``slurm``: the array tasks that run the jobs of a build on a Slurm cluster."""

from pydantic import Field

from pairwright.flows.config.section import Section


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
