"""The pytest plug-in: checks of passes and rules as fixtures, and a summary of what they ran.

    def test_mine(check_pass):
        check_pass(MyPass(), level="nn")

    pytest --rules my_rules.rw              # every rule of a file is tested
    pytest --rules my_rules.rw --prove      # every rule of a file is proved first

pytest loads it wherever abele is installed. So it imports only pytest until a test uses a fixture,
and prints nothing if no test does. With `-v` it lists what the checks ran.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from ...ir.rules import RuleSet
    from ...ir.rules.bound_rule import BoundRule
    from .generators.build import Operators
    from .onnx_tools.campaign import ToolReport
    from .rules.settings import Property, RuleReport
    from .search.report import Report

WRITTEN = "abele_reports"
"""The key under which a worker process sends its reports."""
T = TypeVar("T")
R = TypeVar("R", bound="Report")

REPORTS = pytest.StashKey[list["Report"]]()
FEW = 12
"""The number of least exercised operations in the summary."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the budget of all checks, and the options for testing rule files."""
    group = parser.getgroup("abele", "property tests of compiler passes")
    group.addoption(
        "--abele-examples",
        type=int,
        metavar="N",
        help="number of programs per check",
    )
    group.addoption("--abele-seconds", type=float, metavar="S", help="seconds per check")
    group.addoption("--abele-seed", type=int, metavar="N", help="seed of the programs")
    group.addoption(
        "--abele-reduce-seconds",
        type=float,
        metavar="S",
        help="CPU seconds for making a failing program smaller; default 60, and Ctrl-C ends it",
    )
    group.addoption(
        "--abele-replay",
        type=Path,
        metavar="FOLDER",
        help="check only the program that is saved in a folder",
    )
    group.addoption(
        "--rules",
        action="append",
        default=[],
        metavar="FILE.rw",
        help="test every rule of a file on generated programs; may be given several times",
    )
    group.addoption(
        "--abele-load",
        action="append",
        default=[],
        metavar="FILE",
        help="load a .py with guards, functions or dialects for the rules; this runs it",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks for further tests of rules."""
    from . import rule_hooks  # noqa: PLC0415

    pluginmanager.add_hookspecs(rule_hooks)


def _files(config: pytest.Config, option: str) -> list[str]:
    """The files named by an option."""
    return list(config.getoption(option) or ())


def _budget(config: pytest.Config) -> dict[str, Any]:
    """The options of a check that the command line sets."""
    given = {
        "examples": config.getoption("--abele-examples"),
        "seconds": config.getoption("--abele-seconds"),
        "seed": config.getoption("--abele-seed"),
        "reduce_seconds": config.getoption("--abele-reduce-seconds"),
        "replay": config.getoption("--abele-replay"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _teller(config: pytest.Config) -> Callable[[str], None] | None:
    """A function that writes to the terminal during a test; None in a worker, which has none."""
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if terminal is None:
        return None

    def tell(text: str) -> None:
        with nullcontext() if capture is None else capture.global_and_fixture_disabled():
            terminal.ensure_newline()
            terminal.write_line(text)

    return tell


# Fixtures


def _checker(
    request: pytest.FixtureRequest, function: Callable[..., R], report: Callable[[], R]
) -> Callable[..., R]:
    """A check function with the budget of the command line. The summary shows its report.

    Args:
        report: makes an empty report for a check that is given none.
    """
    config = request.config
    command = f"pytest {shlex.quote(request.node.nodeid)} --abele-replay FOLDER"

    def check(*arguments: Any, **options: Any) -> R:
        __tracebackhide__ = True
        budget = _budget(config)
        # A time limit on the command line replaces the test's own number of programs.
        if "seconds" in budget and "examples" not in budget:
            options.pop("examples", None)
        options = {"command": command, "tell": _teller(config), **options, **budget}
        filled = options.setdefault("report", report())
        filled.name = request.node.nodeid
        reports = config.stash.setdefault(REPORTS, [])
        if not any(each is filled for each in reports):
            reports.append(filled)
        return _without_our_frames(function, *arguments, **options)

    return check


def _without_our_frames(function: Callable[..., T], *given: Any, **keywords: Any) -> T:
    """Call a check, and raise its error at the test's line, without stack frames of the kit."""
    from .search.failures import AtFault, Miscompiled, ToolFailed, Untested  # noqa: PLC0415

    __tracebackhide__ = True
    try:
        return function(*given, **keywords)
    except (AtFault, Miscompiled, ToolFailed, Untested) as failure:
        found = failure
    # The cause keeps its frames: they are the user's own code.
    raise found.with_traceback(None) from found.__cause__


@pytest.fixture
def check_pass(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """abele.tools.testing.check_pass, with the budget of the command line."""
    from .search import pass_check, report  # noqa: PLC0415

    return _checker(request, pass_check.check_pass, report.Report)


@pytest.fixture
def check_pipeline(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """abele.tools.testing.check_pipeline, with the budget of the command line."""
    from .search import pass_check, report  # noqa: PLC0415

    return _checker(request, pass_check.check_pipeline, report.Report)


@pytest.fixture
def check_rule(request: pytest.FixtureRequest) -> Callable[..., RuleReport]:
    """abele.tools.testing.check_rule, with the budget of the command line."""
    from . import rules  # noqa: PLC0415

    return _checker(request, rules.check_rule, rules.RuleReport)


@pytest.fixture
def check_rules(request: pytest.FixtureRequest) -> Callable[..., RuleReport]:
    """abele.tools.testing.check_rules, with the budget of the command line."""
    from . import rules  # noqa: PLC0415

    return _checker(request, rules.check_rules, rules.RuleReport)


@pytest.fixture
def check_onnx_transform(request: pytest.FixtureRequest) -> Callable[..., ToolReport]:
    """abele.tools.testing.check_onnx_transform, with the budget of the command line."""
    from .onnx_tools import campaign, check  # noqa: PLC0415

    return _checker(request, check.check_onnx_transform, campaign.ToolReport)


@pytest.fixture
def check_onnx_runner(request: pytest.FixtureRequest) -> Callable[..., ToolReport]:
    """abele.tools.testing.check_onnx_runner, with the budget of the command line."""
    from .onnx_tools import campaign, check  # noqa: PLC0415

    return _checker(request, check.check_onnx_runner, campaign.ToolReport)


# Files of rules


def pytest_configure(config: pytest.Config) -> None:
    """Collect the files of --rules, and nothing else if no other paths are given."""
    files = _files(config, "--rules")
    for file in files:
        if not file.endswith(".rw"):
            raise pytest.UsageError(
                f"--rules {file}: need a .rw file; test rules in Python with the fixture "
                "check_rules"
            )
    if files and config.args_source != pytest.Config.ArgsSource.ARGS:
        config.args = []
    named = {argument.partition("::")[0] for argument in config.args}
    config.args += [file for file in dict.fromkeys(files) if file not in named]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The collector of a rule file that the command line names."""
    if file_path.suffix == ".rw" and parent.session.isinitpath(file_path):
        return RulesFile.from_parent(parent, path=file_path)
    return None


class RulesFile(pytest.File):
    """A rule file for pytest: its rules, and the operators that programs are generated from."""

    @cached_property
    def loaded(self) -> tuple[RuleSet, Operators]:
        """The checked rules and the operators. Raises InputError."""
        from .rules import rules_of  # noqa: PLC0415

        return rules_of(self.path, _files(self.config, "--abele-load"))

    def collect(self) -> Iterator[pytest.Collector]:
        """One collector per rule."""
        from ...ir.support.errors import InputError  # noqa: PLC0415

        try:
            rules, _ = self.loaded
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for rule in rules.bound:
            yield RuleCollector.from_parent(self, name=rule.name, rule=rule)


class RuleCollector(pytest.Collector):
    """A rule: one test per property."""

    def __init__(self, *, rule: BoundRule, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.rule = rule

    def collect(self) -> Iterator[pytest.Item]:
        """One test per property."""
        from .rules import PROPERTIES  # noqa: PLC0415

        for more in self.ihook.pytest_abele_rule_tests(collector=self):
            yield from more
        for each in PROPERTIES:
            yield RuleItem.from_parent(self, name=each, rule=self.rule)


class RuleItem(pytest.Item):
    """A test of one property of a rule."""

    def __init__(self, *, rule: BoundRule, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.rule = rule

    def runtest(self) -> None:
        """Run the test with the budget of the command line."""
        from .rules import RuleReport, check_rule, lowering_passes  # noqa: PLC0415
        from .rules.rule_check import EXAMPLES  # noqa: PLC0415

        file = self.getparent(RulesFile)
        assert file is not None
        rules, operators = file.loaded
        what: Property = self.name  # pyright: ignore[reportAssignmentType]
        report = RuleReport(name=self.nodeid)
        self.config.stash.setdefault(REPORTS, []).append(report)
        budget: dict[str, Any] = {
            "report": report,
            "tell": _teller(self.config),
            **_budget(self.config),
        }
        if "examples" not in budget and "seconds" not in budget:
            enough = self.ihook.pytest_abele_rule_examples(item=self, examples=EXAMPLES)
            if enough is not None:
                budget["examples"] = enough
                report.spared = EXAMPLES - enough
        check_rule(
            self.rule,
            rules=rules,
            operators=operators,
            lowered_by=lowering_passes(_files(self.config, "--abele-load")),
            properties=(what,),
            command=self._command(),
            **budget,
        )

    def _command(self) -> str:
        load = [
            word for file in _files(self.config, "--abele-load") for word in ("--abele-load", file)
        ]
        return shlex.join(["pytest", self.nodeid, *load, "--abele-replay", "FOLDER"])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure with frames of the user's code and none of the kit."""
        from ...ir.support.errors import InputError  # noqa: PLC0415
        from .rules import NeverFired, RuleFailed, RuleWrong  # noqa: PLC0415

        if isinstance(excinfo.value, RuleWrong | RuleFailed | NeverFired | InputError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The line on which the rule is written."""
        return self.path, self.rule.source.line - 1, f"rule {self.rule.name}: {self.name}"


# The summary


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take the reports of a worker process."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    config: pytest.Config = node.config
    for written in output.get(WRITTEN, ()):
        config.stash.setdefault(REPORTS, []).append(_read(written))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the reports of this process, if it is a worker."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None and REPORTS in session.config.stash:
        output[WRITTEN] = [_written(each) for each in session.config.stash[REPORTS]]


def _written(report: Report) -> dict[str, Any]:
    """A report as plain data, to be sent to another process."""
    written: dict[str, Any] = {}
    for name, value in vars(report).items():
        counted = isinstance(value, Counter)
        written[name] = list(cast("Counter[Any]", value).items()) if counted else value
    return written


def _read(written: dict[str, Any]) -> Report:
    from .rules import RuleReport  # noqa: PLC0415

    report = RuleReport()
    for name, value in written.items():
        counted = isinstance(getattr(report, name, None), Counter)
        setattr(report, name, Counter[Any](dict(value)) if counted else value)
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print how many programs the checks of this session changed; with -v, all that they ran."""
    if REPORTS not in config.stash:
        return
    reports = config.stash[REPORTS]
    examples = sum(report.examples for report in reports)
    seconds = sum(report.seconds for report in reports)
    changed = sum(report.changed for report in reports)
    checks = "1 check" if len(reports) == 1 else f"{len(reports)} checks"
    terminalreporter.line(
        f"abele: {checks} changed {changed} of {examples} programs in {seconds:.1f} s"
    )
    spared = [each for report in reports if (each := getattr(report, "spared", 0))]
    if spared:
        rules = "1 rule" if len(spared) == 1 else f"{len(spared)} rules"
        terminalreporter.line(f"abele: proofs of {rules} spared {sum(spared)} programs")
    if config.get_verbosity() <= 0:
        return
    terminalreporter.section("abele: programs")
    total: Counter[tuple[str, str, str]] = Counter()
    for report in reports:
        total.update(report.exercised)
        terminalreporter.line(f"{report.name}: {report}")
    for level in dict.fromkeys(level for _, level, _ in total):
        of_level = {key: count for key, count in total.items() if key[1] == level}
        by_op: Counter[str] = Counter()
        by_element: Counter[str] = Counter()
        for (op, _, element), count in of_level.items():
            by_op[op.partition(".")[2]] += count
            by_element[element or "none"] += count
        elements = ", ".join(f"{name} {count}" for name, count in by_element.most_common(8))
        terminalreporter.line(f"{level}: {len(by_op)} operations; {elements}")
        least = ", ".join(f"{name} {count}" for name, count in by_op.most_common()[: -FEW - 1 : -1])
        terminalreporter.line(f"  least: {least}")
    _rules_summary(terminalreporter, reports)


def _rules_summary(terminalreporter: pytest.TerminalReporter, reports: Sequence[Report]) -> None:
    """Print how often each rule fired, and how often its guards were true and false."""
    fired: Counter[str] = Counter()
    guards: Counter[tuple[str, str, bool]] = Counter()
    for report in reports:
        fired.update(getattr(report, "fired", {}))
        guards.update(getattr(report, "guards", {}))
    if not fired and not guards:
        return
    terminalreporter.section("abele: rules")
    for name in dict.fromkeys((*fired, *(rule for rule, _, _ in guards))):
        terminalreporter.line(f"{name}: fired {fired[name]}")
        for text in dict.fromkeys(text for rule, text, _ in guards if rule == name):
            yes, no = guards[name, text, True], guards[name, text, False]
            remark = "" if yes and no else "  <- never seen " + ("false" if yes else "true")
            terminalreporter.line(f"  {text}: true {yes}, false {no}{remark}")
