"""The packaged model at work: files that are what the manifest says, a tokenizer and an ONNX session."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, TypedDict, cast

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from ..index.token_bits import Tokens
from .onnx_runtime import onnxruntime
from .verified import Identity, Verified

MODEL, WEIGHTS, TOKENIZER = FILES = "model_int8.onnx", "model_int8.weights", "tokenizer.json"
MANIFEST = "manifest.json"
DIMENSION = 384
_WEIGHTS_LIE_IN = "session.model_external_initializers_file_folder_path"

_CHARACTERS_MAX = 16_384
"""The model sees 256 tokens, so what follows these is not even tokenised: a megabyte would take a second."""


_REFUSALS = (
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


class File(TypedDict):
    """What a shipped file must be. `size` is in bytes, `sha256` in lower-case hexadecimal digits."""

    size: int
    sha256: str


class OnnxSession(Protocol):
    """The model at work: the vector of one text, shape (384,), and its tokens, the model's two among them."""

    def run(self, output_names: None, input_feed: Mapping[str, npt.NDArray[np.int64]]) -> list[npt.NDArray[np.float32]]:
        """See `onnxruntime.InferenceSession.run`."""
        ...


class Encoded(NamedTuple):
    """What one text means: a vector of length one, shape (384,), its tokens, and where each begins and ends."""

    vector: npt.NDArray[np.float32]
    tokens: Tokens
    spans: list[tuple[int, int]]


class Encoder:
    """Encodes each text by itself, several at a time.

    Dynamic quantisation scales the activations of a whole batch by their extremes, padding included: in batches of 32
    a text's vector has a cosine of 0.98 to 1 to the one it has in other company. Alone it has always the same vector;
    and one run per thread was faster than batches, in 130 MB for the process instead of 650.
    """

    def __init__(self, folder: Path, record: Path | None = None) -> None:
        """Check and load the files; those that `record` knows are not read to check them, and what was read is kept
        there. Raises `ImportError`, `LookupError`, `OSError`, `TypeError` or `ValueError`.
        """
        _verify(folder, Verified(record))
        self._tokenizer = open_tokenizer(folder)
        self._session = open_session(folder / MODEL)

    def encode(self, texts: Sequence[str], threads: int) -> list[Encoded]:
        """What each text means, in their order."""
        if len(texts) == 1:  # a query: starting threads would take longer than encoding it
            return [self._encode(texts[0])]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self._encode, texts))

    def _encode(self, text: str) -> Encoded:
        made = self._tokenizer.encode(text[:_CHARACTERS_MAX])
        vector, tokens = self._session.run(None, {"input_ids": np.array(made.ids, dtype=np.int64)})
        return Encoded(vector, tokens[1:-1], made.offsets[1:-1])  # the first and the last are the model's own


def fingerprint(path: Path) -> File:
    """What a file is; raises `OSError`."""
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _verify(folder: Path, verified: Verified) -> None:
    """Raise where a file is not the manifest's: `ValueError`, or `OSError` or `LookupError` for one that is missing."""
    files: dict[str, File] = json.loads((folder / MANIFEST).read_bytes())["files"]
    whole: dict[str, Identity] = {}
    for name in FILES:
        wanted, found = files[name], Identity.of(folder / name)
        # By its digest: what is whole under one manifest need not be under the next.
        if not verified.has(wanted["sha256"], found) and wanted != fingerprint(folder / name):
            raise ValueError(f"{name} is not the file that the manifest describes")
        whole[wanted["sha256"]] = found
    verified.keep(whole)


def open_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model's folder."""
    return Tokenizer.from_buffer((folder / TOKENIZER).read_bytes())


def open_session(path: Path) -> OnnxSession:
    """A model that is ready to run, with its weights beside it. Raises `OSError` or `ValueError`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # build.py has done it
    # Some installers link each file to where it lies: ONNX Runtime refuses weights that lie elsewhere than the graph.
    options.add_session_config_entry(_WEIGHTS_LIE_IN, str((path.parent / WEIGHTS).resolve().parent))
    try:
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
        return cast(OnnxSession, session)
    except _refusals() as error:
        raise ValueError(str(error)) from error


def _refusals() -> tuple[type[Exception], ...]:
    """How onnxruntime refuses a model: errors that have nothing in common but `Exception`."""
    library = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    return tuple(getattr(library, name) for name in _REFUSALS)
