import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.tools.bench.fidelity.cases import (
    Convolution,
    Elementwise,
    Network,
    Product,
    SparseProduct,
    Stencil,
    Triad,
    Vertex,
)
from abele.tools.bench.fidelity.rows import CALIBRATION, COLUMNS, NETWORKS, read_rows, target_of
from abele.tools.bench.fidelity.units import Unclear

ROW = {
    "id": "one",
    "device": "Bow",
    "clock_ghz": "1.85",
    "tiles": "1472",
    "category": "",
    "op": "poplin::matMul",
    "shape": "m=8,k=16,n=4",
    "dtype": "fp16",
    "batch": "",
    "quantity": "tile cycles",
    "value": "100",
    "unit": "cycles",
    "source": "",
}


def rows_of(folder: Path, *changes: dict[str, str]):
    path = folder / "rows.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ROW)
        writer.writeheader()
        for each in changes:
            writer.writerow({**ROW, **each})
    return read_rows(path)


def case_of(folder: Path, **changes: str):
    found, skipped = rows_of(folder, changes)
    assert skipped == []
    return found[0].case


def test_every_row_of_the_calibration_is_priced_but_a_convolution_on_two_chips():
    found, skipped = read_rows(CALIBRATION)
    assert len(found) + len(skipped) == 91
    assert [each.name for each in skipped] == ["gbconv_leaf_float_2ipu"]
    assert "on 2 IPUs" in skipped[0].reason
    assert Counter(each.family for each in found) == {
        "amp": 5,
        "vector": 3,
        "triad": 1,
        "gemm": 31,
        "bsp": 12,
        "stencil": 5,
        "bsp across chips": 6,
        "stencil across chips": 18,
        "schedule": 9,
    }


def test_every_row_of_a_network_is_priced_for_the_chip_that_it_names():
    found, skipped = read_rows(NETWORKS)
    assert skipped == []
    assert {each.family for each in found} == {"network"}
    assert {each.target.base for each in found} == {"c600"}
    case = Network("resnet50", 4, "float16", "float16", io_tiles=64)
    assert found[0].case == case
    assert found[0].cycles == pytest.approx(4 / 7062 * 1.5e9)
    assert found[3].case == replace(case, batch=32, operand="float8_e4m3fn")


@pytest.mark.parametrize(
    ("changes", "case"),
    [
        ({"op": "ResNet-50 inference", "batch": "8"}, Network("resnet50", 8, "float16", "")),
        ({"op": "SqueezeNet inference, prefetched"}, Network("squeezenet", 1, "float16", "")),
        (
            {"op": "GoogLeNet inference", "shape": "batch 2, 32 IO tiles", "batch": "8"},
            Network("inception_v1", 2, "float16", "", io_tiles=32),
        ),
        (
            {"op": "inception-v2 inference", "dtype": "fp16.32"},
            Network("inception_v2", 1, "float16", "float32"),
        ),
    ],
)
def test_a_row_of_a_network_names_it_and_its_batch(tmp_path, changes, case):
    assert case_of(tmp_path, **{"shape": "as published", **changes}) == case


def test_a_rate_of_a_network_counts_samples(tmp_path: Path):
    rate = {"op": "AlexNet inference", "batch": "4", "value": "10", "unit": "images/s"}
    found, _ = rows_of(tmp_path, rate, {**rate, "unit": "Ksamples/s"})
    assert [each.cycles for each in found] == pytest.approx([0.4 * 1.85e9, 0.4e-3 * 1.85e9])


def test_several_chips_are_a_ladder_of_their_kind(tmp_path: Path):
    found, _ = rows_of(tmp_path, {"op": "blur", "shape": "64x64x4, 4 IPU", "tiles": "4864"})
    assert found[0].target.links.kind == "ladder"
    assert (found[0].target.chips, found[0].target.tiles_per_chip) == (4, 1216)


def test_ids_devices_and_sources_do_not_change_predictions(tmp_path: Path):
    found, skipped = read_rows(CALIBRATION)
    with CALIBRATION.open(newline="") as stream:
        table = list(csv.DictReader(stream))
    hidden = tmp_path / "hidden.csv"
    with hidden.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, table[0])
        writer.writeheader()
        for number, row in enumerate(table):
            mixed = {name: table[-1 - number][name] for name in ("id", "device", "source")}
            writer.writerow({**row, **mixed})
    blind, blindly_skipped = read_rows(hidden)
    assert [replace(a, name="") for a in found] == [replace(b, name="") for b in blind]
    assert [each.reason for each in skipped] == [each.reason for each in blindly_skipped]


@pytest.mark.parametrize(
    ("op", "shape", "dtype", "case"),
    [
        (
            "poplin ConvPartial1x1 (AMP)",
            "N=24,K=32,M=48 per tile x1472 tiles",
            "fp16.32",
            Vertex(24, 32, 48, 1, 1, "float16", "float32"),
        ),
        (
            "popops binary multiply vertex, in place, bracketed by ipu_cycle_count",
            "1024 elements per tile",
            "half",
            Elementwise("mul", 2, 1024, "float16", in_place=True, bracketed=True),
        ),
        (
            "popops unary relu vertex, not in place",
            "29440 elements",
            "fp32",
            Elementwise("relu", 1, 20, "float32"),
        ),
        ("STREAM triad a=b+q*c", "14.72k elements", "fp32", Triad(10, "float32", 4)),
        (
            "dense matmul",
            "m=1000, k=3000, n=10",
            "fp16 in / fp32 partials",
            Product(1000, 3000, 10, 1, "float16", "float32"),
        ),
        ("gemm", "m=k=n=64", "fp32", Product(64, 64, 64, 1, "float32", "float32")),
        (
            "3x3 Gaussian blur, 4 channels AoS, custom codelet float2",
            "640x480x4 image, 1 IPU",
            "fp32",
            Stencil((480, 640), 4, 9, 3, 2, "float32"),
        ),
        (
            "7-pt heat equation HeatEquationOptimized vertex",
            "360x360x360, 1 IPU",
            "fp32",
            Stencil((360, 360, 360), 1, 7, 2, 2, "float32"),
        ),
        (
            "Gaussian blur step phase breakdown: halo/pre (pre/post-exchange copies)",
            "640x480x4, 1 IPU",
            "fp16",
            Stencil((480, 640), 4, 9, 3, 4, "float16", "pre"),
        ),
        (
            "poplin::convolution",
            "batch=4,cin=64,cout=128,image=56x56,kernel=3x3,stride=2,pad=1",
            "fp16 (fp32 partials)",
            Convolution(
                4, 64, 128, 1, (56, 56), (3, 3), (2, 2), (1, 1), ((1, 1),) * 2, "float16", "float32"
            ),
        ),
        (
            "convolution 3x3, stride 2, pad 1",
            "batch 1, in 56x56x64, out 28x28x128",
            "half",
            Convolution(
                1, 64, 128, 1, (56, 56), (3, 3), (2, 2), (1, 1), ((1, 1),) * 2, "float16", "float16"
            ),
        ),
        (
            "poplin::convolution",
            "N=4,C=3,H=224,W=224,O=64,KH=7,KW=7,stride=2",
            "fp32",
            Convolution(
                4, 3, 64, 1, (224, 224), (7, 7), (2, 2), (1, 1), ((2, 3),) * 2, "float32", "float32"
            ),
        ),
        (
            "popsparse static block-sparse matmul b=16",
            "m=k=4096,n=256,d=1/8",
            "fp16",
            SparseProduct(4096, 4096, 256, 16, 0.125, False, "float16", "float16"),
        ),
        (
            "popsparse static block-sparse matmul",
            "m=k=4096,n=256,block=16,density=0.125",
            "fp16",
            SparseProduct(4096, 4096, 256, 16, 0.125, False, "float16", "float16"),
        ),
        (
            "popsparse dynamic spmm",
            "m=64,k=64,n=8,block size 4,density 25%",
            "fp32",
            SparseProduct(64, 64, 8, 4, 0.25, True, "float32", "float32"),
        ),
    ],
)
def test_notations_of_people_are_understood(tmp_path, op, shape, dtype, case):
    assert case_of(tmp_path, op=op, shape=shape, dtype=dtype) == case


def test_same_stands_for_the_operation_above(tmp_path: Path):
    stencil = {"op": "5-pt heat, 1000 steps", "shape": "80x80", "dtype": "fp32"}
    found, _ = rows_of(tmp_path, stencil, {**stencil, "op": "same, per step"})
    assert found[0].case == found[1].case


@pytest.mark.parametrize(
    ("quantity", "value", "unit", "cycles"),
    [
        ("tile cycles", "100", "cycles", 100),
        ("time", "2", "us", 3700),
        ("time per 200 steps", "0.0002", "s", 1850),
        # 2 * 8 * 16 * 4 operations at a tenth of a TFLOP/s: 10.24 ns.
        ("throughput", "0.1", "TFLOP/s", 18.944),
        ("throughput", "100", "GFLOPS", 18.944),
    ],
)
def test_rates_and_times_become_cycles(tmp_path, quantity, value, unit, cycles):
    found, _ = rows_of(tmp_path, {"quantity": quantity, "value": value, "unit": unit})
    assert found[0].cycles == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"op": "sort"}, "op 'sort': not of a family"),
        ({"shape": "m=8,n=4"}, "no k"),
        ({"shape": "m=8,k=0,n=4"}, "k=0; need a positive integer"),
        ({"dtype": "posit"}, "dtype 'posit'; need one of"),
        ({"unit": "furlongs"}, "unit 'furlongs'"),
        ({"value": "fast"}, "value 'fast'; need a number"),
        ({"value": "nan"}, "value 'nan'"),
        ({"tiles": "2944"}, "2944 tiles on 1 IPUs"),
        ({"shape": "m=8,k=16,n=4, 2 IPUs"}, "on 2 IPUs"),
        ({"op": "popops frobnicate vertex", "shape": "64 elements"}, "no function"),
        ({"op": "static sparse matmul", "shape": "m=8,k=8,n=8,block=4"}, "density"),
        ({"op": "conv", "shape": "cin=3"}, "no image"),
        ({"op": "ResNet-51 inference"}, "no network 'ResNet-51'; need one of alexnet"),
        ({"op": "AlexNet inference", "batch": "0"}, "batch=0; need a positive integer"),
        ({"op": "AlexNet inference", "batch": "4x2"}, "batch '4x2'; need a positive integer"),
        ({"op": "AlexNet inference", "shape": "1472 I/O tiles"}, "1472 IO tiles of 1472"),
        ({"op": "AlexNet inference", "unit": "TFLOP/s"}, "unit 'TFLOP/s'"),
        ({"op": "AlexNet inference", "shape": "4 IPUs"}, "on 4 IPUs; need one"),
        ({"quantity": "throughput", "unit": "images/s"}, "unit 'images/s'"),
    ],
)
def test_a_row_that_is_not_understood_is_listed_with_one_reason(tmp_path, change, reason):
    found, skipped = rows_of(tmp_path, {}, change)
    assert len(found) == 1
    assert [each.name for each in skipped] == ["one"]
    assert reason in skipped[0].reason
    assert "\n" not in skipped[0].reason


def test_a_file_without_the_columns_is_refused(tmp_path: Path):
    path = tmp_path / "bad.csv"
    path.write_text("op,shape\n")
    with pytest.raises(InputError, match="no column 'dtype'"):
        read_rows(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(tmp_path / "absent.csv")
    path.write_text(",".join(COLUMNS) + "\n")
    with pytest.raises(InputError, match="no rows; need one below the names of columns"):
        read_rows(path)


@pytest.mark.parametrize(
    ("tiles", "clock", "base"),
    [
        ("1216", "1.6", "mk1"),
        ("1216", "", "mk1"),
        ("", "1.6", "mk1"),
        ("1472", "1.33", "mk2"),
        ("1472", "1.325", "mk2"),
        ("", "", "mk2"),
        ("1472", "1.85", "bow"),
        ("1024", "1.85", "bow"),
        ("1472", "1.5", "c600"),
    ],
)
def test_the_target_follows_from_tiles_and_clock(tiles, clock, base):
    target = target_of(tiles, clock)
    assert target.base == base
    assert target.tiles == int(tiles or target.tiles)
    assert target.clock_hz == (float(clock) * 1e9 if clock else target.clock_hz)


def test_a_clock_that_is_not_a_number_is_refused():
    with pytest.raises(Unclear, match="clock_ghz 'fast'"):
        target_of("1472", "fast")
