import pytest

from abele.backends.host.cores import cores
from abele.ir.support.errors import InputError
from abele.tools.executors.limits import Limits
from abele.tools.executors.local import Local
from abele.tools.executors.named import executor_of


@pytest.mark.parametrize("name", ["here", "local:1", "local:7", "dask://a.b:8786", "dask-local:3"])
def test_a_name_is_read_back(name: str):
    assert executor_of(name).name == name


def test_by_default_there_is_one_process_per_core():
    assert executor_of().workers == cores()


def test_limits_reach_the_executor():
    limits = Limits(2.0, 1 << 30)
    executor = executor_of("local:1", limits)
    assert isinstance(executor, Local)
    assert executor.limits == limits


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "need one of: local:N"),
        ("locale:2", "executor 'locale:2': need one of"),
        ("local:0", "need local:N, with N in 1..1024"),
        ("local:-1", "need local:N"),
        ("local:two", "need local:N"),
        ("local:99999999999", "need local:N"),
        ("local:1025", "need local:N"),
        ("here:2", "need here, which has one worker"),
        ("dask-local:0", "executor dask-local:0: need dask-local:N"),
        *(
            (f"dask:{rest}", "need dask://HOST:PORT")
            for rest in ("", "a:1", "//a", "//:1", "//a:0", "//a:65536", "//a:x", "//a/b:1")
        ),
    ],
)
def test_a_wrong_name_is_refused_with_what_is_allowed(name: str, problem: str):
    with pytest.raises(InputError, match=problem):
        executor_of(name)
