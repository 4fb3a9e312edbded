"""How long tests wait before they say that a program hangs."""
import os

FACTOR = float(os.environ.get("LACUNA_TEST_PATIENCE", "1"))  # the preset `sanitize` sets it: what is built so takes ten times as long


def seconds(usual):
    return usual * FACTOR
