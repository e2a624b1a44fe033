"""Runs each case in a forked process, with limits on time, memory and files.

The process has abele loaded already, so a case takes as long as the command's own work.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn, cast

from typer.core import TyperGroup

from ....ir.support.errors import InputError
from ....ir.support.garbage import heap_frozen
from .agreement import NOTHING, disagreement
from .case import Case
from .outcome import Outcome
from .watch_files import watch_files

ROOT = Path(__file__).resolve().parent.parent.parent.parent
"""The folder of abele's packages."""

CPU_SECONDS = 20
"""The most CPU time of a case. The wall clock may take ten times as long, on a busy machine."""
PATIENCE = 10

MEMORY = 4 << 30
"""The most memory of a case, in bytes, beside what the parent has mapped."""

FILE_BYTES = 1 << 30
"""The most bytes of one file that a case writes."""

POLL = 0.002
"""Seconds between two checks whether a child has ended."""

MOST_MESSAGE = 20_000
"""The most characters of a clear message."""

WORK, HOME, TEMPORARY = "work", "home", "tmp"
"""Folders in the scratch folder: the command's working folder, its home, its temporary files."""

REFUSALS = (1, 2, 3)
"""Exit codes of refusals."""

STUMBLED = "cannot be compiled or run: "
"""The beginning of a message that names a Python exception instead of a problem of the input."""

CHECK_FAILED = "check failed: "
"""The beginning of the message of a failed --check."""

TOO_LITTLE_MEMORY = "this host has not enough memory for"


@dataclass
class Running:
    """A case that runs in a child process.

    Attributes:
        end: the time at which the child is killed.
    """

    case: Case
    scratch: Path
    process: int
    end: float = field(default_factory=lambda: monotonic() + PATIENCE * CPU_SECONDS)

    def poll(self) -> Outcome | None:
        """The outcome if the child has ended, else None. A child past its time is killed."""
        process, status, usage = os.wait4(self.process, os.WNOHANG)
        if process == 0:
            if monotonic() > self.end:
                self.kill()
            return None
        self.kill_group()
        try:
            return _outcome(self, os.waitstatus_to_exitcode(status), usage)
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def kill(self) -> None:
        """End the child."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def kill_group(self) -> None:
        """End the processes started by the child."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)

    def finish(self) -> Outcome:
        """Wait for the outcome."""
        while (outcome := self.poll()) is None:
            sleep(POLL)
        return outcome


def start(case: Case, commands: TyperGroup) -> Running:
    """Start a case in a new folder inside the system's folder for temporary files."""
    scratch = Path(tempfile.mkdtemp(prefix="abele-hostile-"))
    for name in (WORK, HOME, TEMPORARY):
        (scratch / name).mkdir()
    case.write(scratch / WORK)
    sys.stdout.flush()
    sys.stderr.flush()
    # Otherwise the child's garbage collector would visit the parent's whole heap.
    with heap_frozen():
        process = os.fork()
        if process == 0:
            _child(case, scratch, commands)
    return Running(case, scratch, process)


# In the child


def _child(case: Case, scratch: Path, commands: TyperGroup) -> NoReturn:
    """Run the command, write its outcome to a file, and exit."""
    try:
        os.setsid()
        _redirect(scratch)
        _limit(scratch)
        escapes = watch_files(scratch, [ROOT], [*case.arguments, *case.links])
        record = _command(case, commands)
        record["escapes"] = escapes[:20]
        with open(scratch / "record.json", "w") as stream:
            json.dump(record, stream)
        os._exit(0)
    finally:
        os._exit(3)


def _redirect(scratch: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(scratch / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    # As Python itself opens them where the locale is UTF-8. A test may have replaced them.
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    for number, name, errors in ((1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        raw = io.BufferedWriter(io.FileIO(number, "w", closefd=False))
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", errors, line_buffering=True))
    os.chdir(scratch / WORK)
    os.environ |= {
        "HOME": str(scratch / HOME),
        "TMPDIR": str(scratch / TEMPORARY),
        "ABELE_CACHE": str(scratch / HOME / "cache"),
        "COLUMNS": "100",
        "TERM": "dumb",
    }
    os.environ.pop("ABELE_TRACEBACK", None)
    tempfile.tempdir = None


def _limit(scratch: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    stack = open(scratch / "stack", "w")
    faulthandler.enable(stack, all_threads=False)
    faulthandler.register(signal.SIGXCPU, stack, all_threads=False)
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    seconds = int(used) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    memory = _address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _address_space() -> int:
    """The number of bytes that this process has mapped; 0 if the system does not report it."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _command(case: Case, commands: TyperGroup) -> dict[str, Any]:
    try:
        commands.main(args=list(case.arguments), prog_name="abele")
        code: object = 0
        cause: BaseException | None = None
    except SystemExit as ended:
        code, cause = ended.code or 0, _cause(ended)
    except BaseException as error:
        return _raised(error)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
    record: dict[str, Any] = {"code": code, "site": "" if cause is None else site_of(cause)}
    if code == 0 and case.compare:
        try:
            record["wrong"] = disagreement(case.compare, case.target)
        except (InputError, MemoryError) as error:
            record["wrong"] = ""
            record["second"] = str(error)
        except Exception as error:
            return _raised(error)
    return record


def _raised(error: BaseException) -> dict[str, Any]:
    text = "".join(traceback.format_exception(error, chain=False))
    return {"raised": text[-6000:], "site": site_of(error)}


def _cause(ended: BaseException) -> BaseException | None:
    """The error behind the exit of a command that has reported it; None if there is none."""
    error = ended.__context__
    while error is not None and type(error).__name__ == "Exit":
        error = error.__context__
    return error


def site_of(error: BaseException) -> str:
    """The place of an error: the innermost frame in abele's code, and the type of the error."""
    where = "?"
    for frame, line in _frames(error):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv"):
            where = f"{path.relative_to(ROOT)}:{line}"
    return f"{where} {type(error).__name__}"


def _frames(error: BaseException) -> Iterator[tuple[Any, int]]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        if Path(frame.f_code.co_filename).parent != Path(__file__).parent:
            yield frame, line


# In the parent


_FRAME = re.compile(r'File "(?P<path>[^"]*)", line (?P<line>\d+)')


def _stack_site(stack: str) -> str:
    """The innermost frame of abele in a stack written by faulthandler, which lists it first."""
    for found in _FRAME.finditer(stack):
        path = Path(found["path"])
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / ".venv"):
            return f"{path.relative_to(ROOT)}:{found['line']}"
    return "?"


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as stream:
            return stream.read(10 * MOST_MESSAGE).decode("utf-8", "replace")
    except OSError:
        return ""


def _outcome(running: Running, code: int, usage: resource.struct_rusage) -> Outcome:
    scratch = running.scratch
    seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10
    message, stack = _read(scratch / "err"), _read(scratch / "stack")

    def outcome(verdict: Any, site: str = "", text: str = message) -> Outcome:
        return Outcome(verdict, site, text, seconds, peak)

    written = _read(scratch / "record.json")
    if code != 0 or not written:
        late = seconds >= CPU_SECONDS or monotonic() > running.end or code == -signal.SIGXCPU
        verdict = "hang" if late else "crash"
        return outcome(verdict, _stack_site(stack) + ("" if late else f" exit {code}"), stack)
    record = cast("dict[str, Any]", json.loads(written))
    site = str(record.get("site", ""))
    if seconds >= CPU_SECONDS:
        return outcome("hang", _stack_site(stack) if stack else "just in time", stack)
    if peak > MEMORY or TOO_LITTLE_MEMORY in message:
        return outcome("memory", site)
    if "raised" in record:
        return outcome("traceback", site, str(record["raised"]))
    if record["escapes"]:
        first = str(record["escapes"][0])
        return outcome("escaped", first.replace(str(scratch), "SCRATCH"), str(record["escapes"]))
    exit_code = record["code"]
    # A failed check comes after the outputs, which show what is wrong.
    done = exit_code == 0 or CHECK_FAILED in message
    lost = _lost(running.case, scratch / WORK, done)
    if lost:
        return outcome("lost", lost)
    if record.get("wrong"):
        return outcome("wrong", _class_of(str(record["wrong"])), str(record["wrong"]))
    if exit_code == 0:
        return outcome("accepted")
    if CHECK_FAILED in message and NOTHING not in message and running.case.is_source:
        return outcome("wrong", _class_of(message[message.index(CHECK_FAILED) :]))
    if STUMBLED in message:
        return outcome("unclear", site)
    # Wrong usage repeats the words of the command line.
    given = sum(map(len, running.case.arguments))
    problem = _unclear(message, exit_code, _read(scratch / "out"), MOST_MESSAGE + given)
    if problem:
        return outcome("unclear", f"{problem} {site}")
    return outcome("refused", site)


def _unclear(message: str, code: object, out: str, most: int) -> str:
    if code not in REFUSALS:
        return f"exit code {code}"
    if "Traceback" in message:
        return "a traceback in the message"
    if not (message.strip() or out.strip()):
        return "no message"
    if len(message) > most:
        return "a message of many pages"
    return ""


_DIGITS = re.compile(r"[\d.]+(?:e[-+]?\d+)?|'[^']*'|@[\w.]+|%[\w.]+")


def _class_of(message: str) -> str:
    """A message with the names and numbers removed that differ between inputs."""
    return _DIGITS.sub("_", message.partition("\n")[0])[:100]


def _lost(case: Case, folder: Path, succeeded: bool) -> str:
    """The first file of the case that the command removed or changed; "" if there is none."""
    for name, data in case.files.items():
        try:
            if (folder / name).read_bytes() == data:
                continue
        except OSError:
            pass
        # A command that succeeds replaces the outputs that it was asked to write.
        if not (succeeded and any(name in each for each in case.arguments)):
            return f"{name} changed"
    return ""
