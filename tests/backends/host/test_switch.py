"""Which form of kernels is used, and what forces it."""

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from abele.backends.evaluate.binder import Binder
from abele.backends.host import processor as processors
from abele.backends.host import switch
from abele.backends.host.binders import best_binder
from abele.backends.host.processor import Processor
from abele.backends.host.switch import FORMS, OLD_VARIABLE, PLAIN, VARIABLE, choice, is_wanted
from abele.ir.errors import InputError
from abele.tools.cli import app

pytest.importorskip("numba")

WIDE = Processor("x86_64", "znver4", "+avx2,+fma,+f16c,+avx512f,+avx512bw")
NARROW = Processor("x86_64", "haswell", "+avx2,+fma,+f16c,-avx512f")
OLDER = Processor("x86_64", "sandybridge", "+avx,-f16c,-fma,-avx2")
ARM = Processor("aarch64", "apple-m1", "+neon")


@pytest.fixture(autouse=True)
def _nothing_is_forced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in (VARIABLE, OLD_VARIABLE, processors.NAME, processors.FEATURES):
        monkeypatch.delenv(variable, raising=False)
    caches = switch._choice, switch._replaced, processors._processor
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


def on(host: Processor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "host", lambda: host)


@pytest.mark.parametrize(
    ("host", "name"), [(WIDE, "wide"), (NARROW, "narrow"), (ARM, "narrow"), (OLDER, PLAIN)]
)
def test_the_processor_decides_where_nothing_forces_a_form(
    host: Processor, name: str, monkeypatch: pytest.MonkeyPatch
):
    on(host, monkeypatch)
    assert choice().name == name
    assert is_wanted() == (name != PLAIN)


@pytest.mark.parametrize("host", [WIDE, NARROW, ARM])
@pytest.mark.parametrize("form", FORMS.values(), ids=str)
def test_each_form_can_be_forced_on_each_host(host, form, monkeypatch: pytest.MonkeyPatch):
    on(host, monkeypatch)
    monkeypatch.setenv(VARIABLE, form.name)
    assert choice().form == form


def test_the_narrow_form_is_compiled_as_for_a_host_without_wide_vectors(
    monkeypatch: pytest.MonkeyPatch,
):
    on(WIDE, monkeypatch)
    monkeypatch.setenv(VARIABLE, "narrow")
    found = choice().processor
    assert found is not None
    assert not found.has("avx512f")
    assert found.has("avx2", "fma", "f16c")


def test_the_wide_form_is_compiled_for_what_the_host_has(monkeypatch: pytest.MonkeyPatch):
    on(NARROW, monkeypatch)
    monkeypatch.setenv(VARIABLE, "wide")
    assert choice().processor == NARROW


def test_without_kernels_numpy_makes_the_calls(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, PLAIN)
    assert best_binder() is Binder
    assert choice().reason == "ABELE_KERNELS says so"


def test_without_numba_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(switch, "find_spec", lambda name: None)
    assert choice().name == PLAIN
    assert "numba" in choice().reason
    monkeypatch.setenv(VARIABLE, "wide")
    with pytest.raises(InputError, match="^ABELE_KERNELS: this host cannot run .* numba"):
        choice()


def test_a_host_without_the_instructions_that_kernels_need_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
):
    on(OLDER, monkeypatch)
    assert choice().reason == "the processor has no avx2 and no fma and no f16c"
    monkeypatch.setenv(VARIABLE, "narrow")
    with pytest.raises(InputError, match=r"has no avx2 .* unset ABELE_KERNELS, or set it to plain"):
        choice()


def test_a_form_that_does_not_exist_is_one_message(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "broad")
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 2
    # It comes before all work.
    assert done.output == (
        "error: ABELE_KERNELS: no form of kernels is called 'broad'; need wide, narrow, plain\n"
    )


@pytest.mark.parametrize(("old", "name"), [("0", PLAIN), ("1", "wide"), ("", "wide")])
def test_the_old_variable_still_works_with_a_warning(
    old: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    on(WIDE, monkeypatch)
    monkeypatch.setenv(OLD_VARIABLE, old)
    assert [choice().name for _ in range(2)] == [name] * 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: ABELE_FAST is not read after 2027-")
    assert "ABELE_KERNELS" in line


def test_the_new_variable_counts_more_than_the_old_one(monkeypatch: pytest.MonkeyPatch):
    on(WIDE, monkeypatch)
    monkeypatch.setenv(OLD_VARIABLE, "0")
    monkeypatch.setenv(VARIABLE, "narrow")
    assert choice().name == "narrow"
