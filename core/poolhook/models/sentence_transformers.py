"""What sentence-transformers' and PyLate's own files say, in the layouts before and since release 5.4.

Formats: https://sbert.net/docs/sentence_transformer/usage/custom_models.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from poolhook.errors import ModelError, shorten
from poolhook.models.files import length, read_optional_json, read_optional_json_list, typed
from poolhook.models.late_interaction import LateInteraction, read_pylate_roles, read_roles
from poolhook.models.modules import (
    DenseLayer,
    Module,
    PoolingModule,
    Splade,
    check_features,
    read_chain,
    read_dense,
    read_logit_score,
    read_pooling,
    read_splade,
)
from poolhook.tasks import Similarity

_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
_CROSS_ENCODER = "CrossEncoder"
_PYLATE = "ColBERT"
_MULTI_VECTOR = "MultiVectorEncoder"
_OUTPUTS = ("last_hidden_state", "logits")

MessageFormat = Literal["flat", "structured"]
"""How the content of a message is given to a chat template: as a text, or as parts of which one is a text."""

# Batches are made in another way here, and what is too long is refused or cut as a request says.
_WITHOUT_EFFECT = {"padding", "truncation", "return_tensors", "pad_to_multiple_of", "return_attention_mask"}

_OF_TEXTS: Mapping[str, Similarity] = {
    "cosine": "cosine",
    "dot": "dot",
    "dot_product": "dot",
    "euclidean": "euclidean",
    "manhattan": "manhattan",
}
# PyLate's first releases wrote what they had inherited, and compared by MaxSim.
_OF_TOKENS: Mapping[str, Similarity] = {
    **dict.fromkeys([*_OF_TEXTS, "maxsim"], "maxsim"),
    "meanmaxsim": "meanmaxsim",
}


@dataclass(frozen=True)
class SentenceTransformerFiles:
    """What sentence-transformers' files say.

    Args:
        transformer_path: the transformer's folder, relative to the model directory; mostly empty.
        transformer_config_file: the file that may state `max_seq_length` and `do_lower_case`.
        pooling_file: the file that decided `pooling`.
        pooling: the Pooling module; None where there is none.
        dense: linear layers behind the pooling, or on each token of a late-interaction model.
        normalize: there is a Normalize module, or one is implied.
        splade: the SpladePooling module.
        late_interaction: what makes queries and documents of a model that answers with a vector for each token.
        score_tokens: the ids of LogitScore: a score is the last logit of its one token, or the second's minus the
            first's.
        activation: the dotted name of a cross-encoder's activation, if the files name one.
        similarity: how two embeddings are compared, if the files say so.
        messages: how texts are made chats of; None if they are not.
        add_generation_prompt: what comes out of a chat template ends with what starts an answer.
        is_cross_encoder: they are a CrossEncoder's.
        is_pylate: they are PyLate's.
    """

    transformer_path: str
    transformer_config_file: str
    pooling_file: str = ""
    pooling: PoolingModule | None = None
    dense: tuple[DenseLayer, ...] = ()
    normalize: bool = False
    splade: Splade | None = None
    late_interaction: LateInteraction | None = None
    score_tokens: tuple[int, ...] = ()
    activation: str | None = None
    similarity: Similarity | None = None
    messages: MessageFormat | None = None
    add_generation_prompt: bool = False
    is_cross_encoder: bool = False
    is_pylate: bool = False
    max_seq_length: int | None = None
    do_lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None


def read_sentence_transformer(path: Path) -> SentenceTransformerFiles | None:
    """Read `modules.json` and what it points at; None where there is none.

    Raises:
        ModelError: a module, a mode or a combination that poolhook does not support, named.
    """
    entries = read_optional_json_list(path / "modules.json")
    if entries is None:
        return None
    chain = read_chain(path, entries)
    modules = {module.name: module for module in chain}
    transformer = modules["Transformer"]
    config_file, config = _transformer_config(path / transformer.folder)
    overall_file = path / "config_sentence_transformers.json"
    overall = read_optional_json(overall_file)
    prompts, default_prompt_name = _prompts(overall_file, overall)
    kind = _kind(overall, modules, entries)
    _check_kind(kind, modules, path)
    if kind != _PYLATE:  # which has code of its own
        for module in chain:
            if module.name in ("Dense", "Normalize"):
                check_features(module, path, "token_embeddings" if kind == _MULTI_VECTOR else "sentence_embedding")
    roles = None
    if kind == _PYLATE:
        roles = read_pylate_roles(prompts, overall_file, overall)
    elif kind == _MULTI_VECTOR:
        mask = modules.get("MultiVectorMask")
        roles = read_roles(prompts, config_file, config, mask.config_file(path) if mask else None)
    text, chat = _processing(config_file, config)
    return SentenceTransformerFiles(
        transformer_path=transformer.folder,
        transformer_config_file=config_file.name,
        pooling_file=f"{modules['Pooling'].folder}/config.json".lstrip("/") if "Pooling" in modules else "",
        pooling=_read(read_pooling, modules.get("Pooling"), path),
        dense=tuple(read_dense(module, path) for module in chain if module.name == "Dense"),
        # PyLate normalises in code.
        normalize="Normalize" in modules or kind == _PYLATE,
        is_pylate=kind == _PYLATE,
        splade=_read(read_splade, modules.get("SpladePooling"), path),
        late_interaction=roles,
        score_tokens=_read(read_logit_score, modules.get("LogitScore"), path) or (),
        activation=overall.get("activation_fn"),
        similarity=_similarity(overall_file, overall, _OF_TOKENS if roles is not None else _OF_TEXTS),
        is_cross_encoder=kind == _CROSS_ENCODER,
        messages=_messages(config_file, config),
        add_generation_prompt=bool(typed(chat, "add_generation_prompt", bool, config_file)),
        max_seq_length=length(text, "max_length", config_file) or length(config, "max_seq_length", config_file),
        do_lower_case=bool(typed(config, "do_lower_case", bool, config_file)),
        prompts=prompts,
        default_prompt_name=default_prompt_name,
    )


def _kind(overall: Mapping[str, Any], modules: Mapping[str, Module], entries: list[dict[str, Any]]) -> str:
    """The class that wrote the files; releases before 5.0 did not say."""
    if "MultiVectorMask" in modules:
        return _MULTI_VECTOR
    if "LogitScore" in modules:
        return _CROSS_ENCODER
    if "query_prefix" in overall or any(str(entry.get("type")).startswith("pylate.") for entry in entries):
        return _PYLATE
    return str(overall.get("model_type") or "SentenceTransformer")


def _check_kind(kind: str, modules: Mapping[str, Module], path: Path) -> None:
    misfits = [name for name in ("Pooling", "Dense") if name in modules]
    file = path / "modules.json"
    if kind == _CROSS_ENCODER and misfits:
        raise ModelError(
            f"{file} makes a cross-encoder of {' and '.join(misfits)}; poolhook serves those that end in the model's "
            "own head for classification, or in LogitScore."
        )
    if kind in (_PYLATE, _MULTI_VECTOR) and "Pooling" in modules:
        raise ModelError(f"{file} pools a {kind} to one vector; a late-interaction model has one for each token.")
    if kind not in (_PYLATE, _MULTI_VECTOR) and misfits == ["Dense"]:
        raise ModelError(f"{file} has a Dense module, but no Pooling before it.")


def _read(reader: Any, module: Module | None, path: Path) -> Any:
    return None if module is None else reader(module.config_file(path))


def _transformer_config(path: Path) -> tuple[Path, dict[str, Any]]:
    file, config = path / _TRANSFORMER_CONFIGS[0], {}
    for name in _TRANSFORMER_CONFIGS:
        if found := read_optional_json(path / name):
            file, config = path / name, found
            break
    text = config.get("modality_config")
    text = text.get("text") if isinstance(text, dict) else None
    output = text.get("method_output_name") if isinstance(text, dict) else None
    if output not in (None, *_OUTPUTS):
        raise ModelError(f"{file} reads {shorten(output)!r} off the transformer. Supported are {', '.join(_OUTPUTS)}.")
    return file, config


def _messages(file: Path, config: Mapping[str, Any]) -> MessageFormat | None:
    """Where a model's texts are made chats of, sentence-transformers does so whatever else it could read."""
    message = (typed(config, "modality_config", dict, file) or {}).get("message")
    if message is None:
        return None
    form = message.get("format", "structured") if isinstance(message, dict) else message
    if form not in ("flat", "structured"):
        raise ModelError(f"{file} makes messages in the format {shorten(form)!r}. Supported are flat and structured.")
    return "flat" if form == "flat" else "structured"


def _processing(file: Path, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What is said to the tokenizer and to the chat template, as far as it changes what the model sees."""
    given = typed(config, "processing_kwargs", dict, file) or {}
    honoured = {"text": {"max_length"}, "chat_template": {"add_generation_prompt"}}
    for kind, options in given.items():
        if not isinstance(options, dict):
            raise ModelError(f"processing_kwargs in {file} must be an object of objects, not {shorten(given)}.")
        unknown = sorted(set(options) - honoured.get(kind, set()) - _WITHOUT_EFFECT)
        if unknown:
            raise ModelError(f"processing_kwargs in {file} has {kind}.{shorten(unknown[0])}, which is not supported.")
    return given.get("text", {}), given.get("chat_template", {})


def _similarity(file: Path, config: Mapping[str, Any], known: Mapping[str, Similarity]) -> Similarity | None:
    name = typed(config, "similarity_fn_name", str, file)
    if name is None:
        return None
    if name.lower() not in known:
        raise ModelError(f"similarity_fn_name in {file} is {shorten(name)!r}. Supported: {', '.join(known)}.")
    return known[name.lower()]


def _prompts(file: Path, config: Mapping[str, Any]) -> tuple[dict[str, str], str | None]:
    # A prompt of null stands for an empty one.
    given = typed(config, "prompts", dict, file) or {}
    if not all(isinstance(text, str | None) for text in given.values()):
        raise ModelError(f"prompts in {file} must be an object of texts by name, not {shorten(given)}.")
    prompts = {name: text or "" for name, text in given.items()}
    default = typed(config, "default_prompt_name", str, file)
    if default is not None and default not in prompts:
        names = shorten(", ".join(prompts)) or "none"
        raise ModelError(f"{file} names the default prompt {shorten(default)!r}, but has {names}.")
    return prompts, default
