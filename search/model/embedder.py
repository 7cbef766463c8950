"""Embedders: what gives every text its vector. Importing this module loads no model and no library that runs one."""

import os
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from ...core.errors import ModelUnavailable
from ...core.text import readable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..index.token_bits import Tokens
    from .encoder import Encoder

DEFAULT_MODEL = "all-MiniLM-L6-v2-int8"
"""The model that ships with Palaver."""

_PIPELINE, _PACKAGED_PIPELINE = 1, 2
"""Raised with every change that gives a text another vector, or other tokens: as a part of the name it has stored
vectors made anew.
"""


class TextEmbeddings(NamedTuple):
    """What a model makes of texts. `vectors` are their rows of length one, shape (n, dimension); `tokens` what each of
    their tokens means in its place, no rows where the model does not tell that; `spans` where in the text each token
    begins and ends, in characters.
    """

    vectors: "npt.NDArray[np.float32]"
    tokens: "Sequence[Tokens]"
    spans: Sequence[Sequence[tuple[int, int]]]


class Embedder(Protocol):
    """Turns texts into vectors whose dot products are cosines. May be used by several threads."""

    name: str
    """Identity of the model and of the way it is used. Only vectors of equal names can be compared."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has. Raises `ModelUnavailable` where only the loaded model knows."""
        ...

    def embed(self, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """One row of length one per text, in their order: shape (len(texts), dimension). Raises `ModelUnavailable`."""
        ...

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """The same rows, and the tokens of each text. Raises `ModelUnavailable`."""
        ...


def load(
    name: str = DEFAULT_MODEL, *, threads: int | None = None, download: bool = False, record: Path | None = None
) -> Embedder:
    """The embedder of this name: the packaged model, or any that sentence-transformers knows.

    Nothing is read before the first text is embedded. `threads` is the number of CPU threads to use, all by default;
    `download` lets sentence-transformers fetch a model that is not on this machine. The packaged model's files are
    checked when they are loaded; where a `record` is kept, unless they were found whole before and nobody touched them.
    """
    if name == DEFAULT_MODEL:
        shared = _packaged_embedder(threads)
        shared.record = record or shared.record
        return shared
    return SentenceTransformerEmbedder(name, threads=threads, download=download)


@cache
def _packaged_embedder(threads: int | None) -> "PackagedEmbedder":
    """One for all who ask: each more would take 0.06 s and 18 MB, and a server would have up to four."""
    return PackagedEmbedder(threads=threads)


def model_of(name: str) -> str:
    """The model in an embedder's name, as `load` takes it."""
    return name.rpartition("/")[0]


class PackagedEmbedder:
    """The model that ships with Palaver: all-MiniLM-L6-v2 in int8, 384 numbers, the first 256 tokens of a text.

    A text has the same vector alone and among others. Loading takes about 0.1 s and checks the files.
    """

    dimension = 384

    def __init__(self, folder: Path | None = None, *, threads: int | None = None, record: Path | None = None) -> None:
        """Another `folder` than the packaged one must hold the same files, its own manifest among them. `record` is the
        file that says which of them were found whole.
        """
        self.name = f"{DEFAULT_MODEL}/{_PACKAGED_PIPELINE}"
        self.record, self._folder, self._threads = record, folder, threads or os.cpu_count() or 1
        self._encoder: Encoder | None = None
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """See `Embedder.embed`."""
        return self.read(texts).vectors

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """See `Embedder.read`."""
        made = self._load().encode([readable(text) for text in texts], self._threads)
        import numpy as np

        vectors = np.array([each.vector for each in made], dtype=np.float32).reshape(-1, self.dimension)
        return TextEmbeddings(vectors, [each.tokens for each in made], [each.spans for each in made])

    def _load(self) -> "Encoder":
        with self._lock:
            if self._encoder is None:
                self._encoder = _packaged(self._folder, self.record)
            return self._encoder


class SentenceTransformerEmbedder:
    """Any model that sentence-transformers can load, by its name on the Hugging Face hub or by absolute folder.

    Needs the extra `models`. Weights are read from safetensors only and no code of the model's author is run.
    """

    def __init__(self, model: str, *, threads: int | None = None, download: bool = False) -> None:
        """Without `download` only models that are on this machine already are found, and nothing uses the network."""
        self.name = f"{model}/{_PIPELINE}"
        self._model, self._threads, self._download = model, threads, download
        self._loaded: tuple[_SentenceTransformer, int] | None = None
        self._lock = Lock()

    @property
    def dimension(self) -> int:
        """How many numbers a vector has. Loads the model; raises `ModelUnavailable`."""
        with self._lock:
            return self._load()[1]

    def embed(self, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """See `Embedder.embed`. The vector of a text varies in its last digits with the texts beside it."""
        with self._lock:  # the tokenizers of transformers may not be used by two threads at once
            model, dimension = self._load()
            return _encode(model, texts).reshape(len(texts), dimension)

    def read(self, texts: Sequence[str]) -> TextEmbeddings:
        """See `Embedder.read`. These models tell no tokens."""
        import numpy as np

        return TextEmbeddings(self.embed(texts), [np.empty((0, 0), dtype=np.float32)] * len(texts), [()] * len(texts))

    def _load(self) -> "tuple[_SentenceTransformer, int]":
        if self._loaded is None:
            model = self._open()
            self._loaded = model, _encode(model, [""]).shape[1]
        return self._loaded

    def _open(self) -> "_SentenceTransformer":
        path = Path(self._model)
        if path.exists() and not path.is_absolute():
            # The library would take it for the model: whoever owns the current folder would choose what we load.
            raise ModelUnavailable(f"{self._model} is also a file or folder here", hint="Give a folder's whole path.")
        try:
            library = import_module("sentence_transformers")
        except ImportError as error:
            from ...core.installation import extra_command

            raise ModelUnavailable(
                "sentence-transformers is not installed", hint=f"Install it with: {extra_command('models')}"
            ) from error
        if self._threads:
            import_module("torch").set_num_threads(self._threads)
        try:
            model = library.SentenceTransformer(
                self._model,
                trust_remote_code=False,
                local_files_only=not self._download,
                model_kwargs={"use_safetensors": True},
            )
        except _refusals() as error:
            raise ModelUnavailable(f"{self._model} cannot be loaded: {error}", hint=_CHOOSE) from error
        return cast(_SentenceTransformer, model)


class _SentenceTransformer(Protocol):
    def encode(
        self, inputs: list[str], *, normalize_embeddings: bool, show_progress_bar: bool
    ) -> "npt.NDArray[np.floating]": ...


_REINSTALL = "Reinstall Palaver."
_CHOOSE = "Give the whole path of a model's folder, or download one with `palaver model use NAME`."


_FAULTS = (ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What loading a model raises when its files, or the libraries that read them, are not what they should be."""


def _refusals() -> tuple[type[Exception], ...]:
    """Everything that sentence-transformers lets through; two of its libraries have errors of their own."""
    hub, weights = import_module("huggingface_hub.errors").HTTPError, import_module("safetensors").SafetensorError
    return (*_FAULTS, hub, weights)


def _packaged(folder: Path | None, record: Path | None) -> "Encoder":
    try:
        from . import FOLDER
        from .encoder import Encoder

        return Encoder(folder or FOLDER, record)
    except _FAULTS as error:
        raise ModelUnavailable(f"The packaged model cannot be loaded: {error}", hint=_REINSTALL) from error


def _encode(model: _SentenceTransformer, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
    told = [readable(text) for text in texts]
    return model.encode(told, normalize_embeddings=True, show_progress_bar=False).astype("float32")
