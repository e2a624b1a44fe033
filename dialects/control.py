"""Control flow, the same at every level: repeat, if, while.

At `nn` and `partition`, values flow through operands, arguments and yields. At `tile` and
`exchange`, the regions work on variables and memory, and only a predicate is a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I64,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator

from ..ir.upstream import VerifyException


def _check_yield(region: Region, types: Sequence[Attribute], what: str) -> None:
    last = region.block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{what}: must end in control.yield")
    given = [v.type for v in last.values]
    if given != list(types):
        raise VerifyException(
            f"{what}: yields ({', '.join(map(str, given))}); need ({', '.join(map(str, types))})"
        )


def _check_arguments(region: Region, types: Sequence[Attribute], what: str) -> None:
    given = [a.type for a in region.block.args]
    if given != list(types):
        raise VerifyException(
            f"{what}: takes ({', '.join(map(str, given))}); need ({', '.join(map(str, types))})"
        )


ITERATION_NUMBER = TensorType(i32, [])
"""The type of an iteration number: an i32 without axes."""


MICRO_BATCHES = "micro_batches"
"""The attribute of a loop over the micro-batches of a batch."""

MOST_NUMBERED = 2**31
"""The most iterations whose numbers an i32 can hold."""


def is_iteration_number(type_: Attribute) -> bool:
    """True for the type of an iteration number, with or without a layout."""
    return getattr(type_, "tensor", type_) == ITERATION_NUMBER


def is_predicate(type_: Attribute) -> bool:
    """True for i1, and for a tensor of a single i1 with or without a layout."""
    tensor: Attribute = getattr(type_, "tensor", type_)
    if isinstance(tensor, TensorType):
        tensor = cast(TensorType[Attribute], tensor)
        return bool(tensor.element_type == i1) and all(n == 1 for n in tensor.get_shape())
    return type_ == i1


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End a region and pass its values on.

    Example: control.yield %0 : tensor<4xf32>

    Attributes:
        values: the values of the next iteration, or of the operation's results.
    """

    name = "control.yield"
    values = var_operand_def()
    assembly_format = "($values^ `:` type($values))? attr-dict"
    traits = traits_def(IsTerminator())

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


@irdl_op_definition
class ConditionOp(IRDLOperation):
    """End a while's first region. The loop continues while the predicate is true.

    Example: control.condition %c : tensor<i1>

    Attributes:
        predicate: a single i1, or a tensor of one.
    """

    name = "control.condition"
    predicate = operand_def()
    assembly_format = "$predicate attr-dict `:` type($predicate)"
    traits = traits_def(IsTerminator())

    def __init__(self, predicate: SSAValue):
        super().__init__(operands=[predicate])

    def verify_(self) -> None:
        """Check arguments, results and terminators."""
        if not is_predicate(self.predicate.type):
            raise VerifyException(f"condition of type {self.predicate.type}; need a single i1")


@irdl_op_definition
class RepeatOp(IRDLOperation):
    """Run the body count times. Each iteration takes the values that the one before yielded.

    Example:
        %1 = control.repeat 10 (%0) : (tensor<4xf32>) -> (tensor<4xf32>) {
        ^bb0(%x: tensor<4xf32>):
          %2 = nn.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
          control.yield %2 : tensor<4xf32>
        }

    Attributes:
        count: iterations, 0 or more.
        turn: at tile and exchange, a variable to which the control program writes the number of
            each iteration, counted from 0, before it begins.
        runs: at nn and partition, whether each iteration is a run as far as states are concerned: a
            load gives the value that a state has when the iteration begins, and a store sets the
            value for the next one. Nothing else loads the states that such a body stores to.
        initial: the values that the first iteration takes.
        body: one iteration; it takes values of initial's types, and may take the number of the
            iteration after them, an i32 without axes. It yields values of initial's types.
        outputs: the values that the last iteration yielded, or initial if there was none.
    """

    name = "control.repeat"
    count = prop_def(IntegerAttr[I64])
    turn = opt_prop_def(SymbolRefAttr)
    runs = opt_prop_def(UnitAttr)
    initial = var_operand_def()
    outputs = var_result_def()
    body = region_def("single_block")
    assembly_format = (
        "$count (`turn` $turn^)? (`runs` $runs^)? `(` $initial `)` `:`"
        " functional-type($initial, $outputs) $body attr-dict"
    )

    def __init__(
        self,
        count: int,
        initial: Sequence[SSAValue],
        body: Region,
        turn: str | None = None,
        *,
        runs: bool = False,
    ):
        super().__init__(
            operands=[initial],
            result_types=[[v.type for v in initial]],
            properties={
                "count": IntegerAttr(count, i64),
                "turn": None if turn is None else SymbolRefAttr(turn),
                "runs": UnitAttr() if runs else None,
            },
            regions=[body],
        )

    @property
    def iteration_number(self) -> BlockArgument | None:
        """The body's argument that is the number of the iteration; None if it takes none."""
        arguments = self.body.block.args
        return arguments[-1] if len(arguments) > len(self.initial) else None

    @property
    def iteration_variable(self) -> str | None:
        """The name of the variable that holds the number of the iteration; None if none does."""
        return None if self.turn is None else self.turn.string_value()

    @property
    def iterations(self) -> int:
        """The number of iterations."""
        return self.count.value.data

    @property
    def over_micro_batches(self) -> bool:
        """Whether each iteration computes one micro-batch of a batch."""
        return MICRO_BATCHES in self.attributes

    def verify_(self) -> None:
        """Check arguments, results and terminators."""
        if self.iterations < 0:
            raise VerifyException(f"repeat {self.iterations} times; need 0 or more")
        types = [v.type for v in self.initial]
        if [r.type for r in self.outputs] != types:
            raise VerifyException("repeat: results must have the types of the initial values")
        number = self.iteration_number
        if number is None:
            if self.runs is not None:
                raise VerifyException("repeat: iterations that are runs need a number as argument")
            _check_arguments(self.body, types, "repeat body")
        elif self.turn is not None:
            raise VerifyException(
                "repeat: the number of an iteration is an argument and in a variable"
            )
        elif is_iteration_number(number.type):
            _check_arguments(self.body, [*types, number.type], "repeat body")
        else:
            _check_arguments(self.body, [*types, ITERATION_NUMBER], "repeat body")
        if number is not None and self.iterations > MOST_NUMBERED:
            raise VerifyException(
                f"{self.iterations} numbered iterations; need at most {MOST_NUMBERED}"
            )
        _check_yield(self.body, types, "repeat body")


def run_around(op: Operation) -> RepeatOp | None:
    """The innermost loop around an operation whose iterations count as runs; None if there is
    none."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, RepeatOp) and parent.runs is not None:
            return parent
        parent = parent.parent_op()
    return None


@irdl_op_definition
class IfOp(IRDLOperation):
    """Run one of two regions.

    Example:
        %1 = control.if %c : tensor<i1> -> (tensor<4xf32>) {
          %2 = nn.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
          control.yield %2 : tensor<4xf32>
        } else {
          control.yield %0 : tensor<4xf32>
        }

    Attributes:
        predicate: a single i1, or a tensor of one.
        then: runs if it is true.
        otherwise: runs if it is false.
        outputs: the values that this region yielded.
    """

    name = "control.if"
    predicate = operand_def()
    outputs = var_result_def()
    then = region_def("single_block")
    otherwise = region_def("single_block")
    assembly_format = (
        "$predicate `:` type($predicate) (`->` `(` type($outputs)^ `)`)? $then `else` $otherwise"
        " attr-dict"
    )

    def __init__(
        self, predicate: SSAValue, types: Sequence[Attribute], then: Region, otherwise: Region
    ):
        super().__init__(operands=[predicate], result_types=[types], regions=[then, otherwise])

    def verify_(self) -> None:
        """Check arguments, results and terminators."""
        if not is_predicate(self.predicate.type):
            raise VerifyException(f"predicate of type {self.predicate.type}; need a single i1")
        types = [r.type for r in self.outputs]
        for region, what in ((self.then, "then"), (self.otherwise, "else")):
            _check_arguments(region, [], what)
            _check_yield(region, types, what)


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Run the second region while the condition of the first one holds. Both take the carried
    values.

    Example:
        %1 = control.while (%0) : (tensor<1xf32>) -> (tensor<1xf32>) {
        ^bb0(%x: tensor<1xf32>):
          %c = nn.less %x, %limit : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xi1>
          control.condition %c : tensor<1xi1>
        } do {
        ^bb0(%x: tensor<1xf32>):
          %2 = nn.scale %x by 2.0 : (tensor<1xf32>) -> tensor<1xf32>
          control.yield %2 : tensor<1xf32>
        }

    Attributes:
        initial: the values that the first test takes.
        test: ends in control.condition.
        body: one iteration; it yields the values that the next test takes.
        outputs: the values whose test failed.
    """

    name = "control.while"
    initial = var_operand_def()
    outputs = var_result_def()
    test = region_def("single_block")
    body = region_def("single_block")
    assembly_format = (
        "`(` $initial `)` `:` functional-type($initial, $outputs) $test `do` $body attr-dict"
    )

    def __init__(self, initial: Sequence[SSAValue], test: Region, body: Region):
        super().__init__(
            operands=[initial], result_types=[[v.type for v in initial]], regions=[test, body]
        )

    def verify_(self) -> None:
        """Check arguments, results and terminators."""
        types = [v.type for v in self.initial]
        if [r.type for r in self.outputs] != types:
            raise VerifyException("while: results must have the types of the initial values")
        _check_arguments(self.test, types, "while test")
        _check_arguments(self.body, types, "while body")
        if not isinstance(self.test.block.last_op, ConditionOp):
            raise VerifyException("while test: must end in control.condition")
        _check_yield(self.body, types, "while body")


Control = Dialect("control", [YieldOp, ConditionOp, RepeatOp, IfOp, WhileOp], [])
