from pathlib import Path

from some_extensions import abele


def test_a_target_file_is_named_after_itself(tmp_path: Path, relu: Path):
    (tmp_path / "bench.toml").write_text('base = "mk2"\ntiles = 6\n')
    result = abele("run", relu, "--load", "bench.toml", "--target", "bench")
    assert result.exit_code == 0, result.stderr
    assert "bench (bench.toml), 6 tiles" in result.stdout
    assert abele("run", relu, "--load", "bench.toml", "--target", "bench:3").exit_code == 0
    spec = "plan-splits{target=bench},convert-nn-to-partition"
    assert "mk2:6" in abele("opt", relu, "--load", "bench.toml", "-p", spec).stdout
