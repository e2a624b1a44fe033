"""Other runtimes of ONNX models: onnxruntime, and onnx's own evaluator."""

from __future__ import annotations

import atexit
import pickle
import selectors
import subprocess
import sys
import warnings
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ...driver.arrays import Array

OPSETS = range(7, 27)
"""Versions of the domain ai.onnx that onnxruntime supports. It has few operators of opset 6."""

NO_LAST_VERSION = (1 << 31) - 1
"""The last version that a kernel declares if it supports all later versions."""

PROVIDER = "CPUExecutionProvider"

EXPANDED_UNTIL = {"Swish": 24}
"""The latest opset in which onnxruntime replaces an operator by the operators that define it.

In later opsets, it finds no kernel. An operator that is not listed is replaced in every opset.
"""

ANSWER_SECONDS = 10.0
"""Clock seconds that onnxruntime may take for one model."""

Types = Mapping[str, frozenset[str]]
"""The types, such as tensor(float), that each type variable of a kernel may have."""


class RefusedByRuntime(Exception):
    """Raised if a runtime does not run a model. The message gives the reason."""


def by_onnxruntime(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a model by name, computed by onnxruntime without its graph optimizations.

    Raises RefusedByRuntime, also if the model ends onnxruntime's process.
    """
    found = _WORKER.answer(model.SerializeToString(), dict(inputs))
    if isinstance(found, str):
        raise RefusedByRuntime(found)
    return found


class _Worker:
    """The process that runs onnxruntime. It starts with the first model."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, model: bytes, inputs: dict[str, Array]) -> dict[str, Array] | str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        done = False
        try:
            pickle.dump((model, inputs), process.stdin)
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                if not selector.select(ANSWER_SECONDS):
                    return f"no answer after {ANSWER_SECONDS:g} s"
            found = cast("dict[str, Array] | str", pickle.load(process.stdout))
            done = True
        except (EOFError, OSError, pickle.UnpicklingError):
            return f"the model ended its process with status {process.wait()}"
        finally:
            # A late answer would look like the answer to the next model.
            if not done:
                self.end()
        return found

    def end(self) -> None:
        """End the process. The next model starts a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


_WORKER = _Worker()
atexit.register(_WORKER.end)


def by_reference(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a model by name, by onnx's own evaluator. Raises RefusedByRuntime."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = cast("list[Any]", ReferenceEvaluator(model).run(None, dict(inputs)))
    except Exception as error:
        raise RefusedByRuntime(f"{type(error).__name__}: {error}") from None
    names = [each.name for each in model.graph.output]
    return dict(zip(names, map(np.asarray, results), strict=True))


def is_function(schema: onnx.defs.OpSchema) -> bool:
    """Whether an operator is defined in terms of other operators."""
    untyped = cast(Any, schema)
    return bool(untyped.has_function or untyped.has_context_dependent_function)


@lru_cache(maxsize=1)
def _kernels() -> dict[str, list[tuple[int, int, Types]]]:
    """The first version, last version and types of onnxruntime's kernels, by operator."""
    found: dict[str, list[tuple[int, int, Types]]] = {}
    state = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    for each in cast("list[Any]", state.get_all_opkernel_def()):
        if each.domain == "" and each.provider == PROVIDER:
            first, last = each.version_range
            types = {name: frozenset(some) for name, some in each.type_constraints.items()}
            found.setdefault(each.op_name, []).append((first, last, types))
    return found


@lru_cache(maxsize=1024)
def kernels(operator: str, since: int) -> tuple[Types, ...]:
    """The kernels for one version of an operator, which starts in opset since.

    A kernel for float32 also accepts float16, because onnxruntime inserts casts if there is no
    kernel for float16. A kernel without a last version is for its first version only.
    Source: onnxruntime, core/framework/kernel_registry.cc, KernelRegistry::VerifyKernelDef.
    """
    there = [
        types
        for first, last, types in _kernels().get(operator, ())
        if first == since or (first < since <= last and last != NO_LAST_VERSION)
    ]
    return tuple({name: _with_halves(some) for name, some in each.items()} for each in there)


def _with_halves(types: frozenset[str]) -> frozenset[str]:
    return types | {"tensor(float16)"} if "tensor(float)" in types else types
