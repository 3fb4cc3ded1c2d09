"""Garbage collection of processes that hold large tables and make many small records.

Reference counts free nearly everything; the collector looks for cycles alone, of which there are hardly any. With
Python's thresholds it visits every live object again and again, a tenth of the time in which rules edit captions, and
again several times when the process ends, a quarter of a second with the modules of a build.
"""

import atexit
import gc
from typing import Final

_NEW_OBJECTS: Final = 500_000  # between two collections; some hundred megabytes, as those of a part of a build take


def collect_rarely() -> None:
    """Collect garbage after many more new objects than Python does of itself, and none at the end of the process."""
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)
