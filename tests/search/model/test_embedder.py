"""Tests of the embedders and of the packaged model."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from palaver.core.errors import ModelUnavailable
from palaver.search import model
from palaver.search.index.vector_index import packed
from palaver.search.model import encoder
from palaver.search.model.embedder import DEFAULT_MODEL, PackagedEmbedder, SentenceTransformerEmbedder, load
from palaver.search.model.embedding import Embedder

PACKAGED = Path(next(iter(model.__path__)))
SENTENCES = (
    "The login page rejects passwords that contain a plus sign.",
    "def retry(times: int) -> Callable[..., Any]:\n    return functools.partial(_retry, times)",
    "src/server/http2/frame_decoder.rs:214: error[E0502]: cannot borrow `*self` as mutable",
    "日本語の検索が二文字で見つかるようにした。",
    "ok",
)


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return load(threads=2)


def cosine(embedder: Embedder, one: str, other: str) -> float:
    left, right = embedder.embed([one, other])
    return float(left @ right)


def test_rows_are_unit_vectors(embedder: Embedder) -> None:
    """Each text has a row of 384 float32 values with norm 1."""
    vectors = embedder.embed(SENTENCES)

    assert vectors.shape == (len(SENTENCES), embedder.dimension) == (5, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_each_token_has_its_own_embedding(embedder: Embedder) -> None:
    """Besides its vector, a text has 128 values for each of its tokens, in the order of the tokens."""
    vectors, tokens, spans = embedder.read([*SENTENCES, "", "word " * 300])

    assert np.array_equal(vectors[:5], embedder.embed(SENTENCES))
    assert [len(each) for each in tokens] == [13, 34, 34, 21, 1, 0, 254]
    assert {(each.shape[1], each.dtype) for each in tokens} == {(128, np.dtype("f4"))}
    assert [len(each) for each in spans] == [len(each) for each in tokens]
    text = "É unkettled é"
    [places] = embedder.read([text]).spans
    assert [text[start:end] for start, end in places] == ["É", "un", "ke", "ttle", "d", "é"]


def test_the_bits_of_one_text_are_stable(embedder: Embedder) -> None:
    """The stored token bits of a text change only if the model's name changes. On another processor, a value close to
    zero may have the other sign.
    """
    [tokens] = embedder.read(["ok then"]).tokens
    known = 0x20734554F9A71DBF53A20B0F07D537C1A3D8C22B387F13E41DF29B200681F7B9

    assert (int.from_bytes(packed(tokens)) ^ known).bit_count() <= 4


def test_the_context_of_a_token_changes_its_embedding(embedder: Embedder) -> None:
    """A word is more similar to itself in a similar sentence than in a different sentence."""
    money, same, river = (
        tokens[-1] / np.linalg.norm(tokens[-1])
        for tokens in embedder.read(["money in the bank", "cash at the bank", "reeds on the river bank"]).tokens
    )

    assert money @ same > money @ river


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    """An empty list of texts gives an empty array of the right dimension."""
    assert embedder.embed([]).shape == (0, 384)
    assert list(embedder.read([]).tokens) == []


@pytest.mark.parametrize(
    "companions", [[], ["a"], ["word " * 1000], SENTENCES], ids=["none", "short", "long", "several"]
)
def test_the_batch_does_not_change_a_vector(embedder: Embedder, companions: Sequence[str]) -> None:
    """A text has the same vector alone and in a batch of texts of any length."""
    alone = np.concatenate([embedder.embed([text]) for text in SENTENCES])

    together = embedder.embed([*companions, *SENTENCES, *companions])

    assert np.array_equal(together[len(companions) :][: len(SENTENCES)], alone)


def test_order_is_kept(embedder: Embedder) -> None:
    """Rows are in the order of the texts, even if short and long texts alternate."""
    texts = [f"{number} " * (1 + number % 7 * 20) for number in range(40)]

    assert np.array_equal(embedder.embed(texts[::-1]), embedder.embed(texts)[::-1])


def test_the_number_of_threads_does_not_change_vectors(embedder: Embedder) -> None:
    """The number of threads changes only the speed."""
    assert np.array_equal(PackagedEmbedder(threads=1).embed(SENTENCES), embedder.embed(SENTENCES))


def test_threads_can_share_an_embedder(embedder: Embedder) -> None:
    """Threads can share an embedder, even while it is being loaded."""
    expected = embedder.embed(SENTENCES)
    shared = PackagedEmbedder(threads=1)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(shared.embed, [SENTENCES] * 8))

    assert all(np.array_equal(vectors, expected) for vectors in found)


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\ufffd", "\u200b"], ids=ascii)
def test_text_without_words_has_a_finite_vector(embedder: Embedder, text: str) -> None:
    """A text without words has a vector of finite values."""
    (vector,) = embedder.embed([text])

    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ["half \ud83d of a pair", "\udcff", "fix \udc00\ud800 it"], ids=ascii)
def test_a_lone_surrogate_counts_as_the_replacement_character(embedder: Embedder, text: str) -> None:
    """A lone surrogate gives the same vector as the replacement character."""
    replaced = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)

    assert np.array_equal(embedder.embed([text]), embedder.embed([replaced]))


def test_split_pairs_are_joined(embedder: Embedder) -> None:
    """A surrogate pair gives the same vector as the character that it encodes."""
    assert np.array_equal(embedder.embed(["\ud83d\ude00 done"]), embedder.embed(["😀 done"]))


def test_long_text_is_truncated(embedder: Embedder) -> None:
    """A long text is truncated to 256 tokens, including two special tokens."""
    ten_megabytes = "word " * 2_000_000

    assert np.array_equal(embedder.embed([ten_megabytes]), embedder.embed(["word " * 254]))
    assert not np.array_equal(embedder.embed([ten_megabytes]), embedder.embed(["word " * 253]))


@pytest.mark.parametrize(
    ("text", "paraphrase", "other"),
    [
        (
            "The build is slow because every test starts its own database.",
            "Tests take ages: each one launches a separate Postgres.",
            "The build badge in the readme has the wrong colour.",
        ),
        (
            "How did we stop the memory leak in the image cache?",
            "Thumbnails are now evicted, so the process no longer grows without bound.",
            "How do I rename a branch on the remote?",
        ),
        (
            "parse an ISO date string into a datetime",
            "def to_datetime(text: str) -> datetime:\n    return datetime.fromisoformat(text)",
            "def area(width: float, height: float) -> float:\n    return width * height",
        ),
    ],
    ids=["statement", "question", "code"],
)
def test_a_paraphrase_is_nearest(embedder: Embedder, text: str, paraphrase: str, other: str) -> None:
    """A paraphrase is much more similar than a text on another topic."""
    assert cosine(embedder, text, paraphrase) > cosine(embedder, text, other) + 0.1


def test_the_name_includes_the_pipeline_version(embedder: Embedder) -> None:
    """The name of an embedder includes the model and the version of its text pipeline."""
    assert embedder.name == "all-MiniLM-L6-v2-int8/2"


def test_manifest_describes_the_model(embedder: Embedder) -> None:
    """The manifest has the model's name, its licence and its similarity to the original model."""
    manifest = json.loads((PACKAGED / "manifest.json").read_text("utf-8"))

    assert embedder.name.startswith(f"{manifest['name']}/")
    assert manifest["dimension"] == embedder.dimension
    assert manifest["licence"] == "Apache-2.0"
    assert manifest["source"]["sha256"]["model.safetensors"].startswith("53aa5117")
    assert manifest["agreement"]["mean"] >= 0.985


def test_packaged_graph_is_small_and_maps_its_weights() -> None:
    """Weights are in a separate file that is memory-mapped, and each layer has one attention node."""
    graph = (PACKAGED / encoder.MODEL).read_bytes()

    assert len(graph) < 500_000
    assert (PACKAGED / encoder.WEIGHTS).stat().st_size > 20_000_000
    assert graph.count(b"QAttention") == 6


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the packaged model that a test can damage."""
    for name in ("manifest.json", *encoder.FILES):
        shutil.copy(PACKAGED / name, tmp_path)
    return tmp_path


def test_another_folder_can_hold_the_model(embedder: Embedder, copied: Path) -> None:
    """A complete copy of the model's folder works like the packaged model."""
    assert np.array_equal(PackagedEmbedder(copied).embed(SENTENCES[:1]), embedder.embed(SENTENCES[:1]))


def test_model_files_can_be_symlinks(
    embedder: Embedder, copied: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each file of the model can be a symlink to a different folder."""
    for name in encoder.FILES:
        (copied / name).replace(kept := tmp_path_factory.mktemp("kept") / name)
        (copied / name).symlink_to(kept)

    assert np.array_equal(PackagedEmbedder(copied).embed(SENTENCES[:1]), embedder.embed(SENTENCES[:1]))


@pytest.mark.parametrize("name", encoder.FILES)
def test_verification_names_a_changed_file(copied: Path, name: str) -> None:
    """`verify` rejects a model or tokenizer with one changed byte, and the error contains the file name."""
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)

    with pytest.raises(ModelUnavailable, match=name) as raised:
        PackagedEmbedder(copied).verify()

    assert raised.value.hint == "Reinstall Palaver."


@pytest.mark.parametrize("name", ["manifest.json", *encoder.FILES])
def test_a_missing_file_makes_the_model_unavailable(copied: Path, name: str) -> None:
    """If a file is missing, the model is unavailable and the error contains the file name."""
    (copied / name).unlink()

    with pytest.raises(ModelUnavailable, match=name):
        PackagedEmbedder(copied).embed(["text"])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": 1}', '{"files": {"model_int8.onnx": {}}}'])
def test_a_damaged_manifest_makes_the_model_unavailable(copied: Path, content: str) -> None:
    """A manifest without checksums makes the model unavailable."""
    (copied / "manifest.json").write_text(content, encoding="utf-8")

    with pytest.raises(ModelUnavailable):
        PackagedEmbedder(copied).embed(["text"])


def test_one_process_loads_the_model_once() -> None:
    """All callers in a process share one loaded model."""
    assert load() is load(DEFAULT_MODEL)


def test_failure_is_not_remembered(copied: Path) -> None:
    """A model loads after its missing file is restored, without a restart."""
    hidden = (copied / "model_int8.onnx").rename(copied / "hidden")
    embedder = PackagedEmbedder(copied)
    with pytest.raises(ModelUnavailable):
        embedder.embed(["text"])

    hidden.rename(copied / "model_int8.onnx")

    assert embedder.embed(["text"]).shape == (1, 384)


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers", "numpy"])
def test_a_missing_library_makes_the_model_unavailable(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """If a library cannot be imported, the only error is that the model is unavailable."""
    monkeypatch.setitem(sys.modules, library, None)
    for ours in ("palaver.search.model.encoder", "palaver.search.model.onnx_runtime"):
        monkeypatch.delitem(sys.modules, ours, raising=False)

    with pytest.raises(ModelUnavailable, match=library):
        PackagedEmbedder().embed(["text"])


def test_the_error_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for another model explains how to install the missing extra."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(ModelUnavailable) as raised:
        load("google/embeddinggemma-300m").embed(["text"])

    assert "pip install" in raised.value.hint
    assert "[models]" in raised.value.hint


class TornWeights(Exception):
    """Stub for the error class of safetensors."""


class Unreachable(Exception):
    """Stub for the error class of the HTTP library."""


REFUSALS = (ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError, TornWeights, Unreachable)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_every_error_of_the_libraries_is_translated(monkeypatch: pytest.MonkeyPatch, refusal: type[Exception]) -> None:
    """Every error of sentence-transformers becomes an error with the model name and a remedy."""

    def refuse(*_given: object, **_options: object) -> None:
        raise refusal("no such thing")

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=refuse))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(set_num_threads=int))
    monkeypatch.setitem(sys.modules, "safetensors", SimpleNamespace(SafetensorError=TornWeights))
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", SimpleNamespace(HTTPError=Unreachable))

    with pytest.raises(ModelUnavailable, match=r"a/model cannot be loaded: .*no such thing") as raised:
        load("a/model").embed(["text"])

    assert "palaver model use" in raised.value.hint


@pytest.mark.parametrize("name", encoder.FILES)
def test_a_file_that_onnxruntime_rejects_makes_the_model_unavailable(copied: Path, name: str) -> None:
    """A file with the right checksum that is not a model makes the model unavailable."""
    (copied / name).write_bytes(b"no model")
    manifest = json.loads((copied / "manifest.json").read_text("utf-8"))
    manifest["files"][name] = encoder.fingerprint(copied / name)
    (copied / "manifest.json").write_text(json.dumps(manifest), "utf-8")

    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        PackagedEmbedder(copied).embed(["text"])


def test_a_folder_in_the_working_directory_is_not_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A model name that is also a folder in the working directory is refused, because anyone could have created that
    folder.
    """
    (tmp_path / "org" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ModelUnavailable, match="org/model is ambiguous: the current folder contains"):
        load("org/model").embed(["text"])


def test_name_chooses_the_embedder() -> None:
    """The default name selects the packaged model. Other names select sentence-transformers."""
    assert isinstance(load(), PackagedEmbedder)
    assert isinstance(load(DEFAULT_MODEL), PackagedEmbedder)
    assert isinstance(load("all-MiniLM-L6-v2"), SentenceTransformerEmbedder)
    assert load("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2/1"


def test_import_is_cheap() -> None:
    """Importing the module and choosing an embedder import no inference library."""
    program = (
        "import sys; from palaver.search.model.embedder import load; load(); load('other');"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert "palaver" in ran.stdout
    assert not set(ran.stdout.split()) & {"numpy", "onnxruntime", "sentence_transformers", "tokenizers", "torch"}
