"""A process proves kernels; whatever it does, the process that asks goes on."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from abele.backends.host import proofs
from abele.backends.host.proofs import Proof, Prover, Undecided

ANSWER = (
    "import json, os, signal, sys, time\ndef tell(*line): print(json.dumps(line), flush=True)\n"
)


@contextmanager
def prover(script: str) -> Iterator[Prover]:
    """A prover whose process runs this script for each task."""
    program = f"{ANSWER}for task, codes in map(json.loads, sys.stdin):\n    {script}"
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    found = Prover(
        lambda said: subprocess.Popen([sys.executable, "-c", program], stderr=said, **options)
    )
    try:
        yield found
    finally:
        found.end()


def proved(script: str) -> Proof:
    with prover(script) as found:
        return found.prove("chains", {"chains": b"code"})


def test_a_process_proves_one_task_after_another():
    with prover("tell('begun', 'rows'); tell('proved', len(codes), 0.5, '')") as found:
        assert found.prove("chains", {"chains": b"", "sharing": b""}) == Proof("chains", 2, 0.5)
        assert found.prove("sharing", {"sharing": b""}) == Proof("sharing", 1, 0.5)
        assert not found.has_ended


def test_what_has_failed_is_told():
    proof = proved("tell('proved', 7, 0.5, 'rows: 3 rows of 5: 1 differs')")
    assert proof == Proof("chains", 7, 0.5, "rows: 3 rows of 5: 1 differs")


def test_a_process_that_crashes_fails_in_the_group_that_it_was_in():
    proof = proved("tell('begun', 'rows'); os.kill(os.getpid(), signal.SIGSEGV)")
    assert proof.problem == "rows: ended by SIGSEGV"


def test_the_last_thing_that_a_process_said_is_repeated():
    proof = proved("tell('begun', 'loading'); sys.exit('LLVM ERROR: no such instruction')")
    assert proof.problem == "loading: exit code 1: LLVM ERROR: no such instruction"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "its process was ended by SIGKILL"),
        ("tell('undecided', 'there is too little memory')", "there is too little memory"),
    ],
)
def test_kernels_are_not_to_blame_for_what_others_do(script: str, why: str):
    with pytest.raises(Undecided, match=why):
        proved(script)


def test_a_process_that_does_not_answer_is_killed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(proofs, "LIMIT_SECONDS", 0.3)
    with prover("tell('begun', 'rows'); time.sleep(100)") as found:
        proof = found.prove("chains", {})
        assert proof.problem == "rows: no end within 0 s"
        assert found.has_ended


def test_a_process_that_nobody_waits_for_any_more_is_ended(monkeypatch: pytest.MonkeyPatch):
    def interrupted(self: Prover) -> None:
        raise KeyboardInterrupt

    with prover("time.sleep(100)") as found:
        monkeypatch.setattr(Prover, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            found.prove("chains", {})
        assert found.has_ended


def test_a_proof_is_read_as_it_was_kept():
    for proof in (Proof("chains", 3, 0.25), Proof("chains", problem="rows: 1 differs")):
        assert Proof.of("chains", proof.text.encode()) == proof


@pytest.mark.parametrize("change", [None, {"task": "copies"}, {"cases": "many"}, {"problem": ...}])
def test_a_proof_that_is_damaged_or_of_another_task_is_none(change: dict | None):
    kept = json.loads(Proof("chains", 3, 0.25).text)
    if change is None:
        text = b"\xff{"
    else:
        for name, value in change.items():
            kept[name] = value
            if value is ...:
                del kept[name]
        text = json.dumps(kept).encode()
    assert Proof.of("chains", text) is None
