"""The pytest plug-in: checks of passes and rules as fixtures, and what they have exercised.

    def test_mine(check_pass):
        check_pass(MyPass(), level="nn")

    pytest --rules my_rules.rw      # every rule of a file is tested

pytest loads it wherever abele is installed. So it imports nothing but pytest until a fixture is
asked for, and says nothing where none has been.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from ...ir.rules import RuleSet
    from ...ir.rules.law import Law
    from .generators.build import Operators
    from .rules.check import Property
    from .search.checks import Report

WRITTEN = "abele_reports"
"""Under which name a process hands on its reports."""
T = TypeVar("T")

REPORTS = pytest.StashKey[list["Report"]]()
FEW = 12
"""How many operations the summary names of those that were exercised least."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The budget of all checks, and the program of a single one."""
    group = parser.getgroup("abele", "property tests of compiler passes")
    group.addoption(
        "--abele-examples", type=int, metavar="N", help="programs for each check (100 or its own)"
    )
    group.addoption(
        "--abele-seconds", type=float, metavar="S", help="seconds after which a check ends"
    )
    group.addoption("--abele-seed", type=int, metavar="N", help="seed of the programs")
    group.addoption(
        "--abele-replay", metavar="FOLDER", help="check the program saved in a folder, no others"
    )
    group.addoption(
        "--rules",
        action="append",
        default=[],
        metavar="FILE.rw",
        help="test every rule of a file on programs made from it; may be given several times",
    )
    group.addoption(
        "--abele-load",
        action="append",
        default=[],
        metavar="FILE",
        help="what the rules need: a .py with guards, functions or dialects; running it",
    )


def _files(config: pytest.Config, option: str) -> list[str]:
    """The files that an option has named."""
    return list(config.getoption(option) or ())


def _budget(config: pytest.Config) -> dict[str, Any]:
    """What the command line says of examples, seconds and the seed."""
    options = {
        what: config.getoption(f"--abele-{what}") for what in ("examples", "seconds", "seed")
    }
    return {what: value for what, value in options.items() if value is not None}


# Fixtures


def _checker(request: pytest.FixtureRequest, name: str) -> Callable[..., Report | None]:
    """The function of that name, with the budget of the command line for whatever a call leaves
    open, and the command that replays this test."""
    from .search import checks  # noqa: PLC0415

    config = request.config
    function: Callable[..., Report] = getattr(checks, name)
    replay: str | None = config.getoption("--abele-replay")

    def check(*arguments: Any, **keywords: Any) -> Report | None:
        __tracebackhide__ = True
        if replay is not None:
            _without_our_frames(checks.replay, Path(replay), *arguments, **keywords)
            return None
        report = _without_our_frames(function, *arguments, **_given(request, keywords))
        config.stash.setdefault(REPORTS, []).append(report)
        return report

    return check


def _without_our_frames(function: Callable[..., T], *given: Any, **keywords: Any) -> T:
    """Call a check; what it finds is told at the test's line: how it was found says nothing."""
    from .search.failures import AtFault, Miscompiled  # noqa: PLC0415

    __tracebackhide__ = True
    try:
        return function(*given, **keywords)
    except (AtFault, Miscompiled) as failure:
        found = failure
    # The cause is kept: it is the user's own code.
    raise found.with_traceback(None) from found.__cause__


def _given(request: pytest.FixtureRequest, keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a check: a budget that is asked for now is in place of the test's own."""
    given = _budget(request.config)
    if "seconds" in given and "examples" not in given:
        keywords.pop("examples", None)
    command = f"pytest {shlex.quote(request.node.nodeid)} --abele-replay FOLDER"
    return {"command": command, **keywords, **given}


@pytest.fixture
def check_pass(request: pytest.FixtureRequest) -> Callable[..., Report | None]:
    """abele.tools.testing.check_pass, with the budget of the command line."""
    return _checker(request, "check_pass")


@pytest.fixture
def check_pipeline(request: pytest.FixtureRequest) -> Callable[..., Report | None]:
    """abele.tools.testing.check_pipeline, with the budget of the command line."""
    return _checker(request, "check_pipeline")


def _rule_checker(request: pytest.FixtureRequest, name: str) -> Callable[..., Report]:
    from . import rules  # noqa: PLC0415

    config = request.config
    function: Callable[..., Report] = getattr(rules, name)
    replay: str | None = config.getoption("--abele-replay")

    def check(*arguments: Any, **keywords: Any) -> Report:
        __tracebackhide__ = True
        given = _given(request, keywords)
        if replay is not None:
            given["replay"] = Path(replay)
        report = given.setdefault("report", rules.RuleReport())
        reports = config.stash.setdefault(REPORTS, [])
        if not any(each is report for each in reports):
            reports.append(report)
        return _without_our_frames(function, *arguments, **given)

    return check


@pytest.fixture
def check_rule(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """abele.tools.testing.rules.check_rule, with the budget of the command line."""
    return _rule_checker(request, "check_rule")


@pytest.fixture
def check_rules(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """abele.tools.testing.rules.check_rules, with the budget of the command line."""
    return _rule_checker(request, "check_rules")


# Files of rules


def pytest_configure(config: pytest.Config) -> None:
    """Let the files of --rules be collected: alone, where no other paths were given."""
    files = _files(config, "--rules")
    for file in files:
        if not file.endswith(".rw"):
            raise pytest.UsageError(
                f"--rules {file}: need a file of rules, .rw; rules in Python are tested by the "
                "fixture check_rules"
            )
    if files and config.args_source != pytest.Config.ArgsSource.ARGS:
        config.args = []
    named = {argument.partition("::")[0] for argument in config.args}
    config.args += [file for file in dict.fromkeys(files) if file not in named]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The rules of a file that was named."""
    if file_path.suffix == ".rw" and parent.session.isinitpath(file_path):
        return RulesFile.from_parent(parent, path=file_path)
    return None


class RulesFile(pytest.File):
    """The rules of a file, with the operators that programs are made of."""

    @cached_property
    def loaded(self) -> tuple[RuleSet, Operators]:
        """The rules, checked. Raises InputError."""
        from .rules import rules_of  # noqa: PLC0415

        return rules_of(self.path, _files(self.config, "--abele-load"))

    def collect(self) -> Iterator[pytest.Collector]:
        """One collector a rule."""
        from ...ir.errors import InputError  # noqa: PLC0415

        try:
            rules, _ = self.loaded
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for law in rules.laws:
            yield RuleCollector.from_parent(self, name=law.name, law=law)


class RuleCollector(pytest.Collector):
    """A rule; one test for each property."""

    def __init__(self, *, law: Law, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.law = law

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each property."""
        from .rules import PROPERTIES  # noqa: PLC0415

        for each in PROPERTIES:
            yield RuleItem.from_parent(self, name=each, law=self.law)


class RuleItem(pytest.Item):
    """A rule has a property."""

    def __init__(self, *, law: Law, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.law = law

    def runtest(self) -> None:
        """Test it, with the budget of the command line."""
        from .rules import RuleReport, check_rule  # noqa: PLC0415

        file = self.getparent(RulesFile)
        assert file is not None
        rules, operators = file.loaded
        replay: str | None = self.config.getoption("--abele-replay")
        what: Property = self.name  # pyright: ignore[reportAssignmentType]
        report = RuleReport()
        self.config.stash.setdefault(REPORTS, []).append(report)
        budget: dict[str, Any] = {"report": report, **_budget(self.config)}
        check_rule(
            self.law,
            rules=rules,
            operators=operators,
            properties=(what,),
            command=self._command(),
            replay=None if replay is None else Path(replay),
            **budget,
        )

    def _command(self) -> str:
        load = [
            word for file in _files(self.config, "--abele-load") for word in ("--abele-load", file)
        ]
        return shlex.join(["pytest", self.nodeid, *load, "--abele-replay", "FOLDER"])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is wrong, without a traceback through the kit, but with one of the user's code."""
        from ...ir.errors import InputError  # noqa: PLC0415
        from .rules import NeverFired, RuleFailed, RuleWrong  # noqa: PLC0415

        if isinstance(excinfo.value, RuleWrong | RuleFailed | NeverFired | InputError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the rule is written."""
        return self.path, self.law.source.line - 1, f"rule {self.law.name}: {self.name}"


# The summary


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take what the checks of one of several processes have exercised."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    config: pytest.Config = node.config
    for written in output.get(WRITTEN, ()):
        config.stash.setdefault(REPORTS, []).append(_read(written))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand on what the checks of this process have exercised, if it is one of several."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None and REPORTS in session.config.stash:
        output[WRITTEN] = [_written(each) for each in session.config.stash[REPORTS]]


def _written(report: Report) -> dict[str, Any]:
    """A report as processes can send it to each other."""
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
    """What the checks of this session have exercised."""
    if REPORTS not in config.stash:
        return
    reports = config.stash[REPORTS]
    total: Counter[tuple[str, str, str]] = Counter()
    for report in reports:
        total.update(report.exercised)
    terminalreporter.section("abele: programs")
    examples = sum(report.examples for report in reports)
    seconds = sum(report.seconds for report in reports)
    changed = sum(report.changed for report in reports)
    terminalreporter.line(
        f"{len(reports)} checks, {examples} programs in {seconds:.1f} s, {changed} of them changed"
    )
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
    _tell_rules(terminalreporter, reports)


def _tell_rules(terminalreporter: pytest.TerminalReporter, reports: Sequence[Report]) -> None:
    """How often each rule has fired, and how its guards were answered."""
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
