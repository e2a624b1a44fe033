"""Runs cases in forked processes, with limits on time, memory and files.

The process has abele loaded already, so a case takes as long as the command's own work. Each
command has a process of its own. Cases of which only the model is read share one, because a fork
takes several times as long as the reading.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, NoReturn, cast

from typer.core import TyperGroup

from ....ir.support.errors import InputError
from ....ir.support.garbage import heap_frozen
from .agreement import NOTHING, disagreement
from .case import Case
from .outcome import Outcome
from .reading import read_model_of
from .watch_files import watch_files

ROOT = Path(__file__).resolve().parent.parent.parent.parent
"""The folder of abele's packages."""

CPU_SECONDS, READ_SECONDS = 20, 10
"""The most CPU time of a command, and of reading a model. The wall clock may take ten times as
long, on a busy machine."""
PATIENCE = 10

MEMORY, READ_MEMORY = 4 << 30, 1 << 30
"""The most memory of a command and of reading a model, in bytes, beside what the parent has
mapped."""

FILE_BYTES = 1 << 30
"""The most bytes of one file that a case writes."""

POLL = 0.002
"""Seconds between two checks whether a child has ended."""

MOST_MESSAGE = 20_000
"""The most characters of a clear message."""

WORK, HOME, TEMPORARY = "work", "home", "tmp"
"""Folders of a case: the command's working folder, its home, its temporary files."""

RECORD = "record.json"
"""The file with what the child knows about a case."""

REFUSALS = (1, 2, 3)
"""Exit codes of refusals."""

STUMBLED = "cannot be compiled or run: "
"""The beginning of a message that names a Python exception instead of a problem of the input."""

CHECK_FAILED = "check failed: "
"""The beginning of the message of a failed --check."""

TOO_LITTLE_MEMORY = "this host has not enough memory for"


class Usage(NamedTuple):
    """What a case took: seconds of CPU time, and the most bytes of memory."""

    seconds: float
    peak: int


@dataclass
class Running:
    """Cases that run one after the other in a child process.

    Attributes:
        end: the time at which the child is killed.
    """

    cases: Sequence[Case]
    scratch: Path
    process: int
    end: float = 0.0

    def __post_init__(self) -> None:
        """Give the child the time that its cases may take together."""
        most = sum(seconds_of(each) for each in self.cases)
        self.end = monotonic() + PATIENCE * most

    def poll(self) -> list[Outcome] | None:
        """The outcomes if the child has ended, else None. A child past its time is killed.

        They are those of the first cases, up to the one that ended the child. The rest did not run.
        """
        process, status, usage = os.wait4(self.process, os.WNOHANG)
        if process == 0:
            if monotonic() > self.end:
                self.kill()
            return None
        self.kill_group()
        code = os.waitstatus_to_exitcode(status)
        whole = Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)
        late = monotonic() > self.end
        try:
            found: list[Outcome] = []
            for number, case in enumerate(self.cases):
                scratch = self.scratch / str(number)
                if number and not scratch.exists():
                    break
                found.append(_outcome(case, scratch, code, whole, late))
            return found
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

    def finish(self) -> list[Outcome]:
        """Wait for the outcomes."""
        while (outcomes := self.poll()) is None:
            sleep(POLL)
        return outcomes


def start(cases: Sequence[Case], commands: TyperGroup) -> Running:
    """Start cases, each in a new folder inside the system's folder for temporary files.

    There is one case, unless only the models are read.
    """
    assert len(cases) == 1 or all(each.reads_only for each in cases)
    scratch = Path(tempfile.mkdtemp(prefix="abele-hostile-"))
    sys.stdout.flush()
    sys.stderr.flush()
    # Otherwise the child's garbage collector would visit the parent's whole heap.
    with heap_frozen():
        process = os.fork()
        if process == 0:
            _child(cases, scratch, commands)
    return Running(cases, scratch, process)


def outcome_of(case: Case, commands: TyperGroup) -> Outcome:
    """The outcome of one case in a process of its own."""
    (outcome,) = start([case], commands).finish()
    return outcome


def seconds_of(case: Case) -> int:
    """The most CPU time of a case."""
    return READ_SECONDS if case.reads_only else CPU_SECONDS


def memory_of(case: Case) -> int:
    """The most memory of a case, beside what the parent has mapped."""
    return READ_MEMORY if case.reads_only else MEMORY


# In the child


def _child(cases: Sequence[Case], scratch: Path, commands: TyperGroup) -> NoReturn:
    """Run the cases, write the record of each to a file, and exit."""
    try:
        os.setsid()
        watched = watch_files(scratch, [ROOT])
        for number, case in enumerate(cases):
            folder = scratch / str(number)
            for name in (WORK, HOME, TEMPORARY):
                (folder / name).mkdir(parents=True)
            case.write(folder / WORK)
            _redirect(folder)
            _limit(folder, case)
            before, held = _usage(), _resident()
            watched.begin(folder, [*case.arguments, *case.links])
            record = _command(case, commands)
            after = _usage()
            record |= {"escapes": watched.escapes[:20], "seconds": after.seconds - before.seconds}
            record |= {"peak": after.peak, "grown": after.peak - held}
            _unlimit()
            with open(folder / RECORD, "w") as stream:
                json.dump(record, stream)
        os._exit(0)
    finally:
        os._exit(3)


def _usage() -> Usage:
    """The CPU time of this process and of those that it started, and the most memory of any."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Usage(
        sum(each.ru_utime + each.ru_stime for each in found),
        max(each.ru_maxrss for each in found) << 10,
    )


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


def _limit(scratch: Path, case: Case) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGPROF, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    stack = open(scratch / "stack", "w")
    faulthandler.enable(stack, all_threads=False)
    # It ends the process after the stack is written.
    faulthandler.register(signal.SIGXCPU, stack, all_threads=False, chain=True)
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _set_limit(resource.RLIMIT_CPU, int(used) + seconds_of(case) + 1)
    _set_limit(resource.RLIMIT_AS, _address_space() + memory_of(case))
    _set_limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    _set_limit(resource.RLIMIT_CORE, 0)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
        # The process forgets the most memory that it held until now.
        Path("/proc/self/clear_refs").write_text("5")


def _set_limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (most, hard))


def _unlimit() -> None:
    """Let the process write its record whatever its memory, and take time for the next case."""
    for which in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
        _, hard = resource.getrlimit(which)
        resource.setrlimit(which, (hard, hard))


def _address_space() -> int:
    """The number of bytes that this process has mapped; 0 if the system does not report it."""
    return _pages(0)


def _resident() -> int:
    """The number of bytes of memory that this process holds, with those of its parent."""
    return _pages(1)


def _pages(field: int) -> int:
    try:
        pages = Path("/proc/self/statm").read_text().split()[field]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _command(case: Case, commands: TyperGroup) -> dict[str, Any]:
    try:
        if case.reads_only:
            read_model_of(case)
        else:
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
    if code == 0 and case.compare and not case.reads_only:
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


def _outcome(case: Case, scratch: Path, code: int, whole: Usage, late: bool) -> Outcome:
    """The outcome of a case.

    Args:
        scratch: the folder of the case.
        code: how the child ended.
        whole: what it took for all its cases.
        late: whether it took too much time on the wall.
    """
    message, stack = _read(scratch / "err"), _read(scratch / "stack")
    written = _read(scratch / RECORD)
    record = cast("dict[str, Any]", json.loads(written)) if written else {}
    seconds, peak = record.get("seconds", whole.seconds), record.get("peak", whole.peak)

    def outcome(verdict: Any, site: str = "", text: str = message) -> Outcome:
        return Outcome(verdict, site, text, seconds, peak)

    if not record:
        late = late or code == -signal.SIGXCPU
        verdict = "hang" if late else "crash"
        return outcome(verdict, _stack_site(stack) + ("" if late else f" exit {code}"), stack)
    site = str(record.get("site", ""))
    if seconds >= seconds_of(case):
        return outcome("hang", site or "just in time")
    if record.get("grown", peak) > memory_of(case) or TOO_LITTLE_MEMORY in message:
        return outcome("memory", site)
    if "raised" in record:
        return outcome("traceback", site, str(record["raised"]))
    if record["escapes"]:
        first = str(record["escapes"][0])
        return outcome("escaped", first.replace(str(scratch), "SCRATCH"), str(record["escapes"]))
    exit_code = record["code"]
    # A failed check comes after the outputs, which show what is wrong.
    done = exit_code == 0 or CHECK_FAILED in message
    lost = _lost(case, scratch / WORK, done)
    if lost:
        return outcome("lost", lost)
    if record.get("wrong"):
        return outcome("wrong", _class_of(str(record["wrong"])), str(record["wrong"]))
    if exit_code == 0:
        return outcome("accepted")
    if CHECK_FAILED in message and NOTHING not in message and case.is_source:
        return outcome("wrong", _class_of(message[message.index(CHECK_FAILED) :]))
    if STUMBLED in message:
        return outcome("unclear", site)
    # Wrong usage repeats the words of the command line.
    given = sum(map(len, case.arguments))
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
