from pathlib import Path

import pytest

from abele.backends.host.threads import TimedCall
from abele.tools.bench.measure import SHARING_SECONDS, host, simulated


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the host tells no flags")
def test_a_processor_is_described_by_its_name_family_and_vectors():
    text = Path("/proc/cpuinfo").read_text()
    if "cpu family" not in text:
        pytest.skip("not x86")
    told = host()["processor"]
    assert f"family {text.partition('cpu family')[2].split()[1]}" in told
    assert ("AVX-512" in told) == ("avx512f" in text)


def test_a_simulated_run_shares_calls_of_several_units():
    calls = [TimedCall(1, 1.0), TimedCall(4, 4.0), TimedCall(5, 5.0)]
    found = simulated(0.5, calls, 4)
    assert (found.between, found.small, found.shared) == (0.5, 1.0, 2.25)
    # One thread does two of the five units.
    assert found.uneven == 0.75
    assert found.sharing == 2 * SHARING_SECONDS
    assert found.seconds == pytest.approx(0.5 + 1 + 1 + 2 + found.sharing)
