"""Does the packaged model give every text a vector that says what it means?"""

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
from palaver.search.index.token_bits import packed
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
    """Each text gets a row of 384 float32 numbers whose length is one."""
    vectors = embedder.embed(SENTENCES)

    assert vectors.shape == (len(SENTENCES), embedder.dimension) == (5, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_each_token_of_a_text_is_told(embedder: Embedder) -> None:
    """Beside its vector a text has 128 numbers for each of its own tokens, in the place where they stand."""
    vectors, tokens, spans = embedder.read([*SENTENCES, "", "word " * 300])

    assert np.array_equal(vectors[:5], embedder.embed(SENTENCES))
    assert [len(each) for each in tokens] == [13, 34, 34, 21, 1, 0, 254]
    assert {(each.shape[1], each.dtype) for each in tokens} == {(128, np.dtype("f4"))}
    assert [len(each) for each in spans] == [len(each) for each in tokens]
    text = "É unkettled é"
    [places] = embedder.read([text]).spans
    assert [text[start:end] for start, end in places] == ["É", "un", "ke", "ttle", "d", "é"]


def test_the_signs_of_one_text(embedder: Embedder) -> None:
    """What is stored of a text's tokens does not change from one version to the next, unless the model's name does; on
    another processor a number next to zero may fall on its other side.
    """
    [tokens] = embedder.read(["ok then"]).tokens
    known = 0x20734554F9A71DBF53A20B0F07D537C1A3D8C22B387F13E41DF29B200681F7B9

    assert (int.from_bytes(packed(tokens)) ^ known).bit_count() <= 4


def test_a_token_means_what_it_does_in_its_place(embedder: Embedder) -> None:
    """The same word is nearer to itself in a like sentence than in another."""
    money, same, river = (
        tokens[-1] / np.linalg.norm(tokens[-1])
        for tokens in embedder.read(["money in the bank", "cash at the bank", "reeds on the river bank"]).tokens
    )

    assert money @ same > money @ river


def test_nothing_gives_no_rows(embedder: Embedder) -> None:
    """An empty list of texts gives an empty array that still has the dimension."""
    assert embedder.embed([]).shape == (0, 384)
    assert list(embedder.read([]).tokens) == []


@pytest.mark.parametrize(
    "companions", [[], ["a"], ["word " * 1000], SENTENCES], ids=["none", "short", "long", "several"]
)
def test_company_changes_nothing(embedder: Embedder, companions: Sequence[str]) -> None:
    """A text has exactly the same vector alone as among others, whatever their length."""
    alone = np.concatenate([embedder.embed([text]) for text in SENTENCES])

    together = embedder.embed([*companions, *SENTENCES, *companions])

    assert np.array_equal(together[len(companions) :][: len(SENTENCES)], alone)


def test_order_is_kept(embedder: Embedder) -> None:
    """Rows come in the order of the texts, also when short and long ones alternate."""
    texts = [f"{number} " * (1 + number % 7 * 20) for number in range(40)]

    assert np.array_equal(embedder.embed(texts[::-1]), embedder.embed(texts)[::-1])


def test_threads_change_nothing(embedder: Embedder) -> None:
    """The number of threads affects the speed only."""
    assert np.array_equal(PackagedEmbedder(threads=1).embed(SENTENCES), embedder.embed(SENTENCES))


def test_many_may_embed_at_once(embedder: Embedder) -> None:
    """An embedder may be shared, even while it is still being loaded."""
    expected = embedder.embed(SENTENCES)
    shared = PackagedEmbedder(threads=1)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(shared.embed, [SENTENCES] * 8))

    assert all(np.array_equal(vectors, expected) for vectors in found)


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\ufffd", "\u200b"], ids=ascii)
def test_text_without_words(embedder: Embedder, text: str) -> None:
    """Text without a single word has a vector too, and it is a number in every place."""
    (vector,) = embedder.embed([text])

    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ["half \ud83d of a pair", "\udcff", "fix \udc00\ud800 it"], ids=ascii)
def test_lone_surrogates(embedder: Embedder, text: str) -> None:
    """A lone surrogate counts as the replacement character."""
    replaced = "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)

    assert np.array_equal(embedder.embed([text]), embedder.embed([replaced]))


def test_split_pairs_are_joined(embedder: Embedder) -> None:
    """Two surrogates that are one character count as that character."""
    assert np.array_equal(embedder.embed(["\ud83d\ude00 done"]), embedder.embed(["😀 done"]))


def test_long_text_is_cut(embedder: Embedder) -> None:
    """Of a very long text the first 256 tokens count: 254 of its own, framed by two of the model's."""
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
def test_meaning_is_nearness(embedder: Embedder, text: str, paraphrase: str, other: str) -> None:
    """A paraphrase is clearly nearer than a text about something else."""
    assert cosine(embedder, text, paraphrase) > cosine(embedder, text, other) + 0.1


def test_name_holds_the_pipeline(embedder: Embedder) -> None:
    """The name of an embedder tells its model and the version of all that is done to a text."""
    assert embedder.name == "all-MiniLM-L6-v2-int8/2"


def test_manifest_describes_the_model(embedder: Embedder) -> None:
    """The manifest names the model as the embedder does, its licence, and how near it is to the original."""
    manifest = json.loads((PACKAGED / "manifest.json").read_text("utf-8"))

    assert embedder.name.startswith(f"{manifest['name']}/")
    assert manifest["dimension"] == embedder.dimension
    assert manifest["licence"] == "Apache-2.0"
    assert manifest["source"]["sha256"]["model.safetensors"].startswith("53aa5117")
    assert manifest["agreement"]["mean"] >= 0.985


def test_packaged_graph_is_small_and_loads_no_weights() -> None:
    """Weights lie apart from the graph, where they are mapped and not copied, and attention is one node a layer."""
    graph = (PACKAGED / encoder.MODEL).read_bytes()

    assert len(graph) < 500_000
    assert (PACKAGED / encoder.WEIGHTS).stat().st_size > 20_000_000
    assert graph.count(b"QAttention") == 6


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the packaged model that a test may damage."""
    for name in ("manifest.json", *encoder.FILES):
        shutil.copy(PACKAGED / name, tmp_path)
    return tmp_path


def test_model_may_lie_elsewhere(embedder: Embedder, copied: Path) -> None:
    """A whole copy of the model's folder is as good as the packaged one."""
    assert np.array_equal(PackagedEmbedder(copied).embed(SENTENCES[:1]), embedder.embed(SENTENCES[:1]))


def test_each_file_may_be_a_link(embedder: Embedder, copied: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also where each leads to another folder, as some installers link what they keep."""
    for name in encoder.FILES:
        (copied / name).replace(kept := tmp_path_factory.mktemp("kept") / name)
        (copied / name).symlink_to(kept)

    assert np.array_equal(PackagedEmbedder(copied).embed(SENTENCES[:1]), embedder.embed(SENTENCES[:1]))


@pytest.mark.parametrize("name", encoder.FILES)
def test_verification_names_a_changed_file(copied: Path, name: str) -> None:
    """`verify` refuses one changed byte in the model or its tokenizer, and the error names the file."""
    content = bytearray((copied / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copied / name).write_bytes(content)

    with pytest.raises(ModelUnavailable, match=name) as raised:
        PackagedEmbedder(copied).verify()

    assert raised.value.hint == "Reinstall Palaver."


@pytest.mark.parametrize("name", ["manifest.json", *encoder.FILES])
def test_missing_file_is_told(copied: Path, name: str) -> None:
    """Without one of its files the model is unavailable, and the error names the file."""
    (copied / name).unlink()

    with pytest.raises(ModelUnavailable, match=name):
        PackagedEmbedder(copied).embed(["text"])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": 1}', '{"files": {"model_int8.onnx": {}}}'])
def test_damaged_manifest_is_told(copied: Path, content: str) -> None:
    """A manifest that says nothing about the files makes the model unavailable."""
    (copied / "manifest.json").write_text(content, encoding="utf-8")

    with pytest.raises(ModelUnavailable):
        PackagedEmbedder(copied).embed(["text"])


def test_one_process_loads_the_model_once() -> None:
    """Whoever asks for it shares it: a server answers over the archive, the memories and the documents."""
    assert load() is load(DEFAULT_MODEL)


def test_failure_is_not_remembered(copied: Path) -> None:
    """A model that was put right is found without a new start."""
    hidden = (copied / "model_int8.onnx").rename(copied / "hidden")
    embedder = PackagedEmbedder(copied)
    with pytest.raises(ModelUnavailable):
        embedder.embed(["text"])

    hidden.rename(copied / "model_int8.onnx")

    assert embedder.embed(["text"]).shape == (1, 384)


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers", "numpy"])
def test_missing_library_is_told(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Where a library cannot be imported the model is unavailable; nothing else is raised."""
    monkeypatch.setitem(sys.modules, library, None)
    for ours in ("palaver.search.model.encoder", "palaver.search.model.onnx_runtime"):
        monkeypatch.delitem(sys.modules, ours, raising=False)

    with pytest.raises(ModelUnavailable, match=library):
        PackagedEmbedder().embed(["text"])


def test_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for another model without the extra, the error says how to install it."""
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)

    with pytest.raises(ModelUnavailable) as raised:
        load("google/embeddinggemma-300m").embed(["text"])

    assert "pip install" in raised.value.hint
    assert "[models]" in raised.value.hint


class TornWeights(Exception):
    """Stands for the error of safetensors."""


class Unreachable(Exception):
    """Stands for the error of the network's library."""


REFUSALS = (ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError, TornWeights, Unreachable)


@pytest.mark.parametrize("refusal", REFUSALS)
def test_every_refusal_of_the_libraries_is_translated(
    monkeypatch: pytest.MonkeyPatch, refusal: type[Exception]
) -> None:
    """Whatever sentence-transformers raises for a model, ours says which model and what to do."""

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
def test_what_the_runtime_refuses_is_told(copied: Path, name: str) -> None:
    """A file that is what the manifest says and is no model all the same makes the model unavailable."""
    (copied / name).write_bytes(b"no model")
    manifest = json.loads((copied / "manifest.json").read_text("utf-8"))
    manifest["files"][name] = encoder.fingerprint(copied / name)
    (copied / "manifest.json").write_text(json.dumps(manifest), "utf-8")

    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        PackagedEmbedder(copied).embed(["text"])


def test_current_folder_chooses_no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A model's name that is also a folder in the current one is refused: anyone could have put it there."""
    (tmp_path / "org" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ModelUnavailable, match="org/model is also a file or folder here"):
        load("org/model").embed(["text"])


def test_name_chooses_the_embedder() -> None:
    """The default name is the packaged model; every other is left to sentence-transformers."""
    assert isinstance(load(), PackagedEmbedder)
    assert isinstance(load(DEFAULT_MODEL), PackagedEmbedder)
    assert isinstance(load("all-MiniLM-L6-v2"), SentenceTransformerEmbedder)
    assert load("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2/1"


def test_import_is_cheap() -> None:
    """Importing the module, and choosing an embedder, loads no library that runs a model."""
    program = (
        "import sys; from palaver.search.model.embedder import load; load(); load('other');"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert "palaver" in ran.stdout
    assert not set(ran.stdout.split()) & {"numpy", "onnxruntime", "sentence_transformers", "tokenizers", "torch"}
