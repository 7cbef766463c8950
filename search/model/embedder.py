"""Embedding models: the packaged model and models loaded by sentence-transformers.

Importing this module does not load a model or a machine-learning library.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...core.errors import ModelUnavailable
from ...core.text import readable
from . import FOLDER
from .embedding import Embedder, TextEmbeddings

if TYPE_CHECKING:
    from .embedding import Vectors
    from .encoder import Encoder

DEFAULT_MODEL = "all-MiniLM-L6-v2-int8"
"""Name of the packaged model."""

_PIPELINE, _PACKAGED_PIPELINE = 1, 2
"""Versions of the pipelines of `SentenceTransformerEmbedder` and of `PackagedEmbedder`.

The version is part of an embedder's name, so after a new version, all items are embedded again.
"""
_REINSTALL = "Reinstall Palaver."
_CHOOSE = "Give the absolute path of a model folder, or download one with `palaver model use NAME`."
_LOAD_ERRORS = (ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""Exceptions raised when model files or libraries are missing or damaged."""


def load(name: str = DEFAULT_MODEL, *, threads: int | None = None, download: bool = False) -> Embedder:
    """Return the embedder with this name.

    The model is loaded when the first text is embedded.

    Args:
        name: `DEFAULT_MODEL`, a model name on the Hugging Face hub, or the absolute path of a model folder.
        threads: Number of CPU threads, by default all.
        download: True to allow sentence-transformers to download the model.
    """
    if name == DEFAULT_MODEL:
        return _packaged_embedder(threads)
    return SentenceTransformerEmbedder(name, threads=threads, download=download)


@cache
def _packaged_embedder(threads: int | None) -> PackagedEmbedder:
    """Return a shared embedder of the packaged model. Each further instance would take 0.06 s and 18 MB."""
    return PackagedEmbedder(threads=threads)


def model_of(name: str) -> str:
    """Return the model name in an embedder's name. `load` accepts the result."""
    return name.rpartition("/")[0]


class PackagedEmbedder:
    """Embedder of the packaged model: all-MiniLM-L6-v2 in int8, with 384 dimensions and up to 256 tokens per text.

    A text has the same vector alone and in a batch.
    """

    dimension = 384

    def __init__(self, folder: Path | None = None, *, threads: int | None = None) -> None:
        """Use the model files in `folder`, by default the packaged files."""
        self.name = f"{DEFAULT_MODEL}/{_PACKAGED_PIPELINE}"
        self._folder, self._threads = folder, threads or os.cpu_count() or 1
        self._encoder: Encoder | None = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`."""
        return self.read(texts).vectors

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """See `Embedder.read`."""
        encoded = self._load().encode([readable(text) for text in texts], self._threads)
        import numpy as np

        vectors = np.array([each.vector for each in encoded], dtype=np.float32).reshape(-1, self.dimension)
        return TextEmbeddings(vectors, [each.tokens for each in encoded], [each.spans for each in encoded])

    def verify(self) -> None:
        """Verify the checksums of all model files.

        Raises:
            ModelUnavailable: A file is missing or damaged.
        """
        with _load_errors_as_unavailable():
            from .encoder import verify_checksums

            verify_checksums(self._folder or FOLDER)

    def _load(self) -> Encoder:
        with self._lock:
            if self._encoder is None:
                with _load_errors_as_unavailable():
                    from .encoder import Encoder

                    self._encoder = Encoder(self._folder or FOLDER)
            return self._encoder


@contextmanager
def _load_errors_as_unavailable() -> Generator[None]:
    try:
        yield
    except _LOAD_ERRORS as error:
        raise ModelUnavailable(f"The packaged model cannot be loaded: {error}", hint=_REINSTALL) from error


class SentenceTransformerEmbedder:
    """Embedder for models that sentence-transformers loads. Requires the extra `models`.

    It loads weights only from safetensors files and never runs code of the model's author.
    """

    def __init__(self, model: str, *, threads: int | None = None, download: bool = False) -> None:
        """Use a model by hub name or absolute path. The network is used only with `download`."""
        self.name = f"{model}/{_PIPELINE}"
        self._model, self._threads, self._download = model, threads, download
        self._loaded: tuple[Any, int] | None = None
        self._lock = Lock()

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector. The first access loads the model or raises `ModelUnavailable`."""
        with self._lock:
            return self._load()[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`. The last digits of a vector depend on the other texts of the batch."""
        with self._lock:  # the tokenizers of transformers are not thread-safe
            model, dimension = self._load()
            return _encode(model, texts).reshape(len(texts), dimension)

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """See `Embedder.read`. These models do not return token embeddings."""
        import numpy as np

        return TextEmbeddings(self.embed(texts), [np.empty((0, 0), dtype=np.float32)] * len(texts), [()] * len(texts))

    def _load(self) -> tuple[Any, int]:
        if self._loaded is None:
            model = self._open()
            self._loaded = model, _encode(model, [""]).shape[1]
        return self._loaded

    def _open(self) -> Any:
        path = Path(self._model)
        if path.exists() and not path.is_absolute():
            # The library prefers a local path, so the owner of the current folder would determine the loaded model.
            raise ModelUnavailable(
                f"the model name {self._model} is ambiguous: the current folder contains a file or folder of this name",
                hint="Give the absolute path.",
            )
        try:
            library = import_module("sentence_transformers")
        except ImportError as error:
            from ...core.home import extra_command

            raise ModelUnavailable(
                "sentence-transformers is not installed", hint=f"Install it with: {extra_command('models')}"
            ) from error
        if self._threads:
            import_module("torch").set_num_threads(self._threads)
        try:
            return library.SentenceTransformer(
                self._model,
                trust_remote_code=False,
                local_files_only=not self._download,
                model_kwargs={"use_safetensors": True},
            )
        except _library_errors() as error:
            raise ModelUnavailable(f"{self._model} cannot be loaded: {error}", hint=_CHOOSE) from error


def _library_errors() -> tuple[type[Exception], ...]:
    """Return all exception types that sentence-transformers raises."""
    hub, weights = import_module("huggingface_hub.errors").HTTPError, import_module("safetensors").SafetensorError
    return (*_LOAD_ERRORS, hub, weights)


def _encode(model: Any, texts: Sequence[str]) -> Vectors:
    cleaned = [readable(text) for text in texts]
    vectors: Vectors = model.encode(cleaned, normalize_embeddings=True, show_progress_bar=False).astype("float32")
    return vectors
