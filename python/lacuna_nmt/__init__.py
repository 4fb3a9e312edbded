"""Lacuna from Python: translates with a trained model, scores translations, and shows attention.

    from lacuna_nmt import Translator

    translator = Translator("runs/bundled/averaged")
    [best] = translator.translate(["Die Frau liest ein Buch."], attention=True)
    print(best.text, best.attention.shape)
"""

from . import _libraries

_libraries.load()

from ._build import VERSION as __version__  # noqa: E402
from .errors import CheckpointError, ConfigError, DataError, Error, MachineError  # noqa: E402
from .translator import PairAttention, Score, Translation, Translator  # noqa: E402

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Error",
    "MachineError",
    "PairAttention",
    "Score",
    "Translation",
    "Translator",
    "__version__",
]
