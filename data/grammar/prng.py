"""Random numbers of our own, so that every Python version draws the same corpus."""

from hashlib import blake2b

_MASK = (1 << 64) - 1


def mix(value):
    """The finaliser of splitmix64: a 64-bit number whose every bit depends on every bit of `value`."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def hash_text(text):
    """64 bits of BLAKE2b. (Python's own hash() differs from run to run.)"""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


class Random:
    """A 64-bit linear congruential generator read from its high half, started anywhere by `key`."""

    __slots__ = ("state",)

    def __init__(self, *key):
        state = 0
        for part in key:
            state = mix(state ^ part)
        self.state = state

    def below(self, bound):
        """A whole number in [0, bound)."""
        state = self.state = (self.state * 6364136223846793005 + 1442695040888963407) & _MASK
        return ((state >> 32) * bound) >> 32

    def chance(self, percent):
        """True in `percent` of 100 cases."""
        state = self.state = (self.state * 6364136223846793005 + 1442695040888963407) & _MASK
        return (state >> 32) * 100 < percent << 32

    def pick(self, items):
        """One of `items`, all alike likely."""
        state = self.state = (self.state * 6364136223846793005 + 1442695040888963407) & _MASK
        return items[((state >> 32) * len(items)) >> 32]

    def shuffle(self, items):
        """Fisher-Yates, in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
