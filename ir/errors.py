"""The errors that users' extensions raise and catch. Inside abele, import `support.errors`."""

from .support.errors import DoesNotFit, InputError, NotEnoughMemory

__all__ = ["DoesNotFit", "InputError", "NotEnoughMemory"]
