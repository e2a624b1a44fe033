"""Proofs of kernels: each task's battery, run once for its code, in a separate process.

Compiled code may be wrong on a processor that has not been tried, or with another version of LLVM.
So before the code of a task is used for the first time, a process computes its battery with it and
compares all bytes with those of NumPy (see battery). If a case differs, or if the process crashes
or hangs, NumPy computes that task from then on. The proof is kept beside the machine code, under
the same key.
"""

from __future__ import annotations

import atexit
import base64
import json
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from queue import Empty, SimpleQueue
from subprocess import Popen, TimeoutExpired
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any, cast

from .battery.answers import BEGUN, ENDED, PROVED, UNDECIDED

LIMIT_SECONDS = 60.0
"""The most seconds that a process may take for one group of cases. Each takes less than half a
second on an idle processor.
"""

ENDING_SECONDS = 5.0
"""The most seconds that a process may take to end after its last answer."""

KILLED = tuple(-each for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL))
"""Exit codes of processes that users or the system have killed, the latter if they run out of
memory.
"""


@dataclass(frozen=True)
class Proof:
    """The result of a task's battery.

    Attributes:
        cases: the number of cases that passed.
        seconds: their CPU time.
        problem: the failure; "" if all passed.
    """

    task: str
    cases: int = 0
    seconds: float = 0.0
    problem: str = ""

    @property
    def text(self) -> str:
        """The proof as text, to be kept."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, task: str, text: bytes) -> Proof | None:
        """The proof of a task from kept text; None if the text is damaged, or of another task."""
        try:
            kept = json.loads(text)
            found = cls(str(kept["task"]), int(kept["cases"]), float(kept["seconds"]))
            problem = str(kept["problem"])
        except (ValueError, TypeError, LookupError):
            return None
        return cls(task, found.cases, found.seconds, problem) if found.task == task else None


class Undecided(Exception):
    """A battery has no result. The message says why."""


class Prover:
    """A process that runs batteries.

    Raises OSError if it cannot be started.

    Attributes:
        begin: starts the process, which writes to the given stream everything that is not an
            answer.
    """

    def __init__(self, begin: Callable[[IO[str]], Popen[str]]) -> None:
        self._said = TemporaryFile("w+", errors="replace")
        self._answers = SimpleQueue[str]()
        try:
            self._process = begin(cast("IO[str]", self._said))
        except OSError:
            self._said.close()
            raise
        self._given = cast("IO[str]", self._process.stdin)
        self._reader = Thread(target=self._read, name="abele-proofs", daemon=True)
        self._reader.start()
        atexit.register(self.end)

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def prove(self, task: str, codes: Mapping[str, bytes]) -> Proof:
        """Run the battery of a task. If the process crashes or hangs, it has ended afterwards.

        Raises Undecided.

        Args:
            codes: the machine code of the task, and of the tasks that it needs.
        """
        try:
            proof = self._asked(task, codes)
        except BaseException:
            # The caller no longer waits for the answer, so the process cannot be used again.
            self.end()
            raise
        return proof

    def _asked(self, task: str, codes: Mapping[str, bytes]) -> Proof:
        """The proof from the process's answer, or from the way in which it ends."""
        group = "start"
        try:
            self._ask(task, codes)
            while True:
                kind, *more = self._answer()
                if kind == BEGUN:
                    (group,) = more
                elif kind == PROVED:
                    return Proof(task, *more)
                elif kind == UNDECIDED:
                    raise Undecided(more[0])
                else:
                    raise BrokenPipeError
        except Empty:
            problem = f"no end within {LIMIT_SECONDS:.0f} s"
        except BrokenPipeError:
            problem = self._ending()
        self.end()
        return Proof(task, problem=f"{group}: {problem}")

    def end(self) -> None:
        """End the process."""
        self.leave()
        self._process.kill()
        self._process.wait()
        self._reader.join()
        # Input that it has not read is lost.
        with suppress(BrokenPipeError):
            self._given.close()
        self._said.close()

    def leave(self) -> None:
        """Leave the process to the parent of this forked process."""
        atexit.unregister(self.end)

    def _ask(self, task: str, codes: Mapping[str, bytes]) -> None:
        given = {name: base64.b64encode(code).decode() for name, code in codes.items()}
        print(json.dumps((task, given)), file=self._given, flush=True)

    def _answer(self) -> list[Any]:
        """The next answer. Raises Empty if there is none in time."""
        line = self._answers.get(timeout=LIMIT_SECONDS)
        try:
            return json.loads(line)
        except ValueError:
            return [ENDED]

    def _read(self) -> None:
        """Queue the answers as they come, and finally that the process has ended."""
        assert self._process.stdout is not None
        with self._process.stdout as answers:
            for line in answers:
                self._answers.put(line)
        self._answers.put("")

    def _ending(self) -> str:
        """How the process has ended, with its last line of output.

        Raises Undecided if it was killed from outside.
        """
        with suppress(TimeoutExpired):
            _ = self._process.wait(ENDING_SECONDS)
        code = self._process.poll()
        if code is None:
            return "no more answers"
        try:
            how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        except ValueError:
            how = f"exit code {code}"
        if code in KILLED:
            raise Undecided(f"its process was {how}")
        self._said.seek(0)
        lines = [each.strip() for each in self._said if each.strip()]
        return f"{how}: {lines[-1]}" if lines else how
