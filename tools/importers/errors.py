"""What an importer says about a good model that abele cannot compile."""

from ...ir.errors import InputError


class UnsupportedError(InputError, NotImplementedError):
    """The model is valid, and uses something that is not supported.

    The message names the node, the operator, its domain and opset, and what can be used instead.
    """


class NotConstantError(UnsupportedError):
    """A parameter of a node, a shape for instance, depends on inputs of the model.

    inputs: their names. Give import_onnx their values, and the parameter is known.
    """

    def __init__(self, message: str, inputs: tuple[str, ...]) -> None:
        super().__init__(message)
        self.inputs = inputs
