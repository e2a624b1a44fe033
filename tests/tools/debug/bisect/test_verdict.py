from abele.tools.debug.bisect.verdict import Verdict, WrongValue


def test_a_verdict_on_a_users_pass_says_if_its_rewrites_are_not_recorded():
    for name in ("mine", "fuse-chains"):
        verdict = Verdict((name,), 0.0, index=0, since=0, kind="value", problem="wrong")
        seen = "not recorded: run the patterns under abele.ir.provenance.LocatingWalker"
        assert (seen in verdict.text) == (name == "mine")


def test_a_wrong_value_says_its_place():
    value = WrongValue("tile.copy", "conv", "conv/in0", (0, 3), 1.5, 2.0, 0.25, tile=7)
    assert str(value) == 'tile.copy "conv" @conv/in0: element [0, 3] is 1.5; need 2; tile 7'


def test_a_verdict_names_the_pass_after_which_the_right_results_are_defined():
    right = Verdict(("to-nn", "decompose"), 0.0, started=1)
    assert right.text.endswith("\ncompared with the program after 'to-nn'")
    wrong = Verdict(("to-nn", "decompose"), 0.0, 1, 1, "value", "wrong", started=1)
    assert wrong.text.endswith("\n  compared with the program after 'to-nn'")
    assert Verdict(("to-nn",), 0.0, started=1).text == (
        "nothing to compare: the program can run only after 'to-nn', the last pass"
    )
