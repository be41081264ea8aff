"""From the hidden states of a packed batch to what a task answers: pooling methods and heads, vectorised."""

from poolhook.pooler.embed import EmbedPooler
from poolhook.pooler.pooler import PooledBatch, Pooler, TaskPooler

__all__ = ["EmbedPooler", "PooledBatch", "Pooler", "TaskPooler"]
