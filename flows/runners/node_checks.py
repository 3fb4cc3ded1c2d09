"""Checks of a worker on another node: it sees the build directory and runs the same code.

Other code would write other bytes without an error.
"""

import platform
from functools import lru_cache
from pathlib import Path

from pairwright.datasets.errors import StorageError, UsageError
from pairwright.flows.state.code_versions import package_versions, source_hash
from pairwright.flows.state.layout import SHARED_MARK


@lru_cache(maxsize=8)
def check_node(root: Path, mark: str, source: str, packages: tuple[str, ...]) -> None:
    """Check that this node can run jobs of a build.

    Args:
        root: the build directory.
        mark: content of its file `SHARED_MARK`.
        source: `source_hash` in the build's process.
        packages: `package_versions` there.

    Raises:
        StorageError: the node does not see the build directory.
        UsageError: it runs other code.
    """
    node = platform.node()
    found = root / SHARED_MARK
    if not found.is_file() or found.read_text() != mark:
        raise StorageError(
            f"{root}: node {node} does not see this build directory. Choose an --out on a shared disk of all nodes."
        )
    if source_hash() != source:
        raise UsageError(
            f"node {node} runs another version of pairwright than the build. Install the same version on all nodes."
        )
    other = sorted(set(packages) - set(package_versions()))
    if other:
        raise UsageError(
            f"node {node} has another version of {', '.join(other)}. Install the same version on all nodes."
        )
