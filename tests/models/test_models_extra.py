"""Any sentence-transformers model works, and the packaged one agrees with its original."""

import shutil
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from palaver.core.errors import ModelUnavailable
from palaver.search.model.embedder import PackagedEmbedder, SentenceTransformerEmbedder, load

THINGS = (
    "connection pool",
    "login form",
    "retry policy",
    "search index",
    "image cache",
    "date parser",
    "rate limiter",
    "migration script",
    "websocket handler",
    "feature flag",
    "payment webhook",
    "command line",
    "build pipeline",
    "vector store",
    "session token",
    "markdown renderer",
    "file watcher",
    "job queue",
    "audit log",
    "thread pool",
)
PROSE = (
    "The {} leaks memory when the client disconnects early, so we close it in a finally block now.",
    "Why does the {} fail on Windows but not on Linux?",
    "Decided to replace the {}: the old one could not be tested without a network. Rejected: patching it once more.",
    "please make the {} faster, it takes 4.2 seconds and nobody wants to wait for that",
    "I checked the {}: errors are swallowed, and the timeout is in milliseconds where seconds are expected. Fixed.",
)
CODE = (
    "def open_{snake}(path: Path, *, limit: int = 10) -> {camel}:\n    return {camel}(path.read_text(), limit)",
    "export async function load{camel}(id: string): Promise<{camel} | null> {{\n  return await db.find({{ id }});\n}}",
    "func (s *{camel}) Close() error {{\n\ts.mu.Lock()\n\tdefer s.mu.Unlock()\n\treturn s.conn.Close()\n}}",
    "SELECT id, created_at FROM {snake} WHERE state = 'open' ORDER BY created_at DESC LIMIT 50;",
    "impl Drop for {camel} {{ fn drop(&mut self) {{ self.handle.take().map(|h| h.join().unwrap()); }} }}",
)
NAMES = ("{snake}", "{camel}", "{upper}_TIMEOUT_MS", "{kebab}.service", "get{camel}ById")
PATHS = (
    "src/{snake}/__init__.py",
    "/etc/{kebab}/config.d/10-{kebab}.yaml:31",
    r"C:\work\{camel}\bin\{camel}.dll",
    "https://example.org/docs/{kebab}?version=2#setup",
    "tests/{snake}/test_{snake}.py::test_{snake}_is_closed",
)
ERRORS = (
    "TypeError: '{camel}' object is not callable",
    "error[E0382]: borrow of moved value: `{snake}`",
    "npm ERR! missing script: {kebab}",
    "fatal: not a git repository: ../{kebab}/.git",
    "thread 'main' panicked at src/{snake}.rs:88:14: called `Option::unwrap()` on a `None` value",
)
LANGUAGES = (
    "Der Zwischenspeicher wird erst geleert, wenn alle Leser fertig sind.",
    "Warum schlägt der Test nur auf dem Server fehl?",
    "La base de données refuse les écritures pendant la sauvegarde.",
    "Il faut renommer la fonction avant la prochaine version.",
    "El servidor no responde cuando hay más de mil usuarios.",
    "¿Cómo se configura el proxy en el contenedor?",
    "Il programma si blocca se il file di configurazione è vuoto.",
    "O teste falha porque o relógio está no fuso horário errado.",
    "De nieuwe zoekfunctie vindt ook gedeelten van woorden.",
    "Testet misslyckas eftersom porten redan används.",
    "Funkcja zwraca pustą listę, gdy plik nie istnieje.",
    "Сервер падает, если запрос приходит без заголовка.",
    "Почему индекс строится заново при каждом запуске?",
    "Ο διακομιστής δεν απαντά μετά την ενημέρωση.",
    "Sunucu yeniden başlatıldıktan sonra oturumlar kayboluyor.",
    "השרת קורס כאשר הקובץ ריק.",
    "الخادم لا يستجيب بعد التحديث.",
    "सर्वर अपडेट के बाद जवाब नहीं दे रहा है।",
    "サーバーが再起動するとセッションが消えてしまう。",
    "検索インデックスを毎回作り直すのはなぜですか。",
    "数据库在备份期间拒绝写入。",
    "为什么测试只在服务器上失败?",
    "서버를 다시 시작하면 세션이 사라집니다.",
    "Máy chủ không phản hồi sau khi cập nhật.",
    "เซิร์ฟเวอร์ไม่ตอบสนองหลังการอัปเดต",
)


def written(template: str, thing: str) -> str:
    """Fill a template with a subject in the required spelling."""
    snake = thing.replace(" ", "_")
    spellings = {"snake": snake, "camel": thing.title().replace(" ", ""), "upper": snake.upper()}
    return template.format(thing, kebab=thing.replace(" ", "-"), **spellings)


def varied() -> Iterator[str]:
    """Yield prose, code, names, paths and errors, other languages, and long mixtures."""
    prose = [written(template, thing) for thing in THINGS for template in PROSE]
    code = [written(*pair) for pair in zip(cycle(CODE), THINGS, strict=False)]
    short = [written(*pair) for kind in (NAMES, PATHS, ERRORS) for pair in zip(cycle(kind), THINGS, strict=False)]
    yield from (*prose, *code, *short, *LANGUAGES)
    for start in range(20):
        yield "\n\n".join((prose[start], code[start], *short[start::20], *prose[start + 1 : start + 1 + start]))


TEXTS = tuple(varied())


@pytest.fixture(scope="module")
def original(model_folder: Path) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(str(model_folder))


def test_packaged_model_agrees_with_the_original(original: SentenceTransformerEmbedder) -> None:
    """Over varied texts, the int8 vectors have a mean cosine similarity of 0.985 to the float32 vectors."""
    cosines = np.sum(PackagedEmbedder().embed(TEXTS) * original.embed(TEXTS), axis=1)

    assert len(set(TEXTS)) >= 200
    assert cosines.mean() >= 0.985
    assert cosines.min() >= 0.95


def test_folder_is_a_model(model_folder: Path) -> None:
    """A model is loaded from its folder and returns one unit row per text."""
    embedder = load(str(model_folder), threads=2)

    vectors = embedder.embed(["the first text", "", "lone \ud83d surrogate"])

    assert embedder.dimension == 384
    assert embedder.name == f"{model_folder}/1"
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] @ embedder.embed(["the first text"])[0] == pytest.approx(1, abs=1e-5)
    assert embedder.embed([]).shape == (0, 384)


def test_paraphrases_are_near(original: SentenceTransformerEmbedder) -> None:
    """A paraphrase is nearer than a text on another topic."""
    text, paraphrase, other = original.embed(["restart the server", "reboot the machine", "a blue wall"])

    assert text @ paraphrase > text @ other


def test_unknown_model_is_an_error() -> None:
    """An unknown model is not downloaded. The error contains the command that downloads it."""
    with pytest.raises(ModelUnavailable, match="nobody/no-such-model") as raised:
        load("nobody/no-such-model").embed(["text"])

    assert "palaver model use" in raised.value.hint


def test_pickled_weights_are_refused(model_folder: Path, tmp_path: Path) -> None:
    """Only safetensors weights are loaded, since a pickle can run code."""
    folder = tmp_path / "model"
    shutil.copytree(model_folder, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    with pytest.raises(ModelUnavailable, match="safetensors"):
        load(str(folder)).embed(["text"])
