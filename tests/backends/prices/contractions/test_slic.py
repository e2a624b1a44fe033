"""The price of the window mode, computed by hand from the published formula."""

from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.prices.contractions.slic import slic_cycles
from abele.backends.target import resolve_target

MK2 = resolve_target("mk2")


def test_slic_price_is_the_published_one():
    # A row of 10 for each worker: 17 + 10 + 15 + 5, one more where it zeroes; three windows of
    # 18 + 16 for weights and 20 to start; 28 + 15 and the branches' 1 + 13; 6 to return.
    windows = 3 * (34 + 20) + 13
    workers = 6 * 48 + 2 * 6 * 47
    price = slic_cycles(Contraction.of(60, 4, 4, 9, 1, "float16", "float16", field_rows=6), MK2)
    assert price == 28 + 15 + windows + workers + 1 + 6
    # With 8 units, 32-bit partials take two passes of one cycle less, and 3 cycles a row.
    workers = 6 * (17 + 11 + 3 + 2 * 19) + 2 * 6 * (17 + 10 + 3 + 2 * 19)
    price = slic_cycles(Contraction.of(60, 4, 4, 9, 1, "float16", "float32", field_rows=6), MK2)
    assert price == 28 + 15 + windows + workers + 1 + 6
    # Four groups of one channel: their weights are arranged by workers, 10 cycles each.
    arranged = slic_cycles(Contraction.of(60, 1, 1, 9, 4, "float16", "float16", field_rows=6), MK2)
    one = slic_cycles(Contraction.of(60, 4, 4, 9, 1, "float16", "float16", field_rows=6), MK2)
    assert arranged - one == 3 * (21 + 60 - 18)
    # Every second element: two cycles each from the third one on.
    strided = slic_cycles(
        Contraction.of(60, 4, 4, 9, 1, "float16", "float16", field_rows=6, stride=2), MK2
    )
    assert strided - one == 3 * 6 * (2 * 7 - 5)
