"""The packaged model at runtime: its files, its tokenizer and its ONNX session.

No other module imports onnxruntime. Its wheels for Linux and macOS from version 1.31 write a device ID into the user's
cache. They also send telemetry (microsoft/onnxruntime#27379), unless an environment variable disables it before the
first import.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from .embedding import TokenVectors

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

onnxruntime: Any = import_module("onnxruntime")

MODEL, WEIGHTS, TOKENIZER = FILES = "model_int8.onnx", "model_int8.weights", "tokenizer.json"
MANIFEST = "manifest.json"
DIMENSION = 384
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
_CHARACTERS_MAX = 16_384
"""Maximum number of characters to tokenize. The model uses 256 tokens. Tokenizing 1 MB takes 1 s."""
_ERRORS = (
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)


class Encoded(NamedTuple):
    """Embedding of one text: a unit vector, shape (384,), and the token embeddings with their (start, end) offsets."""

    vector: npt.NDArray[np.float32]
    tokens: TokenVectors
    spans: list[tuple[int, int]]


class Encoder:
    """Encoder that embeds each text in a separate run, and several texts in parallel.

    Dynamic quantisation scales activations by the extremes of a whole batch, including padding. The vectors of one text
    in two batches of 32 texts have a cosine of 0.98 to 1. Separate runs are deterministic and faster, and need 130 MB
    instead of 650 MB.
    """

    def __init__(self, folder: Path) -> None:
        """Load the model in a folder.

        Raises:
            ImportError, LookupError, OSError, TypeError, ValueError: A file is missing, truncated or invalid.
        """
        for name, recorded in _manifest(folder).items():
            if (folder / name).stat().st_size != recorded["size"]:
                raise ValueError(f"{name} has the wrong size")
        self._tokenizer = open_tokenizer(folder)
        self._session = open_session(folder / MODEL)

    def encode(self, texts: Sequence[str], threads: int) -> list[Encoded]:
        """Return the embeddings of texts in the same order."""
        if len(texts) == 1:  # starting threads would take longer than embedding one text
            return [self._encode(texts[0])]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self._encode, texts))

    def _encode(self, text: str) -> Encoded:
        # The outputs are the vector of the text, shape (384,), and the token embeddings, shape (tokens, 128).
        tokenized = self._tokenizer.encode(text[:_CHARACTERS_MAX])
        vector, tokens = self._session.run(None, {"input_ids": np.array(tokenized.ids, dtype=np.int64)})
        return Encoded(vector, tokens[1:-1], tokenized.offsets[1:-1])  # without [CLS] and [SEP]


def fingerprint(path: Path) -> dict[str, int | str]:
    """Return `size` in bytes and `sha256` in lower-case hexadecimal of a file, as in the manifest. Raises `OSError`."""
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def verify_checksums(folder: Path) -> None:
    """Verify the checksums of all model files against the manifest.

    Raises:
        ValueError: A file differs from the manifest.
        LookupError, OSError: A file or its manifest entry is missing.
    """
    for name, recorded in _manifest(folder).items():
        if fingerprint(folder / name) != recorded:
            raise ValueError(f"{name} differs from the manifest")


def _manifest(folder: Path) -> dict[str, dict[str, int | str]]:
    files: dict[str, dict[str, int | str]] = json.loads((folder / MANIFEST).read_bytes())["files"]
    return {name: files[name] for name in FILES}


def open_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer of a model folder."""
    return Tokenizer.from_buffer((folder / TOKENIZER).read_bytes())


def open_session(path: Path) -> Any:
    """Return an `onnxruntime.InferenceSession` of a model file. Raises `OSError` or `ValueError`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The graph was optimised by training/build_model.py.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Some installers create links to files. ONNX Runtime rejects weights outside the folder of the graph.
    options.add_session_config_entry(_WEIGHTS_FOLDER, str((path.parent / WEIGHTS).resolve().parent))
    try:
        return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    except _onnx_errors() as error:
        raise ValueError(str(error)) from error


def _onnx_errors() -> tuple[type[Exception], ...]:
    """Return the exception types of onnxruntime, which have no common base class except `Exception`."""
    library = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    return tuple(getattr(library, name) for name in _ERRORS)
