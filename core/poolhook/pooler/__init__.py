"""From the hidden states of a packed batch to what a task answers: pooling methods and heads, vectorised."""

from poolhook.pooler.bge_m3 import BgeM3Pooler, BgeM3TokenPooler
from poolhook.pooler.classify import ClassifyPooler
from poolhook.pooler.embed import EmbedPooler
from poolhook.pooler.labels import Activation
from poolhook.pooler.methods import pool
from poolhook.pooler.pooler import Head, HiddenBatch, PooledBatch, Pooler, TaskPooler
from poolhook.pooler.splade import SpladePooler
from poolhook.pooler.token_classify import TokenClassifyPooler
from poolhook.pooler.token_embed import TokenEmbedPooler

__all__ = [
    "Activation",
    "BgeM3Pooler",
    "BgeM3TokenPooler",
    "ClassifyPooler",
    "EmbedPooler",
    "Head",
    "HiddenBatch",
    "PooledBatch",
    "Pooler",
    "SpladePooler",
    "TaskPooler",
    "TokenClassifyPooler",
    "TokenEmbedPooler",
    "pool",
]
