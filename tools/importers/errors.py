"""What an importer says about a good model that abele cannot compile."""

from ...ir.errors import InputError


class UnsupportedError(InputError, NotImplementedError):
    """The model is valid, and uses something that is not supported.

    The message names the node, the operator, its domain and opset, and what is supported.
    """
