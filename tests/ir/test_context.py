import numpy as np
from xdsl.dialects.test import Test

from abele.ir.context import AbeleContext


def test_a_clone_shares_the_store_and_not_the_dialects():
    context = AbeleContext(allow_unregistered=True)
    context.blobs.add(np.zeros(1))
    clone = context.clone()
    clone.load_dialect(Test)
    assert clone.blobs is context.blobs
    assert clone.allow_unregistered
    assert not list(context.loaded_dialects)
