"""The class that translates, and what it returns."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ._lacuna import Model
from .errors import ConfigError, DataError

_LOG = logging.getLogger("lacuna_nmt")


@dataclass(frozen=True, eq=False)
class Translation:
    """A translation of a text. Of an empty text it is empty."""

    text: str
    score: float
    """What translations are ranked by: log_prob over the length penalty."""
    log_prob: float
    """In nats, summed over all tokens."""
    tokens: list[str]
    """The pieces of the translation; the last is </s>."""
    token_log_probs: NDArray[np.float32] = field(repr=False)
    """Of each token, in nats."""
    src_tokens: list[str] = field(repr=False)
    """The pieces of the text; the last is </s>."""
    alignment: NDArray[np.int32] | None = field(default=None, repr=False)
    """Links [links, 2], each a source and a target word (or piece), counted from 0; None unless asked for."""
    attention: NDArray[np.float32] | None = field(default=None, repr=False)
    """Weights of cross attention [layers, heads, tokens, src_tokens], or [tokens, src_tokens] of one layer; NaN where a pattern hides a
    source token; None unless asked for."""
    is_truncated: bool = False
    """Cut at a length limit, or where no other token was allowed."""
    is_cropped: bool = False
    """The text was cut to the longest that the model can read."""
    unknown_ratio: float = 0.0
    """Share of the text's tokens that the vocabulary does not know."""
    alternatives: list[Translation] = field(default_factory=list, repr=False)
    """The next best translations, with n_best above 1."""


@dataclass(frozen=True, eq=False)
class Score:
    """What the model thinks of a given translation."""

    log_prob: float
    """In nats, summed over all tokens; NaN where the source is empty and the target is not."""
    tokens: list[str]
    """The pieces of the target; the last is </s>."""
    token_log_probs: NDArray[np.float32] = field(repr=False)


@dataclass(frozen=True, eq=False)
class PairAttention:
    """All attention weights of a given pair, [layers, heads, queries, keys] at each site; NaN where a query does not see a key."""

    src_tokens: list[str]
    """The pieces of the source; the last is </s>."""
    tokens: list[str]
    """The pieces of the target; the last is </s>. The query of a token is the step that predicts it."""
    encoder_self: NDArray[np.float32] = field(repr=False)
    decoder_self: NDArray[np.float32] = field(repr=False)
    cross: NDArray[np.float32] = field(repr=False)


class Translator:
    """A model that is loaded to translate. Several threads may use one; each call computes with `threads` threads of its own.

    `path` is a checkpoint or a run folder. `device` is "cpu", "cuda" or "cuda:N"; `precision` "fp32", "bf16", "int8" or "auto", or None for
    the model's own; `threads` 0 means all cores that the process may use. Other keywords are keys of the configuration's section
    `translate` that hold for all calls, such as `beam_size=4` or `shortlist="FILE"`.

    Raises CheckpointError, ConfigError or MachineError.
    """

    src_lang: str
    tgt_lang: str
    encoder_layers: int
    decoder_layers: int
    num_heads: int
    d_model: int

    def __init__(
        self, path: str | os.PathLike[str], *, device: str = "cpu", precision: str | None = None, threads: int = 0, **options: Any
    ) -> None:
        given = {**options} if precision is None else {**options, "precision": precision}
        self._model = Model(os.fspath(path), device, given, threads)
        for name, value in self._model.about().items():
            setattr(self, name, value)
        self._path = os.fspath(path)

    def __repr__(self) -> str:
        return f"Translator({self._path!r})"

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam_size: int | None = None,
        n_best: int | None = None,
        prefix: str | Sequence[str] = "",
        alignment: bool | Literal["word", "subword"] = False,
        attention: bool | tuple[int, int | None] = False,
        seed: int = 1,
        **options: Any,
    ) -> list[Translation]:
        """Translates sentences, many at a time: a Translation for each.

        `prefix` is what translations begin with, one for all or one each. `alignment` asks for links of words or pieces, `attention` for the
        weights of cross attention: True for those of all layers and heads, (layer, head) for one head's, (layer, None) for the mean of a
        layer's heads. `seed` is that of sampling. Other keywords are keys of the configuration's section `translate`.

        Raises ConfigError, or DataError for a text that is no sentence.
        """
        lines = _texts(texts, "texts")
        prefixes = [prefix] * len(lines) if isinstance(prefix, str) else _texts(prefix, "prefix")
        if len(prefixes) != len(lines):
            raise DataError(f"prefix has {len(prefixes)} texts, and texts {len(lines)}; expected as many, or one string for all")
        for name, value in (("beam_size", beam_size), ("n_best", n_best)):
            if value is not None:
                options[name] = value
        self._require_place(attention)
        found = self._model.translate(list(zip(lines, prefixes)), options, _level_of(alignment), attention is not False, seed)
        result = []
        for number, (translations, has_unknown_prefix, is_prefix_cropped) in enumerate(found):
            if has_unknown_prefix:
                _LOG.warning("texts[%d]: its prefix has what the vocabulary cannot write; the unknown token stands for it", number)
            if is_prefix_cropped:
                _LOG.warning("texts[%d]: its prefix is longer than a translation may be; its end is left out", number)
            if translations[0]["is_cropped"]:
                _LOG.warning("texts[%d] is longer than the model can read; its end is left out", number)
            best, *others = ({**fields, "attention": _chosen(fields["attention"], attention)} for fields in translations)
            result.append(Translation(**best, alternatives=[Translation(**other) for other in others]))
        return result

    def score(self, src: Sequence[str], tgt: Sequence[str]) -> list[Score]:
        """Scores given translations: a Score for each pair. Raises DataError for a text that is no sentence or too long."""
        result = []
        for fields in self._model.force(_pairs(src, tgt), False):
            log_probs = fields["token_log_probs"]
            has_source = len(fields["src_tokens"]) > 0
            log_prob = math.fsum(log_probs) if has_source else (math.nan if len(fields["tokens"]) > 1 else 0.0)
            result.append(Score(log_prob, fields["tokens"] if has_source else [], log_probs))
        return result

    def attention(self, src: Sequence[str], tgt: Sequence[str]) -> list[PairAttention]:
        """Shows what the model attends to while it says given translations: a PairAttention for each pair. Raises DataError as score() does."""
        result = []
        for fields in self._model.force(_pairs(src, tgt), True):
            del fields["token_log_probs"]
            result.append(PairAttention(**fields))
        return result

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Returns the encoder's output [tokens, d_model] of each text; the last token is </s>."""
        return self._model.encode(_texts(texts, "texts"))

    def tokenize(self, text: str, side: Literal["src", "tgt"] = "src") -> list[str]:
        """Returns the pieces that a side's vocabulary cuts a text into, without </s>."""
        if side not in ("src", "tgt"):
            raise ConfigError(f'side is {side!r}; expected "src" or "tgt"')
        return self._model.tokenize(text, side == "src")

    def _require_place(self, attention: bool | tuple[int, int | None]) -> None:
        if isinstance(attention, bool):
            return
        layer, head = attention
        if not 0 <= layer < self.decoder_layers or not (head is None or 0 <= head < self.num_heads):
            raise ConfigError(
                f"attention is {attention}; expected (layer, head): the decoder's layers are 0 to {self.decoder_layers - 1}, "
                f"their heads 0 to {self.num_heads - 1}, None for the mean of a layer"
            )


def _texts(texts: Sequence[str], name: str) -> list[str]:
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{name} is a {type(texts).__name__}; expected a list of str: [text]")
    found = list(texts)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{number}] is a {type(text).__name__}; expected str")
    return found


def _pairs(src: Sequence[str], tgt: Sequence[str]) -> list[tuple[str, str]]:
    sources, targets = _texts(src, "src"), _texts(tgt, "tgt")
    if len(sources) != len(targets):
        raise DataError(f"src has {len(sources)} texts and tgt {len(targets)}; expected as many")
    return list(zip(sources, targets))


def _level_of(alignment: bool | str) -> str:
    if isinstance(alignment, bool):
        return "word" if alignment else ""
    if alignment not in ("word", "subword"):
        raise ConfigError(f'alignment is {alignment!r}; expected True, "word" or "subword"')
    return alignment


def _chosen(weights: NDArray[np.float32] | None, attention: bool | tuple[int, int | None]) -> NDArray[np.float32] | None:
    if weights is None or isinstance(attention, bool):
        return weights
    layer, head = attention
    return weights[layer].mean(axis=0) if head is None else weights[layer, head].copy()
