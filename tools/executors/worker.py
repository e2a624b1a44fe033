"""A worker process of the local executor: it reads tasks from its standard input.

Each line is a message of `message_for`, or STOP. Lines with results, and with what tasks say of
their progress, go to what was standard output. What a task prints goes to standard error.

If the process that started this one ends, the input ends, and so does this process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

STOP = "stop"
"""The line that stops the running task."""

READY, TOLD, ENDED = "ready", "told", "ended"
"""The kinds of lines: the worker has started; a task says how far it is; a task has ended."""


class Worker:
    """The state of this process.

    Attributes:
        runs: whether a task is running, which an interrupt may end.
        is_stopped: whether the last task that has come must not go on, or not even begin.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._messages: SimpleQueue[str] = SimpleQueue()
        self.runs = False
        self.is_stopped = False

    def work(self, memory_bytes: int | None) -> None:
        """Carry out tasks until the input ends."""
        signal.signal(signal.SIGINT, self._interrupt)
        Thread(target=self._read, daemon=True).start()
        # Whoever waits for this process sees that it has started, and then that it cannot import.
        from .carry_out import carried_out  # noqa: PLC0415
        from .limits import set_limits  # noqa: PLC0415
        from .task import Json  # noqa: PLC0415

        set_limits(memory_bytes)

        def tell(progress: Json) -> None:
            self._say(TOLD, json.dumps(progress))

        self._say(READY, "")
        while True:
            message = self._messages.get()
            line = ""
            try:
                self.runs = True
                if not self.is_stopped:
                    line = carried_out(message, tell, f"process {os.getpid()}")
            except KeyboardInterrupt:
                # It came between the end of the task and that of the block.
                pass
            finally:
                self.runs = False
            self._say(ENDED, line)

    def _interrupt(self, *_: object) -> None:
        if self.runs:
            raise KeyboardInterrupt

    def _read(self) -> None:
        for line in sys.stdin:
            self.is_stopped = line.strip() == STOP
            if not self.is_stopped:
                self._messages.put(line)
            elif self.runs:
                # A signal also ends a wait of the system.
                os.kill(os.getpid(), signal.SIGINT)
        # The process that wants the results is gone. Files are complete or absent at any time.
        os._exit(0)

    def _say(self, kind: str, line: str) -> None:
        self._out.write(f"{kind} {line}\n".encode())
        self._out.flush()


def main() -> None:
    """Work as the arguments say: a number of bytes of memory, or nothing."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Worker(out).work(int(sys.argv[1]) if len(sys.argv) > 1 else None)


if __name__ == "__main__":
    main()
