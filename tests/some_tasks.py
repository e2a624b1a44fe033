"""Functions of tasks that test executors."""

import os
import signal
import time
from pathlib import Path

from abele.ir.support.errors import InputError
from abele.tools.executors.task import Json, Tell, task_function

MODULE = __name__


@task_function
def square(tell: Tell, number: int) -> Json:
    tell({"half of": number})
    return number * number


@task_function
def process(tell: Tell) -> Json:
    print("a task may print")
    return [os.getpid(), os.environ["OMP_NUM_THREADS"]]


@task_function
def refuse(tell: Tell, text: str) -> Json:
    raise InputError(f"no {text}")


@task_function
def stumble(tell: Tell) -> Json:
    return {}["key"]


@task_function
def allocate(tell: Tell, size: int) -> Json:
    return len(bytearray(size))


@task_function
def die(tell: Tell, tally: str, times: int) -> Json:
    """End the process the first times that it is called; a file counts the calls."""
    with open(tally, "a") as stream:
        stream.write(".")
    if len(Path(tally).read_text()) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@task_function
def wait(tell: Tell, seconds: float, caught: Json = None) -> Json:
    tell("begun")
    try:
        time.sleep(seconds)
    except KeyboardInterrupt:
        if caught is None:
            raise
        return caught
    return "waited"


def unmarked(tell: Tell) -> Json:
    return 1
