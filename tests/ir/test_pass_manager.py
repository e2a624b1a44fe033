import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from some_passes import REGISTRY, Append, Chooses, Crash, NeedsTable, Nothing
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.pass_manager import (
    Instrument,
    PassManager,
    RunningPass,
    check_options,
    parse_pipeline,
    parse_specs,
    pipeline_spec,
)


class Log(Instrument):
    def __init__(self, name: str, log: list[str], fail_after: str = "") -> None:
        self.name = name
        self.log = log
        self.fail_after = fail_after

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        self.log.append(f"{self.name} before {step.current.name}")

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        self.log.append(f"{self.name} after {step.current.name}")
        if step.current.name == self.fail_after:
            raise ValueError("an instrument objects")

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        self.log.append(f"{self.name} failed {step.current.name}: {type(error).__name__}")


def test_passes_run_in_order_on_the_module_itself():
    module = ModuleOp([])
    PassManager((Append(1), Append(2))).run(AbeleContext(), module)
    assert len(module.body.block.ops) == 3


def test_instruments_nest():
    log: list[str] = []
    PassManager((Nothing(),), (Log("outer", log), Log("inner", log))).run(
        AbeleContext(), ModuleOp([])
    )
    assert log == [
        "outer before nothing",
        "inner before nothing",
        "inner after nothing",
        "outer after nothing",
    ]


def test_every_instrument_is_called_for_a_failing_pass_and_later_passes_do_not_run():
    log: list[str] = []
    manager = PassManager((Nothing(), Crash(), Append()), (Log("a", log), Log("b", log)))
    with pytest.raises(RuntimeError, match="half way") as caught:
        manager.run(AbeleContext(), ModuleOp([]))
    assert caught.value.__notes__ == ["in pass 'crash' (2 of 3)"]
    assert log[4:] == [
        "a before crash",
        "b before crash",
        "b failed crash: RuntimeError",
        "a failed crash: RuntimeError",
    ]


def test_an_instrument_that_raises_fails_the_pass():
    log: list[str] = []
    manager = PassManager((Nothing(),), (Log("a", log), Log("b", log, fail_after="nothing")))
    with pytest.raises(ValueError, match="an instrument objects"):
        manager.run(AbeleContext(), ModuleOp([]))
    assert log[2:] == [
        "b after nothing",
        "b failed nothing: ValueError",
        "a failed nothing: ValueError",
    ]


@pytest.mark.parametrize(
    ("spec", "passes"),
    [
        ("", ()),
        ("append", (Append(),)),
        ("append{count=3},nothing", (Append(3), Nothing())),
        (" append ", (Append(),)),
        ("nothing{rate=1e-3}", (Nothing(rate=1e-3),)),
        ("nothing{rate=1}", (Nothing(rate=1.0),)),
        ("nothing{rate=-2.5e2}", (Nothing(rate=-250.0),)),
        ("nothing{fractions=1,2.5,1e-3}", (Nothing(fractions=(1.0, 2.5, 1e-3)),)),
        ("nothing{limit=4 sizes=1,2 keep-order=true}", (Nothing(0.5, 4, (1, 2), (), True),)),
        ('nothing{label="1e-3"}', (Nothing(label="1e-3"),)),
        ("nothing{either=3}", (Nothing(either=3),)),
        ("nothing{label=tiny:8}", (Nothing(label="tiny:8"),)),
        ("nothing{limit=4 label=a/b-c.d:2}", (Nothing(limit=4, label="a/b-c.d:2"),)),
        ("nothing{label=./x rate=0.25},append", (Nothing(0.25, label="./x"), Append())),
        ("nothing{label=*}", (Nothing(label="*"),)),
        ("nothing{label=conv*/x+relu-1 limit=4}", (Nothing(limit=4, label="conv*/x+relu-1"),)),
    ],
)
def test_a_pipeline_is_read_from_text(spec: str, passes: tuple[ModulePass, ...]):
    read = parse_pipeline(spec, REGISTRY)
    assert read == passes
    assert [repr(each) for each in read] == [repr(each) for each in passes]


@given(
    st.builds(
        Nothing,
        rate=st.floats(allow_nan=False, allow_infinity=False)
        | st.integers(-300, 300).map(lambda exponent: float(f"1e{exponent}")),
        limit=st.none() | st.integers(),
        sizes=st.lists(st.integers(), max_size=3).map(tuple),
        fractions=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3).map(tuple),
        keep_order=st.booleans(),
        label=st.text("abc 123/-*+{}=,"),
    )
)
@example(Nothing(rate=1e16))
@example(Nothing(rate=-1e-5))
@example(Nothing(label="=1e5,"))
def test_the_text_of_a_pipeline_parses_to_the_same_pipeline(made: Nothing):
    passes = (made, Append(2))
    assert parse_pipeline(pipeline_spec(passes), REGISTRY) == passes


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("apend", r"^no pass 'apend'; did you mean append\?"),
        ("zzz", r"^no pass 'zzz'; there are append, break, chooses, crash, elsewhere, needs-limit"),
        ("append{count=1,7.5.1}", r"count': 1,7.5.1; need an integer$"),
        ("append{cuont=1}", r"^pass 'append': no option 'cuont'; did you mean count\?"),
        ("break{x=1}", r"^pass 'break': no option 'x'; there are none"),
        ("append{count=a}", r"^pass 'append': option 'count': a; need an integer$"),
        ("append{count=1,2}", r"^pass 'append': option 'count': 1,2; need an integer$"),
        ("nothing{limit=1.5}", r"option 'limit': 1.5; need an integer or none$"),
        ("nothing{sizes=1,x}", r"option 'sizes': 1,x; need a list a,b,... of integers$"),
        ("nothing{keep-order=1}", r"option 'keep-order': 1; need true or false$"),
        ("nothing{keep-order}", r"option 'keep-order': nothing; need true or false$"),
        ("needs-limit", r"^pass 'needs-limit': option 'limit' is required: an integer$"),
        ('append{count="7"}', "option 'count': \"7\" is text; need an integer: drop the quotes$"),
        ("chooses{how=c}", r"^pass 'chooses': option 'how': c; need one of a, b$"),
        ("append{count=1", r"^pipeline 'append\{count=1': "),
        ("append;nothing", r"^pipeline 'append;nothing': "),
    ],
)
def test_the_error_for_a_bad_pipeline_says_what_is_wrong(spec: str, message: str):
    with pytest.raises(InputError, match=message):
        parse_pipeline(spec, REGISTRY)


def test_a_pass_with_an_option_of_a_type_that_pipelines_cannot_express_is_refused():
    with pytest.raises(
        InputError, match=r"'needs-table': option 'most-of' has type dict\[str, int\],"
    ):
        check_options(NeedsTable)
    check_options(Chooses)


def test_only_the_passes_named_are_imported():
    parse_pipeline("append", REGISTRY)
    with pytest.raises(ModuleNotFoundError):
        parse_pipeline("elsewhere", REGISTRY)


@given(st.text(alphabet="append{}=,;\"'[] 1e-", max_size=20))
def test_any_text_is_a_pipeline_or_an_input_error(spec: str):
    try:
        parse_pipeline(spec, REGISTRY)
    except InputError:
        pass


def test_long_integers_in_a_pipeline_are_refused():
    for text in ("a{b=" + "9" * 5000 + "}", "a{b=-" + "9" * 5000 + "}"):
        with pytest.raises(InputError, match=r"pipeline 'a{b=.*\.\.\.': Exceeds the limit"):
            parse_specs(text)
