"""Rules, tested on programs made from their own left side, and on those that they all but fit.

A rule has to fire wherever its text says that it fits, and the program must mean the same
afterwards; where its text says that it does not fit, it must not fire. What the text says is read
by reading.py, which shares nothing with the matcher.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from time import monotonic
from typing import Literal, TypeAlias

from xdsl.ir import Operation

from ....ir.errors import DoesNotFit, InputError
from ....ir.pass_manager import parse_pipeline
from ....ir.provenance import place
from ....ir.rewriting import Source, Watcher, watched
from ....ir.rules import PythonRule, RuleSet, Vocabulary, bind_python_rules
from ....ir.rules.evaluate import CallFailed
from ....ir.rules.law import Law
from ....ir.rules.match import match_law
from ....ir.rules.samples import Sampler
from ....ir.upstream import ModuleOp, ModulePass, VerifyException
from ....ir.verify import verify
from ....passes.pipelines import DOWN, LEVELS, PASSES, expand
from ...program import level_of, new_context
from ..build import Operators, build, default_operators
from ..checks import LIMIT, SHRINKING, Refused, Report, disagreement, exercised, invalid
from ..failures import Miscompiled, PassFailed, Wrong
from ..levels import at_level
from ..limits import TooLong, at_most
from ..oracles import Outcome, bounded_run
from ..program import Program
from ..shrink import smallest
from ..sketch import DATA, Data, edges, machine_of, random_sketch
from .embed import Flow, Instance, Style, Unsuited, embedded
from .misses import MISSES, missed, retyped
from .reading import Fit, fit, misfit, places_of, unmet
from .watch import watching_rules

Property: TypeAlias = Literal["keeps_the_meaning", "fires_only_where_it_fits"]
"""What is tested of a rule: programs from its left side, or those that it all but fits."""

PROPERTIES: tuple[Property, ...] = ("keeps_the_meaning", "fires_only_where_it_fits")

EXAMPLES = 60
"""Programs for each property of a rule."""
ROUNDS = 40
"""How often samples of a rule are looked for, with other sizes each time."""
FRUITLESS = 5
"""After how many rounds without one a rule is one of which no samples are made."""
SAMPLES = 8
"""How many samples are made in a round."""
EMBEDDED = 4
"""How many programs a sample is put into."""
SEARCHED = 400
"""How many generated programs are looked through for a rule of which no samples are made."""
FALSIFIED = 300
"""How many operations are tried for a guard that does not hold, in a round."""
MOST = 3
"""How many programs are tried for each that can be run."""
TARGETS = ("tiny:1", "tiny:4", "tiny:7")


@dataclass
class RuleReport(Report):
    """What a check of rules has looked at.

    fired: how often each rule has, by its name. guards: how often each guard was answered so, by
    the rule's name, the guard's text and the answer. misses: programs that a rule all but fits, by
    what was changed in them.
    """

    fired: Counter[str] = field(default_factory=Counter[str])
    guards: Counter[tuple[str, str, bool]] = field(default_factory=Counter[tuple[str, str, bool]])
    misses: Counter[str] = field(default_factory=Counter[str])

    def add(self, other: RuleReport) -> None:
        """Take what another check has looked at as well."""
        for name in ("examples", "refused", "changed", "undecided", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("exercised", "fired", "guards", "misses"):
            getattr(self, name).update(getattr(other, name))


class RuleWrong(Miscompiled):
    """A rule changes what a program means, or does not fire exactly where it fits.

    program: the smallest found, before the rule. made: what the rule has made of it, as text.
    """

    def __init__(
        self,
        law: Law,
        program: Program,
        wrong: Wrong,
        made: str = "",
        folder: Path | None = None,
        command: str = "",
        examples: int = 0,
    ) -> None:
        self.law = law
        self.made = made
        super().__init__(
            program, wrong, (law.name,), law.name, str(law.source), folder, command, examples
        )

    def _text(self) -> str:
        after = f", example {self.examples}" if self.examples else ""
        lines = [f"rule {self.law.source}{after}: {self.wrong.text}", "", self.law.text.rstrip()]
        lines += ["", f"The program, on {self.program.target.spelling()}:", ""]
        lines.append(self.program.text.rstrip())
        if self.made:
            lines += ["", "What the rule makes of it:", "", self.made.rstrip()]
        return "\n".join([*lines, *_ending(self.folder, self.command)])


class RuleFailed(PassFailed):
    """A rule is at fault itself: what is written in Python raises or hangs, or its right side
    cannot be built. Its own error is the cause."""

    def __init__(
        self,
        law: Law,
        program: Program,
        problem: str,
        folder: Path | None = None,
        command: str = "",
    ) -> None:
        super().__init__(program, law.name, problem, folder, command)
        self.law = law
        lines = [f"rule {law.source} {problem}", "", law.text.rstrip(), ""]
        lines += [f"The program, on {program.target.spelling()}:", "", program.text.rstrip()]
        self.args = ("\n".join([*lines, *_ending(folder, command)]),)


class NeverFired(AssertionError):
    """No program was found that a rule fits, so nothing is known of it."""


def _ending(folder: Path | None, command: str) -> list[str]:
    lines = ["", f"saved in {folder}"] if folder is not None else []
    return [*lines, f"replay: {command}"] if command else lines


def check_rules(
    tested: RuleSet | str | os.PathLike[str],
    *,
    load: Sequence[str | os.PathLike[str]] = (),
    only: Sequence[str] = (),
    **budget: object,
) -> RuleReport:
    """Test every rule of a set, or of a file with rules, as check_rule does.

    load: files that the rules need, with guards, functions or dialects. only: names of rules.
    budget: what check_rule takes beside. Raises what check_rule raises, for the first rule that is
    wrong.
    """
    rules, operators = (
        (tested, default_operators()) if isinstance(tested, RuleSet) else rules_of(tested, load)
    )
    report = RuleReport()
    for law in rules.chosen(only).laws:
        found = check_rule(law, rules=rules, operators=operators, **budget)  # pyright: ignore[reportArgumentType]
        report.add(found)
    return report


def rules_of(
    path: str | os.PathLike[str], load: Sequence[str | os.PathLike[str]] = ()
) -> tuple[RuleSet, Operators]:
    """The rules of a file, checked, and the operators that programs are made of.

    Loading a .py runs it. Raises InputError.
    """
    # Users' files bring importers and all else that abele can be extended by.
    from ...extensions import load_extensions  # noqa: PLC0415

    extensions = load_extensions([*load, path])
    name = Path(path).stem.replace("_", "-")
    made = extensions.passes[name]
    found = getattr(made, "rule_set", None)
    if found is None:
        raise InputError(f"{path}: no rules; need some in a .rw, or functions with @rewrite")
    rules: RuleSet = found()
    if not extensions.dialects:
        return rules, default_operators()
    return rules, Operators(extensions.context())


def check_rule(
    tested: Law | PythonRule,
    *,
    rules: RuleSet | None = None,
    operators: Operators | None = None,
    properties: Sequence[Property] = PROPERTIES,
    examples: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    data: Sequence[Data] = DATA,
    limit: float = LIMIT,
    folder: Path | None = None,
    command: str = "",
    replay: Path | None = None,
) -> RuleReport:
    """Test one rule on programs made from its left side, and on those that it all but fits.

    tested: a rule of a set, or a function under @rewrite. rules: the set that it is of: a lower is
    applied along with all others of its set, and what they leave goes down by abele's own passes.
    operators: of a context with the rule's dialects; abele's own if None. properties: which of them
    to test. examples: programs for each. seconds: after these no more are begun. seed: of the
    programs; any if None, but 0 where the environment has CI. data: the kinds of values. limit:
    seconds for one program. folder, command: as in check_pass. replay: a folder with the one
    program to be looked at.
    Raises RuleWrong, which is a Miscompiled, RuleFailed, which is a PassFailed, NeverFired where no
    program is found that the rule fits, and InputError where none of them can be run.
    """
    known = operators or default_operators()
    if isinstance(tested, PythonRule):
        rules = bind_python_rules([tested], known.instances.vocabulary)
        (law,) = rules.laws
    else:
        law = tested
        rules = rules or RuleSet((law,), known.instances.vocabulary)
    if seed is None:
        seed = 0 if os.environ.get("CI") else Random().randrange(1 << 32)
    check = _Check(law, rules, known, seed, tuple(data), limit, folder, command)
    if replay is not None:
        check.again(replay)
        return check.report
    begin = monotonic()
    count = examples or (1_000_000 if seconds is not None else EXAMPLES)
    check.end = begin + seconds if seconds is not None else float("inf")
    try:
        for each in properties:
            check.all(each, count)
    finally:
        check.report.seconds = monotonic() - begin
    return check.report


@dataclass
class _Firing(Watcher):
    """Counts the rewrites of one rule."""

    name: str
    count: int = 0

    def begin(self, source: Source, root: Operation) -> None:
        self.count += source.name == self.name


@dataclass
class _Check:
    law: Law
    rules: RuleSet
    operators: Operators
    seed: int
    data: tuple[Data, ...]
    limit: float
    folder: Path | None
    command: str
    end: float = float("inf")
    report: RuleReport = field(default_factory=RuleReport)
    refusal: str = ""

    def __post_init__(self) -> None:
        self.applied = (
            self.rules if self.law.kind == "lower" else RuleSet((self.law,), self.vocabulary)
        )
        self.level = _level(self.law, self.vocabulary)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.rules.vocabulary

    # All programs

    def all(self, what: Property, count: int) -> None:
        """Look at so many programs. Raises what check_rule does."""
        looked, found = 0, 0
        programs = self._matching() if what == "keeps_the_meaning" else self._misses()
        for program, must in programs:
            if looked >= count or found >= MOST * count or monotonic() > self.end:
                break
            found += 1
            looked += self._look(program, must)
        if what == "keeps_the_meaning" and not found:
            raise NeverFired(
                f"rule {self.law.source} has never fired: no program was found that it fits, of "
                f"those made from its left side and {SEARCHED} others\n\n{self.law.text}"
            )
        if found and not looked and self.refusal:
            raise InputError(f"rule {self.law.source}: no program could be run: {self.refusal}")

    def _look(self, program: Program, must: bool) -> bool:
        """Look at one program; whether it could be run. must: it has the rule's left side."""
        try:
            wrong = self.wrong(program, must)
        except Refused as refused:
            if must:
                self.report.refused += 1
                self.refusal = str(refused)
            return False
        except RuleFailed as failed:
            raise self._told_failure(program, failed) from failed.__cause__
        self.report.examples += 1
        self.report.exercised.update(set(exercised(program.module)))
        if wrong is not None:
            raise self._told(program, wrong)
        return True

    # Programs that the rule fits

    def _matching(self) -> Iterator[tuple[Program, bool]]:
        for each in self._instances("matching"):
            yield each.program, True

    def _instances(self, what: str) -> Iterator[Instance]:
        """Programs that the rule fits: from its left side, else such as there are."""
        some = False
        if self.level == LEVELS[0] and self.law.kind == "rule":
            for each in self._from_samples(what):
                some = True
                yield each
        if not some:
            yield from self._searched(what)

    def _from_samples(self, what: str) -> Iterator[Instance]:
        sampler = Sampler(self.vocabulary)
        fruitless = 0
        for number in range(ROUNDS):
            random = Random(f"{self.seed} {self.law.name} {what} {number}")
            target = machine_of(random.choice(TARGETS))
            sampler.seed = random.randrange(1 << 30)
            sampler.sizes = _sizes(target.tiles, random)
            found = 0
            for sample in sampler.samples(self.law, SAMPLES):
                for _ in range(EMBEDDED):
                    instance = self._embedded(sample.root, random, sampler.sizes)
                    if instance is not None:
                        found += 1
                        yield instance
            fruitless = 0 if found else fruitless + 1
            if fruitless == FRUITLESS:
                return

    def _embedded(self, root: Operation, random: Random, sizes: Sequence[int]) -> Instance | None:
        """A program around a sample that the rule still fits; None if there is none."""
        target = machine_of(random.choice(TARGETS))
        flow: Flow = random.choice(("", "", "", "", "repeat", "if"))
        data = random.choice(self.data)
        styles = (
            Style(flow, shared=random.random() < 0.7, data=data),
            Style(flow, data=data),
            Style(plain=True, data=data),
        )
        for style in styles:
            try:
                found = embedded(root, style, self.operators, sizes, target, random)
            except Unsuited:
                continue
            if self._fit(found.root, found.program) is not None:
                return found
        return None

    def _searched(self, what: str) -> Iterator[Instance]:
        """Generated programs of the rule's level that it fits somewhere."""
        random = Random(f"{self.seed} {self.law.name} {what} search")
        for program in _pool(self.operators, self.level, self.law.kind == "lower", self.seed).all():
            if monotonic() > self.end:
                return
            roots = [op for op in program.module.walk() if type(op) in self.law.roots]
            fitting = [op for op in roots if self._fit(op, program) is not None]
            if fitting:
                yield Instance(program, random.choice(fitting))

    # Programs that it all but fits

    def _misses(self) -> Iterator[tuple[Program, bool]]:
        random = Random(f"{self.seed} {self.law.name} misses")
        names = list(MISSES)
        others = self._unmet(random)
        for instance in self._instances("misses"):
            found = self._fit(instance.root, instance.program)
            assert found is not None
            for name in random.sample(names, 2):
                program = missed(name, instance, found, self.law, self.vocabulary, random)
                if program is not None and invalid(program.module) is None:
                    self.report.misses[name] += 1
                    yield program, False
            for name, program in islice(others, 2):
                self.report.misses[name] += 1
                yield program, False

    def _unmet(self, random: Random) -> Iterator[tuple[str, Program]]:
        """Programs made anew: a guard does not hold, a type is another, a block is another."""
        if self.level != LEVELS[0] or self.law.kind != "rule":
            return
        sampler = Sampler(self.vocabulary)
        nested = any(each.operands for each in list(places_of(self.law.variants[0]))[1:])
        for _ in range(ROUNDS):
            sampler.seed = random.randrange(1 << 30)
            target = machine_of(random.choice(TARGETS))
            sampler.sizes = _sizes(target.tiles, random)
            for sample in islice(sampler.samples(self.law, SAMPLES), 2):
                other = retyped(sample.root, random)
                if other is not None:
                    yield from self._put("another type", other, Style(), sampler.sizes, random)
                if nested:
                    style = Style("split", plain=True)
                    yield from self._put("another block", sample.root, style, sampler.sizes, random)
            if not self.law.guards:
                continue
            name = f"{self.law.name} guards"
            roots = sampler.programs(name, self.law.variants, self.law.guards, FALSIFIED)
            kept: Counter[str] = Counter()
            for root in roots:
                try:
                    failed = unmet(self.law, root, self.vocabulary)
                except CallFailed as failure:
                    # That is the rule's fault only if it raises in a whole program, too.
                    which = str(failure.place)
                else:
                    if failed is None or len(failed) != 1:
                        continue
                    which = str(failed[0].place)
                kept[which] += 1
                if kept[which] <= 2:
                    yield from self._put(
                        "a guard does not hold", root, Style(), sampler.sizes, random
                    )

    def _put(
        self, name: str, root: Operation, style: Style, sizes: Sequence[int], random: Random
    ) -> Iterator[tuple[str, Program]]:
        target = machine_of(random.choice(TARGETS))
        try:
            found = embedded(root, style, self.operators, sizes, target, random)
        except Unsuited:
            return
        yield name, found.program

    # One program

    def _fit(self, op: Operation, program: Program) -> Fit | None:
        """How the rule fits an operation. Raises RuleFailed."""
        try:
            with at_most(self.limit / 2):
                return fit(self.law, op, self.vocabulary)
        except TooLong as late:
            raise self._failed(program, f"is not done after {self.limit / 2:g} s") from late
        except CallFailed as failure:
            raise self._raised(program, failure.error) from failure.error

    def wrong(self, program: Program, must: bool = False) -> Wrong | None:
        """What is wrong with the rule on a program; None if nothing is.

        Raises Refused where there is nothing to be compared, and RuleFailed.
        """
        fitting = [op for op in program.module.walk() if self._fit(op, program) is not None]
        problem = self._matched(program, fitting)
        if problem is not None:
            return problem
        after, fired = self._after(program)
        alone = self.law.kind == "rule"
        if alone and fitting and not fired and not self._declines(fitting):
            return Wrong("unfired", f"it fits {_named(fitting[0])}, and does not fire")
        if alone and fired and not fitting:
            return Wrong("fires", "it fires, and fits no operation")
        if not fired and (alone or not must):
            # What is the same means the same.
            return None
        self.report.changed += 1
        problem = invalid(after.module)
        if problem is not None:
            return problem
        return self._means(program, after)

    def _means(self, program: Program, after: Program) -> Wrong | None:
        try:
            with at_most(self.limit):
                expected = _expected(program)
                self.report.undecided += not expected.decided
                return disagreement(expected, after)
        except TooLong as late:
            return Wrong("hang", f"the program is not done after {self.limit:g} s ({late})")

    def _matched(self, program: Program, fitting: Sequence[Operation]) -> Wrong | None:
        """Where the matcher and the text of the rule disagree."""
        for op in program.module.walk():
            if type(op) not in self.law.roots:
                continue
            try:
                found = match_law(self.law, op, self.vocabulary) is not None
            except CallFailed as failure:
                raise self._raised(program, failure.error) from failure.error
            if found and op not in fitting:
                why = misfit(self.law, op, self.vocabulary)
                return Wrong("fires", f"it fits {_named(op)}, where {why}")
            if not found and op in fitting:
                return Wrong("unfired", f"it fits {_named(op)}, and is not matched there")
        return None

    def _declines(self, fitting: Sequence[Operation]) -> bool:
        """Whether Python code has changed its mind wherever the rule fits."""
        matches = [match_law(self.law, op, self.vocabulary) for op in fitting]
        return all(match is not None and self.law.make(match) is None for match in matches)

    def _after(self, program: Program) -> tuple[Program, int]:
        """The program after the rule, and how often that has fired."""
        after = program.clone()
        firing = _Firing(self.law.name)
        try:
            with at_most(self.limit / 2), watched(firing), watching_rules(self.report):
                self.applied.apply(after.module)
        except (InputError, DoesNotFit) as error:
            if self.law.kind == "lower":
                raise Refused(str(error)) from None
            raise self._failed(program, f"cannot be applied: {error}") from error
        except TooLong as late:
            raise self._failed(program, f"is not done after {self.limit / 2:g} s") from late
        except MemoryError:
            raise
        except Exception as error:
            raise self._raised(program, error) from error
        if self.law.kind == "lower" and not _is_on_one_level(after.module):
            try:
                _way_down(self.level, program)[-1].apply(after.context, after.module)
            except (InputError, DoesNotFit) as error:
                raise Refused(str(error)) from None
        return after, firing.count

    def _raised(self, program: Program, error: BaseException) -> RuleFailed:
        first = str(error).partition("\n")[0]
        return self._failed(program, f"raised {type(error).__name__}: {first}")

    def _failed(self, program: Program, problem: str) -> RuleFailed:
        return RuleFailed(self.law, program, problem)

    # What is told

    def again(self, folder: Path) -> None:
        """Look at the one program that was saved in a folder. Raises as check_rule."""
        program, _ = Program.load(folder, self.operators.context.clone())
        try:
            wrong = self.wrong(program, must=True)
        except Refused as refused:
            raise InputError(f"{folder}: {refused}") from None
        self.report.examples += 1
        if wrong is not None:
            raise RuleWrong(self.law, program, wrong, self._made(program, wrong), folder)

    def _told(self, program: Program, wrong: Wrong) -> RuleWrong:
        def alike(candidate: Program) -> bool:
            try:
                found = self.wrong(candidate, must=True)
            except (Refused, RuleFailed, InputError, VerifyException):
                return False
            return found is not None and found.kind == wrong.kind

        counted, self.report = self.report, RuleReport()
        small = smallest(program, self.level, alike, SHRINKING) if alike(program) else program
        wrong = self.wrong(small, must=True) or wrong
        self.report = counted
        folder, command = self._saved(small, wrong.kind)
        made = self._made(small, wrong)
        return RuleWrong(self.law, small, wrong, made, folder, command, counted.examples)

    def _made(self, program: Program, wrong: Wrong) -> str:
        if wrong.kind not in ("value", "fault", "hang"):
            return ""
        counted, self.report = self.report, RuleReport()
        text = self._after(program)[0].text
        self.report = counted
        return text

    def _told_failure(self, program: Program, failed: RuleFailed) -> RuleFailed:
        def alike(candidate: Program) -> bool:
            try:
                self.wrong(candidate)
            except RuleFailed as other:
                return type(other.__cause__) is type(failed.__cause__)
            except (Refused, InputError, VerifyException):
                return False
            return False

        # What hangs would do so at each step.
        hangs = isinstance(failed.__cause__, TooLong)
        small = program if hangs else smallest(program, self.level, alike, SHRINKING)
        folder, command = self._saved(small, "rule")
        return RuleFailed(self.law, small, failed.problem, folder, command)

    def _saved(self, program: Program, kind: str) -> tuple[Path, str]:
        folder = self.folder or Path(tempfile.mkdtemp(prefix="abele-failure-"))
        source = self.law.source
        program.save(folder, {"rule": source.name, "rules": source.file, "kind": kind})
        if self.command:
            return folder, self.command.replace("FOLDER", str(folder))
        if not source.file.endswith(".rw") or not Path(source.file).exists():
            return folder, ""
        words = ("pytest", "--rules", source.file, f"{source.file}::{source.name}")
        return folder, shlex.join([*words, "--abele-replay", str(folder)])


@dataclass(eq=False)
class _Pool:
    """Generated programs of a level, each made once for all rules.

    lower: they are ready to go to the next level.
    """

    operators: Operators
    level: str
    lower: bool
    seed: int
    made: list[Program | None] = field(default_factory=list["Program | None"])

    def all(self) -> Iterator[Program]:
        """The programs, always the same ones."""
        for number in range(SEARCHED):
            if number == len(self.made):
                self.made.append(self._program(Random(f"{self.seed} {number}")))
            found = self.made[number]
            if found is not None:
                yield found

    def _program(self, random: Random) -> Program | None:
        program = at_level(build(random_sketch(random), self.operators), self.level)
        if program is None or not self.lower:
            return program
        for each in _way_down(self.level, program)[:-1]:
            try:
                each.apply(program.context, program.module)
            except (InputError, DoesNotFit):
                return None
        return program


@lru_cache(maxsize=2)
def _pool(operators: Operators, level: str, lower: bool, seed: int) -> _Pool:
    return _Pool(operators, level, lower, seed)


def _way_down(level: str, program: Program) -> tuple[ModulePass, ...]:
    """The passes from a level to the next one, for a program's target."""
    below = LEVELS[LEVELS.index(level) + 1]
    return parse_pipeline(expand(",".join(DOWN[below]), program.target.spelling()), PASSES)


def _level(law: Law, vocabulary: Vocabulary) -> str:
    """The level of the programs that a rule is for; nn if it speaks of no level's operations."""
    classes = [cls for part in places_of(law.variants[0]) for cls in part.classes]
    levels = {vocabulary.level_of(cls.name) for cls in classes}
    return next((level for level in reversed(LEVELS) if level in levels), LEVELS[0])


def _sizes(tiles: int, random: Random) -> tuple[int, ...]:
    """A few sizes of axes, where compilers err; an axis of none is rare."""
    some = edges(tiles)
    found = tuple(random.choice(some) for _ in range(random.choice((2, 3, 5, 8))))
    return (*found, 0) if random.random() < 0.04 else found


def _expected(program: Program) -> Outcome:
    """What a program has to compute. Raises Refused where it cannot be run."""
    source = program
    if program.source is not None:
        source = Program(program.source, program.context, program.inputs, program.target)
    try:
        return bounded_run(source)
    except MemoryError:
        raise
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from None


def _is_on_one_level(module: ModuleOp) -> bool:
    try:
        verify(module, new_context().levels[level_of(module)])
    except VerifyException:
        return False
    return True


def _named(op: Operation) -> str:
    return f"{op.name} at {place(op)}"
