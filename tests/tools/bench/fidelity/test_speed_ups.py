import pytest

from abele.tools.bench.fidelity.cases import SparseProduct, SpeedUp
from abele.tools.bench.fidelity.predict import Statistics, predictions, same_decisions
from abele.tools.bench.fidelity.rows import SPEED_UPS, read_rows

HEAD = "block,density,m,n,speedup\n"


def test_speed_ups_are_predicted_within_a_fifth_and_on_the_right_side_of_one():
    rows, skipped = read_rows(SPEED_UPS)
    assert (len(rows), len(skipped)) == (156, 4)
    assert all("did not fit on the chip" in each.reason for each in skipped)
    found, unpriced = predictions(rows)
    assert not unpriced
    assert Statistics.of([each.error for each in found]).median < 0.2
    same, told = same_decisions(found)
    assert told == 130
    assert same >= 0.9 * told


def test_a_row_is_a_square_matrix_of_16_bit_floats_on_a_bow(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + "16,1/8,512,64,1.5\n")
    (row,), skipped = read_rows(path)
    assert not skipped
    product = SparseProduct(512, 512, 64, 16, 0.125, False, "float16", "float32")
    assert row.case == SpeedUp(product)
    assert (row.target.name, row.family, row.cycles) == ("bow", "spmm", 1.5)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("16,1/8,512,64,", "no speed-up: the product did not fit on the chip"),
        ("0,1/8,512,64,1", "block '0'; need a positive integer"),
        ("16,1/8,520,64,1", "m 520 in blocks of 16; need a multiple"),
        ("16,1/0,512,64,1", "density '1/0'; need a number above 0"),
        ("16,2,512,64,1", "density '2'; need a number above 0, at most 1"),
        ("16,1/8,512,x,1", "n 'x'; need a positive integer"),
        ("16,1/8,512,64,nan", "speedup 'nan'; need a positive number"),
        ("16,1/8,512,64,-1", "speedup '-1'; need a positive number"),
    ],
)
def test_a_row_that_cannot_be_priced_is_skipped_with_the_reason(line, why, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + line + "\n")
    found, (skipped,) = read_rows(path)
    assert not found
    assert why in skipped.reason
