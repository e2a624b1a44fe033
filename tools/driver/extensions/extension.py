"""What a module of a user's can add to abele."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

# Every command makes an Extension, and most need none of these.
if TYPE_CHECKING:
    from xdsl.ir import Dialect

    from ....backends.codelets.scalar import ScalarFunction
    from ....backends.codelets.users import UsersCodelet
    from ....backends.fabrics.fabric import Fabric
    from ....backends.prices.contractions.methods import Method
    from ....backends.target import Target
    from ....dialects.model_calls import ModelCall
    from ....ir.rules import PythonRule
    from ....ir.upstream import ModulePass
    from ...importers.front_end import FrontEnd
    from .added_level import AddedLevel


@dataclass(frozen=True)
class OnnxOperator:
    """The importer of an ONNX operator.

    Attributes:
        importer: takes an abele.tools.importers.onnx.node.Node and returns its results.
    """

    name: str
    domain: str
    importer: Callable[..., Any]


def onnx_operator(
    name: str, domain: str = "ai.onnx"
) -> Callable[[Callable[..., Any]], OnnxOperator]:
    """Make a function the importer of an ONNX operator.

    @onnx_operator("Softplus", "com.example")
    def softplus(node):
        return node.add(SoftplusOp(node[0]))
    """

    def wrap(importer: Callable[..., Any]) -> OnnxOperator:
        return OnnxOperator(name, domain, importer)

    return wrap


@dataclass(frozen=True)
class Extension:
    """Everything that one module adds to abele.

    A module that defines it all itself needs no value of this type: abele finds the definitions. A
    module that collects definitions from elsewhere, such as the `__init__.py` of a package, lists
    them in one.

    Attributes:
        rules: become one pass, named after the file or the entry point.
    """

    passes: Sequence[type[ModulePass]] = ()
    dialects: Sequence[Dialect] = ()
    functions: Sequence[ScalarFunction] = ()
    targets: Sequence[Target] = ()
    operators: Sequence[OnnxOperator] = ()
    rules: Sequence[PythonRule] = ()
    fabrics: Sequence[type[Fabric]] = ()
    methods: Sequence[Method] = ()
    front_ends: Sequence[FrontEnd] = ()
    levels: Sequence[AddedLevel] = ()
    calls: Sequence[ModelCall] = ()
    codelets: Sequence[UsersCodelet] = ()

    def __add__(self, other: Extension) -> Extension:
        """The definitions of both, each of them once."""
        return Extension(
            _once(*self.passes, *other.passes),
            _once(*self.dialects, *other.dialects),
            _once(*self.functions, *other.functions),
            _once(*self.targets, *other.targets),
            _once(*self.operators, *other.operators),
            _once(*self.rules, *other.rules),
            _once(*self.fabrics, *other.fabrics),
            _once(*self.methods, *other.methods),
            _once(*self.front_ends, *other.front_ends),
            _once(*self.levels, *other.levels),
            _once(*self.calls, *other.calls),
            _once(*self.codelets, *other.codelets),
        )


T = TypeVar("T")


def _once(*values: T) -> tuple[T, ...]:
    return tuple({id(value): value for value in values}.values())
