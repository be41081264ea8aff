"""What callers of `LLM` may pass, checked and brought into one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from poolhook.errors import InvalidRequest, describe_problems, shorten
from poolhook.params import PoolingParams, TokenizationParams

Model = TypeVar("Model", bound=BaseModel)

Params = PoolingParams | Sequence[PoolingParams]
Tokenization = TokenizationParams | Mapping[str, Any]


def pooling_params_of(given: Params | None) -> Params:
    """`given`, or params that ask for nothing.

    Raises:
        InvalidRequest: it is neither params nor a list of them.
    """
    if given is None:
        return PoolingParams()
    if isinstance(given, PoolingParams):
        return given
    if isinstance(given, list | tuple) and all(isinstance(params, PoolingParams) for params in given):
        return given
    raise InvalidRequest(
        f"pooling_params must be a PoolingParams or a list of them, not {type(given).__name__}.",
        param="pooling_params",
    )


def tokenization_params(given: Tokenization | None) -> TokenizationParams:
    """`given` as params.

    Raises:
        InvalidRequest: an option is unknown or wrong.
    """
    return validated(TokenizationParams, given or {}, InvalidRequest)


def validated(model: type[Model], given: Model | Mapping[str, Any], error_type: type[Exception]) -> Model:
    """`given` as `model`, or an error that names the option and what the options are."""
    if isinstance(given, model):
        return given
    if not isinstance(given, Mapping):
        raise error_type(f"{shorten(given)} is no {model.__name__} and no mapping with its fields.")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        text, _ = describe_problems(error.errors(include_url=False))
        fields = ", ".join(model.model_fields)
        raise error_type(f"{text.removesuffix('.')}. {model.__name__} takes {fields}.") from error
