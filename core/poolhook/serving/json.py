"""JSON written by orjson, which writes NumPy arrays without a Python object for each number."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import BaseModel
from starlette.responses import Response

from poolhook.serving.protocol import EncodingFormat

if TYPE_CHECKING:
    from torch import Tensor

MEDIA_TYPE = "application/json"


def dumps(value: Any) -> bytes:
    """`value` as JSON. Arrays, tensors, dataclasses and pydantic models are understood.

    Raises:
        TypeError: it holds something that is not.
    """
    return orjson.dumps(value, default=_as_plain, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


class JSONResponse(Response):
    """A response whose content goes through `dumps`."""

    media_type = MEDIA_TYPE

    def render(self, content: Any) -> bytes:
        """The body."""
        return dumps(content)


def encode_tensor(data: Tensor, encoding_format: EncodingFormat) -> Any:
    """A float32 tensor as its format wants it: an array for `dumps`, or base64 of little-endian float32."""
    array = data.numpy()
    if encoding_format == "base64":
        return base64.b64encode(array.astype("<f4", copy=False).tobytes()).decode("ascii")
    return array


def _as_plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if hasattr(value, "detach"):  # a tensor; torch need not be imported to know one
        value = value.detach().cpu()
        return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    if hasattr(value, "tolist"):  # arrays that orjson does not take: not contiguous, or of another dtype
        return value.tolist()
    raise TypeError(f"{type(value).__name__} can't be written as JSON")
