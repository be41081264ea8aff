"""`LLM`: a pooling model in a Python program. The name is vLLM's, so that programs written for its pooling side fit."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

from poolhook.config import EngineConfig, PoolerConfig
from poolhook.errors import ConfigError, InvalidRequest
from poolhook.offline.arguments import Params, Tokenization, pooling_params_of, tokenization_params, validated
from poolhook.outputs import (
    ClassificationRequestOutput,
    EmbeddingRequestOutput,
    PoolingOutput,
    PoolingRequestOutput,
    RerankResult,
    ScoringRequestOutput,
)
from poolhook.plugins import DataRequest, PoolingRequest, PromptsRequest, RouteRequest
from poolhook.runtime import Answer, RuntimeConfig, build_runtime, run_offline
from poolhook.tasks import PoolingTask


class LLM:
    """A pooling model, loaded. Several threads may use one.

    Args:
        model: a model directory, a hub id, or `demo`.
        pooler_config: overrides of what the model says about pooling.
        io_processor_plugin: the IO processors that serve task `plugin`, by name; None takes those that the model's
            `config.json` names.
        wrappers: wrappers to put around every route, by name, the first outermost.
        plugin_config: options for each plugin, by its name.
        hf_overrides: put over the model's `config.json`, such as `{"is_matryoshka": True}`.
        chat_template: a file with a template for chats or pairs, or the template itself; None is the model's own.
        engine_options: the fields of `EngineConfig`, such as `device` and `dtype`.

    Raises:
        ModelError: the model can't be found, read or loaded.
        ConfigError: an option is wrong, or the task is not supported.
        PluginError: a selected plugin is broken.
    """

    def __init__(
        self,
        model: str,
        *,
        pooler_config: PoolerConfig | Mapping[str, Any] | None = None,
        io_processor_plugin: str | Sequence[str] | None = None,
        wrappers: Sequence[str] = (),
        plugin_config: Mapping[str, Mapping[str, Any]] | None = None,
        hf_overrides: Mapping[str, Any] | None = None,
        chat_template: str | None = None,
        **engine_options: Any,
    ) -> None:
        unknown = sorted(set(engine_options) - set(EngineConfig.model_fields))
        if unknown:
            known = [name for name in inspect.signature(LLM).parameters if name != "engine_options"]
            raise ConfigError(f"LLM takes no {unknown[0]}. It takes {', '.join([*known, *EngineConfig.model_fields])}.")
        if not isinstance(hf_overrides, Mapping | None):
            raise ConfigError(f"hf_overrides must be a mapping, not {type(hf_overrides).__name__}.")
        if isinstance(io_processor_plugin, str):
            io_processor_plugin = [io_processor_plugin]
        self._runtime = build_runtime(
            RuntimeConfig(
                model=str(model),
                pooler_config=validated(PoolerConfig, pooler_config or {}, ConfigError),
                engine_config=validated(EngineConfig, engine_options, ConfigError),
                io_processor_plugins=io_processor_plugin,
                wrappers=wrappers,
                plugin_config=plugin_config or {},
                hf_overrides=hf_overrides or {},
                chat_template=chat_template,
            )
        )
        # Also at interpreter exit, and when the last reference goes.
        self._close = weakref.finalize(self, self._runtime.close)

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that `encode` can be asked for."""
        return self._runtime.processors.supported_tasks

    def embed(
        self,
        prompts: Any,
        *,
        pooling_params: Params | None = None,
        prompt_name: str | None = None,
        tokenization_kwargs: Tokenization | None = None,
        use_tqdm: bool = True,
    ) -> list[EmbeddingRequestOutput]:
        """Embed prompts.

        Args:
            prompts: one prompt or a list: texts, lists of token ids, or dicts `{"prompt": ...}`,
                `{"prompt_token_ids": ...}` and, for models with a chat template, `{"messages": [...]}`.
            pooling_params: one for all, or one for each prompt.
            prompt_name: which of the model's own prompts (such as `query`) to put before each text.
            tokenization_kwargs: the fields of `TokenizationParams`, such as `truncate_prompt_tokens`.
            use_tqdm: show a progress bar.

        Returns:
            One output for each prompt, in their order; a single prompt gives a list of one.

        Raises:
            InvalidRequest: a prompt or parameter is wrong; the message says which and what is allowed.
            EngineError: the engine could not compute one of them.
        """
        request = PromptsRequest(
            task="embed",
            prompts=prompts,
            prompt_name=prompt_name,
            params=pooling_params_of(pooling_params),
            tokenization=tokenization_params(tokenization_kwargs),
        )
        return [EmbeddingRequestOutput.of(pooled) for pooled in self._run(request, use_tqdm).value]

    def encode(
        self,
        prompts: Any,
        *,
        pooling_task: str | None = None,
        pooling_params: Params | None = None,
        prompt_name: str | None = None,
        tokenization_kwargs: Tokenization | None = None,
        use_tqdm: bool = True,
    ) -> list[PoolingRequestOutput[Any]]:
        """Run a pooling task and return what its route answers.

        Args:
            prompts: as for `embed`; or `{"data": ...}`, with `"plugin"` if several were chosen, for an IO processor.
            pooling_task: the task; None is the one that is served, or `plugin` for `{"data": ...}`.
            pooling_params: one for all, or one for each prompt.
            prompt_name: as for `embed`.
            tokenization_kwargs: as for `embed`.
            use_tqdm: show a progress bar.

        Returns:
            One output for each prompt, in their order; for an IO processor one output, whose `outputs` is its answer.

        Raises:
            InvalidRequest: the request can't be served as it stands; the message says how to ask.
            EngineError: the engine could not compute it.
            PluginError: a plugin failed.
        """
        common: dict[str, Any] = {
            "task": pooling_task,
            "params": pooling_params_of(pooling_params),
            "tokenization": tokenization_params(tokenization_kwargs),
        }
        if isinstance(prompts, Mapping) and "data" in prompts:
            unknown = sorted(set(prompts) - {"data", "plugin"})
            if unknown:
                raise InvalidRequest(f"{{'data': ...}} takes no {', '.join(map(str, unknown))}; only data and plugin.")
            if prompt_name is not None:
                raise InvalidRequest("prompt_name goes with prompts; an IO processor's data has none.", "prompt_name")
            answer = self._run(DataRequest(data=prompts["data"], plugin=prompts.get("plugin"), **common), use_tqdm)
            return [PoolingRequestOutput(answer.request_id, answer.value, ())]
        request = PromptsRequest(prompts=prompts, prompt_name=prompt_name, **common)
        outputs: list[PoolingRequestOutput[Any]] = self._run(request, use_tqdm).value
        return outputs

    def classify(
        self,
        prompts: Any,
        *,
        pooling_params: Params | None = None,
        tokenization_kwargs: Tokenization | None = None,
        use_tqdm: bool = True,
    ) -> list[ClassificationRequestOutput]:
        """Classify prompts.

        Args:
            prompts: as for `embed`; `{"text": ..., "text_pair": ...}` for models that read two texts.
            pooling_params: as for `embed`; `use_activation=False` gives logits.
            tokenization_kwargs: as for `embed`.
            use_tqdm: show a progress bar.

        Returns:
            One output for each prompt, in their order, with `probs`, `label` and `num_classes`.

        Raises:
            InvalidRequest: a prompt or parameter is wrong, or the model does not classify.
            EngineError: the engine could not compute one of them.
        """
        request = PromptsRequest(
            task="classify",
            prompts=prompts,
            params=pooling_params_of(pooling_params),
            tokenization=tokenization_params(tokenization_kwargs),
        )
        pooled = self._run(request, use_tqdm).value
        classifier = self._runtime.spec.classifier
        labels = classifier.labels if classifier is not None else ()
        return [ClassificationRequestOutput.of(one, labels) for one in pooled]

    def reward(
        self,
        prompts: Any,
        *,
        pooling_params: Params | None = None,
        tokenization_kwargs: Tokenization | None = None,
        use_tqdm: bool = True,
    ) -> list[PoolingRequestOutput[PoolingOutput]]:
        """Ask a reward model about prompts: one number for each, or a row for each token or step.

        Args:
            prompts: as for `embed`; mostly chats, `{"messages": [...]}`.
            pooling_params: as for `classify`.
            tokenization_kwargs: as for `embed`.
            use_tqdm: show a progress bar.

        Returns:
            One output for each prompt, in their order; `outputs.data` has shape `[1]` or `[tokens or steps, labels]`.

        Raises:
            InvalidRequest: a prompt or parameter is wrong, or the model gives no rewards.
            EngineError: the engine could not compute one of them.
        """
        rewards: list[PoolingRequestOutput[PoolingOutput]] = self._run_route(
            "reward", {"input": prompts}, pooling_params, tokenization_kwargs, use_tqdm
        )
        return rewards

    def score(
        self,
        queries: str | Sequence[str],
        documents: str | Sequence[str],
        *,
        pooling_params: Params | None = None,
        tokenization_kwargs: Tokenization | None = None,
        use_tqdm: bool = True,
    ) -> list[ScoringRequestOutput]:
        """Score pairs of texts: the query with each document, or each query with the document at its place.

        A cross-encoder's score is its activated logit; a bi-encoder's the similarity of the two embeddings
        that its files name, mostly the cosine, made with the model's prompts for queries and documents where it has
        some; a late-interaction model's MaxSim.

        Args:
            queries: one text, or as many as documents.
            documents: one text or a list.
            pooling_params: as for `embed`.
            tokenization_kwargs: as for `embed`; truncation cuts a pair's document only.
            use_tqdm: show a progress bar.

        Returns:
            One output for each pair, in the order of the documents.

        Raises:
            InvalidRequest: the numbers do not fit, or the model does not score.
            EngineError: the engine could not compute one of them.
        """
        data = {"queries": _texts(queries), "documents": _texts(documents)}
        scored = self._run_route("score", data, pooling_params, tokenization_kwargs, use_tqdm)
        return [ScoringRequestOutput(one.request_id, one.outputs, one.prompt_token_ids) for one in scored]

    def rerank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        top_n: int | None = None,
        pooling_params: Params | None = None,
        tokenization_kwargs: Tokenization | None = None,
        use_tqdm: bool = True,
    ) -> list[RerankResult]:
        """Put documents in the order in which they answer a query.

        Args:
            query: a text.
            documents: texts.
            top_n: how many of the best to return; None for all.
            pooling_params: as for `embed`.
            tokenization_kwargs: as for `score`.
            use_tqdm: show a progress bar.

        Returns:
            The best first, ties in the order in which they came.

        Raises:
            InvalidRequest: `top_n` is below 1, or the model does not score.
            EngineError: the engine could not compute one of them.
        """
        data = {"query": query, "documents": _texts(documents), "top_n": top_n}
        results: list[RerankResult] = self._run_route("rerank", data, pooling_params, tokenization_kwargs, use_tqdm)
        return results

    def close(self) -> None:
        """Stop the engine and shut the plugins down. Closing twice is harmless."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run_route(
        self, route: str, data: Any, params: Params | None, tokenization: Tokenization | None, use_tqdm: bool
    ) -> Any:
        request = RouteRequest(
            route=route,
            data=data,
            params=pooling_params_of(params),
            tokenization=tokenization_params(tokenization),
        )
        return self._run(request, use_tqdm).value

    def _run(self, request: PoolingRequest, use_tqdm: bool) -> Answer:
        if not use_tqdm:
            return run_offline(self._runtime, request)
        # Nothing is shown for what takes no time, nor where nobody looks (disable=None: no terminal).
        with tqdm(desc="Pooling", unit="prompt", leave=False, dynamic_ncols=True, delay=0.5, disable=None) as bar:

            def watch(futures: Sequence[Future[PoolingOutput]]) -> None:
                bar.total = len(futures)
                for future in futures:
                    future.add_done_callback(lambda _: bar.update())

            return run_offline(self._runtime, request, watch)


def _texts(given: Any) -> Any:
    """A list of what any sequence of texts holds: a tuple, an array, a column of a table."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return given
    return given.tolist() if hasattr(given, "tolist") else list(given)
