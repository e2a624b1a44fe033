"""A command that a signal ends leaves no part of a file behind."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from abele.tools.commands.signals import delayed

WRITING = """
from pathlib import Path
import signal, sys, time
from abele.ir.support.whole_file import whole_file
from abele.tools import cli

def write(**options):
    with whole_file(Path(sys.argv[1])) as stream:
        stream.write(b"half")
        print("writing", flush=True)
        time.sleep(60)

# Under nohup, tests inherit that SIGHUP is ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
cli.app = write
cli.main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_file_is_written_leaves_none(tmp_path: Path, number: signal.Signals):
    command = [sys.executable, "-c", WRITING, str(tmp_path / "p.abele")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert not list(tmp_path.iterdir())


def test_a_signal_that_is_ignored_stays_so():
    script = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from abele.tools.commands.signals import end_by_exception; end_by_exception()\n"
        "signal.raise_signal(signal.SIGHUP)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_delayed_signal_takes_effect_at_the_end_of_the_block():
    # A process that a shell began in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        with delayed():
            signal.raise_signal(signal.SIGINT)
            done.append("written")
        done.append("not reached")
    assert done == ["written"]
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
