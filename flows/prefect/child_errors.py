"""What a process says before it ends: the end of its stderr, and of that the one line that tells most.

A thread reads along for as long as the process runs, so that it is never kept waiting, and keeps the last `KEPT_LINES` lines:
a server runs for months.
"""

import re
import threading
from collections import deque
from typing import IO

KEPT_LINES = 200
_LONGEST = 300  # of a line that is told
_READ = 4096  # of a line at once; one without an end is kept in pieces
_SLOW = 5.0  # seconds to the end of what an ended process has said; its children may hold the pipe open
_RAISED = re.compile(
    r"(?:\w+\.)*[A-Z]\w*[a-z]\w*(?:: \S.*)?"
)  # the last line of a traceback: its error, and what that says


class ChildErrors:
    """Reads the stderr of a process.

    Args:
        stream: the end of the pipe that is read; it is closed when the process closes its own.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._stream = stream
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with self._stream:
            while line := self._stream.readline(_READ):
                self._lines.append(line)

    def telling(self) -> str:
        """Return the line that tells why the process, which has ended, did so; empty where it said nothing.

        That is the error of the last traceback, else the last line.
        """
        self._thread.join(_SLOW)
        lines = [line.decode("utf-8", "replace").rstrip() for line in list(self._lines)]
        said = [line for line in lines if line]
        raised = [line for line in said if _RAISED.fullmatch(line)]
        return (raised or said or [""])[-1][:_LONGEST]
