from pathlib import Path

import pytest

from abele.tools.bench.measure import host


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the host tells no flags")
def test_a_processor_is_described_by_its_name_family_and_vectors():
    text = Path("/proc/cpuinfo").read_text()
    if "cpu family" not in text:
        pytest.skip("not x86")
    told = host()["processor"]
    assert f"family {text.partition('cpu family')[2].split()[1]}" in told
    assert ("AVX-512" in told) == ("avx512f" in text)
