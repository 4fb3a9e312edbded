"""What goes wrong, with the messages of the program lacuna."""

__all__ = ["CheckpointError", "ConfigError", "DataError", "Error", "MachineError"]


class Error(Exception):
    """The base of every error of this package."""


class ConfigError(Error, ValueError):
    """A wrong option, or a combination of options without a meaning."""


class DataError(Error, ValueError):
    """A text or a file that cannot be taken."""


class CheckpointError(Error):
    """A checkpoint that is missing, damaged, or of another version."""


class MachineError(Error, RuntimeError):
    """The machine refused: a file that cannot be read, a GPU that fails."""
