from abele.ir.support.unused_names import UnusedNames


def test_a_name_is_given_out_once():
    names = UnusedNames({"relu"})
    assert [names.unused(base) for base in ("relu", "relu", "conv", "conv")] == [
        "relu.1",
        "relu.2",
        "conv",
        "conv.1",
    ]


def test_a_numbered_name_that_is_taken_is_left_out():
    names = UnusedNames({"relu", "relu.1"})
    assert names.unused("relu") == "relu.2"
