"""Tokenizers of several kinds, each as transformers loads it and as poolhook does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

from poolhook.models import resolve_model
from poolhook.render import TextTokenizer
from tiny import save_tokenizer

CORPUS = [
    "the quick brown fox's tail isn't 12345 lazy\n\n  dogs über naïve 日本語 🙂 " * 3,
    "state-of-the-art re-entry",
]


@dataclass(frozen=True)
class Pair:
    """One tokenizer, twice."""

    ours: TextTokenizer
    theirs: Any


@pytest.fixture(scope="session")
def tokenizer_pair(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Pair]:
    """`tokenizer_pair(kind)`: `demo` (WordPiece), `limited` (truncation and padding in its file), `bytes`, `pieces`,
    `roberta`."""
    made: dict[str, Pair] = {}

    def make(kind: str) -> Pair:
        if kind not in made:
            path = resolve_model("demo") if kind == "demo" else SAVE[kind](tmp_path_factory.mktemp(kind))
            ours = TextTokenizer.from_directory(path)
            assert ours is not None
            made[kind] = Pair(ours, AutoTokenizer.from_pretrained(path))
        return made[kind]

    return make


def save_limited(directory: Path) -> Path:
    """A tokenizer.json that cuts to 6 tokens and pads to 10, as the files of many models do."""
    save_tokenizer(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.enable_truncation(6)
    tokenizer.enable_padding(length=10, pad_id=1, pad_token="[PAD]")
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


def save_bytes(directory: Path) -> Path:
    """Byte-level BPE with one special token behind the text, as Qwen3-Embedding has it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=["<end>"], initial_alphabet=alphabet)
    return _finish(directory, tokenizer, trainer, ("$A <end>", "$A <end> $B:1 <end>:1"), "<end>")


def save_roberta(directory: Path) -> Path:
    """Byte-level BPE with RoBERTa's own post-processor: two special tokens between the texts of a pair, no segments."""
    save_bytes(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.add_special_tokens(["<s>", "</s>"])
    ends = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False)
    tokenizer.save(str(directory / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": ["input_ids", "attention_mask"]}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    return directory


def save_pieces(directory: Path) -> Path:
    """Unigram pieces with `▁` for spaces, as XLM-RoBERTa has it."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>")
    return _finish(directory, tokenizer, trainer, ("<s> $A </s>", "<s> $A </s> </s> $B </s>"), "<s>", "</s>")


def _finish(directory: Path, tokenizer: Tokenizer, trainer: Any, templates: tuple[str, str], *specials: str) -> Path:
    tokenizer.train_from_iterator(CORPUS, trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in specials]
    single, pair = templates
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return directory


SAVE = {"limited": save_limited, "bytes": save_bytes, "pieces": save_pieces, "roberta": save_roberta}
