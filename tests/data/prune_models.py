"""Cut the trained test models down to the vocabulary that their tests need: `prune_models.py SOURCE_DIR`.

Nearly all of an original is the embedding of 30,522 tokens. The copies, in `models/` beside this file, share one small
vocabulary: the tokens of every `expected.json`, the special tokens, single ASCII characters, and common short words
and endings, so that any English text still becomes sensible tokens. WordPiece takes the longest piece that it knows, so
a text whose pieces are all kept is cut as before and outputs stay what they were. Other weights are untouched.
"""

from __future__ import annotations

import json
import shutil
import string
import sys
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file

MODELS = ("tiny-reranker", "tiny-injection-classifier", "tiny-ner", "tiny-colbert")
TARGET = Path(__file__).parent / "models"
COMMON_PIECES = 600
WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"


def read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def write(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def kept_tokens(source: Path) -> list[str]:
    """The common vocabulary, in the order of the original one, which puts frequent words first."""
    expected_ids = {
        token_id
        for name in MODELS
        for item in read(source / name / "expected.json")["items"]
        for token_id in item["input_ids"]
    }
    tokenizer = read(source / MODELS[0] / "tokenizer.json")
    special = {token["content"] for token in tokenizer["added_tokens"]}
    characters = string.ascii_lowercase + string.digits + string.punctuation
    kept = special | set(characters) | {f"##{character}" for character in characters}

    tokens = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1])
    letters = [(token, token.removeprefix("##")) for token, _ in tokens]
    pieces = [token for token, piece in letters if piece.isascii() and piece.isalpha() and 2 <= len(piece) <= 7]
    kept |= set(pieces[:COMMON_PIECES])
    return [token for token, token_id in tokens if token in kept or token_id in expected_ids]


def prune_tokenizer(tokenizer: dict[str, Any], kept: list[str]) -> list[int]:
    """Give `tokenizer` the vocabulary `kept`, in place; the old id of each new one, added tokens last."""
    vocab = tokenizer["model"]["vocab"]
    old_ids = [vocab[token] for token in kept]
    for token in tokenizer["added_tokens"]:
        if token["content"] not in vocab:
            old_ids.append(token["id"])
    new_ids = {old: new for new, old in enumerate(old_ids)}

    tokenizer["model"]["vocab"] = {token: new for new, token in enumerate(kept)}
    for token in tokenizer["added_tokens"]:
        token["id"] = new_ids[token["id"]]
    for special in tokenizer["post_processor"]["special_tokens"].values():
        special["ids"] = [new_ids[old] for old in special["ids"]]
    return old_ids


def prune_model(source: Path, target: Path, kept: list[str]) -> None:
    """Write the copy of the model in `source` that knows only the tokens `kept`."""
    shutil.rmtree(target, ignore_errors=True)
    for file in filter(Path.is_file, source.rglob("*")):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)

    tokenizer = read(source / "tokenizer.json")
    old_ids = prune_tokenizer(tokenizer, kept)
    new_ids = {old: new for new, old in enumerate(old_ids)}
    write(target / "tokenizer.json", tokenizer)

    config = read(source / "config.json")
    card = model_card(source, config["vocab_size"], len(old_ids))
    (target / "MODEL_CARD.md").write_text(card, encoding="utf-8")
    config |= {"vocab_size": len(old_ids), "pad_token_id": new_ids[config["pad_token_id"]]}
    write(target / "config.json", config)

    expected = read(source / "expected.json")
    for item in expected["items"]:
        item["input_ids"] = [new_ids[old] for old in item["input_ids"]]
    write(target / "expected.json", expected)

    weights = load_file(source / "model.safetensors")
    (embeddings,) = (name for name in weights if name.endswith(WORD_EMBEDDINGS))
    weights[embeddings] = weights[embeddings][old_ids]
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def model_card(source: Path, old_size: int, new_size: int) -> str:
    title, _, rest = (source / "MODEL_CARD.md").read_text(encoding="utf-8").partition("\n")
    pruned = (
        f"This copy is pruned by `tests/data/prune_models.py` from {old_size} to {new_size} tokens (those of the "
        "sanity inputs, the special tokens, ASCII characters, common short words and endings) with the rows of its "
        "word embedding and all token ids renumbered, so ids, sizes, checksums and measured quality below are the "
        "original's."
    )
    return f"{title}\n\n{pruned}\n{rest}"


def main(source: Path) -> None:
    kept = kept_tokens(source)
    for name in MODELS:
        prune_model(source / name, TARGET / name, kept)
        size = sum(file.stat().st_size for file in (TARGET / name).rglob("*") if file.is_file())
        print(f"{name}: {len(kept)} tokens, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
