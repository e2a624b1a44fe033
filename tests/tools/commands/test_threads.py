"""How commands are told the number of threads."""

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from abele.backends.host import cores
from abele.backends.host.cores import VARIABLE
from abele.backends.host.threads import THREADS, using
from abele.tools.cli import app
from abele.tools.commands import threads
from abele.tools.commands.threads import use_threads


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (cores, threads):
        monkeypatch.setattr(module, "cores", lambda: 2)
    monkeypatch.setenv(VARIABLE, "1")
    with using(1):
        yield


def test_an_option_counts_more_than_the_environment(monkeypatch: pytest.MonkeyPatch):
    use_threads(2)
    assert THREADS.count == 2
    use_threads(None)
    # Processes that this one starts use as many.
    assert THREADS.count == 2
    monkeypatch.setenv(VARIABLE, "1")
    use_threads(None)
    assert THREADS.count == 1


def test_more_threads_than_cores_are_as_many_as_the_cores(capsys: pytest.CaptureFixture[str]):
    use_threads(64)
    assert THREADS.count == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "note: --threads 64: abele may use 2 cores, and uses them"


@pytest.mark.parametrize("count", ["0", "-1", "two"])
def test_what_is_no_number_of_threads_is_refused(count: str, monkeypatch: pytest.MonkeyPatch):
    assert CliRunner().invoke(app, ["run", "x.onnx", "--threads", count]).exit_code == 2
    monkeypatch.setenv(VARIABLE, count)
    for command in (["run", "x.onnx"], ["bisect", "x.onnx"], ["demo"]):
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == 2
        assert f"error: ABELE_THREADS: '{count}' threads; need a whole number" in refused.output
