"""Errors about valid models that abele cannot compile."""

from collections.abc import Sequence

from ...ir.support.errors import InputError


class UnsupportedError(InputError, NotImplementedError):
    """The model is valid, but uses something that is not supported.

    The message names the node, the operator, its domain and opset, and what is supported instead.
    """


class NotConstantError(UnsupportedError):
    """A parameter of a node, such as a shape, depends on inputs of the model.

    Attributes:
        inputs: their names. With their values given to import_onnx, the parameter is known.
    """

    def __init__(self, message: str, inputs: tuple[str, ...]) -> None:
        super().__init__(message)
        self.inputs = inputs


def given_by(inputs: Sequence[str]) -> str:
    """The options and the argument with which a user gives values to inputs, for messages."""
    options = " ".join(f"--value {name}=X.npy" for name in inputs)
    arguments = ", ".join(f"{name!r}: array" for name in inputs)
    return f"{options}, or values={{{arguments}}} in Python"
