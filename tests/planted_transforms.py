"""ONNX transforms and runners with planted mistakes, and right ones."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator


def keep(model):
    """Right: the model itself."""
    return model


def drop_identities(model):
    """Right: readers of an Identity read its operand, unless its result is an output."""
    shown = {each.name for each in model.graph.output}
    renamed = {}
    for node in list(model.graph.node):
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
        if node.op_type == "Identity" and node.output[0] not in shown:
            renamed[node.output[0]] = node.input[0]
            model.graph.node.remove(node)
    return model


def drop_relu(model):
    """Wrong value: Relu becomes Identity."""
    for node in model.graph.node:
        if node.op_type == "Relu":
            node.op_type = "Identity"
    return model


def drop_a_node(model):
    """Invalid: the last node is gone, and its result is still an output."""
    if len(model.graph.node) > 1:
        del model.graph.node[-1]
    return model


def swap_operands_of_sub(model):
    """Wrong value: a - b becomes b - a."""
    for node in model.graph.node:
        if node.op_type == "Sub":
            first, second = node.input
            node.input[0], node.input[1] = second, first
    return model


def crash_on_neg(model):
    """Crash: the process ends by a signal."""
    if any(node.op_type == "Neg" for node in model.graph.node):
        os.abort()
    return model


def hang_on_neg(model):
    """Hang: the function does not return."""
    while any(node.op_type == "Neg" for node in model.graph.node):
        pass
    return model


def refuse_neg(model):
    """Refusal of a valid model."""
    if any(node.op_type == "Neg" for node in model.graph.node):
        raise ValueError("no rule for Neg")
    return model


def declare_double(model):
    """Wrong type: outputs of float32 are declared as float64, through a Cast."""
    for output in model.graph.output:
        if output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            inner = output.name + "_narrow"
            for node in model.graph.node:
                for i, name in enumerate(node.output):
                    node.output[i] = inner if name == output.name else name
                for i, name in enumerate(node.input):
                    node.input[i] = inner if name == output.name else name
            double = onnx.TensorProto.DOUBLE
            model.graph.node.append(
                onnx.helper.make_node("Cast", [inner], [output.name], to=double)
            )
            output.type.tensor_type.elem_type = double
    return model


def print_much(model):
    """Prints without an end."""
    while True:
        sys.stdout.write("x" * 100_000)


def take_memory(model):
    """Wants more memory than there is."""
    return [np.ones(1 << 27) for _ in range(1 << 10)]


def write_elsewhere(model):
    """Writes a file outside of its folder."""
    Path("/var/tmp/abele_planted_file").write_text("")
    return model


def import_a_new_opset(model):
    """Invalid: the result imports an opset that no onnx defines."""
    model.opset_import[0].version = 999


def leave_a_process(model):
    """Right, but leaves a process in a session of its own, which writes its number into a file."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open("number", "w") as file:
                file.write(str(os.getpid()))
            time.sleep(100)
        os._exit(0)
    os.wait()
    while not os.path.exists("number") or not open("number").read():
        time.sleep(0.01)
    for each in (1, 2):
        os.write(each, b"process " + open("number").read().encode() + b"\n")
    raise ValueError("process " + open("number").read())


def return_text(model):
    """Returns no model."""
    return "done"


def run_rightly(model, inputs):
    """Right: onnx's own evaluator."""
    return ReferenceEvaluator(model).run(None, inputs)


def run_with_doubled_weights(model, inputs):
    """Disagrees with itself: a weight counts twice, an input once."""
    for each in model.graph.initializer:
        array = numpy_helper.to_array(each)
        if array.dtype == np.float32:
            each.CopyFrom(numpy_helper.from_array(array * np.float32(2), each.name))
    return ReferenceEvaluator(model).run(None, inputs)


def run_in_float16(model, inputs):
    """Wrong type: results of float32 become float16."""
    found = ReferenceEvaluator(model).run(None, inputs)
    return [each.astype(np.float16) if each.dtype == np.float32 else each for each in found]


def run_with_an_inclusive_greater(model, inputs):
    """Wrong value in one operator: what is equal is greater."""
    for node in model.graph.node:
        node.op_type = "GreaterOrEqual" if node.op_type == "Greater" else node.op_type
    return ReferenceEvaluator(model).run(None, inputs)


def greater_is_less(model):
    """Wrong value in one operator: Greater becomes Less."""
    for node in model.graph.node:
        node.op_type = "Less" if node.op_type == "Greater" else node.op_type
