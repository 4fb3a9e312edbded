"""Checkpoints whose files are changed and whose manifest fits all the same: what a stranger could make."""
import ctypes
import json
import os


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_XXHASH = ctypes.CDLL("libxxhash.so.0")
_XXHASH.XXH3_128bits.restype = _Hash
_XXHASH.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3(data):
    """The XXH3-128 of bytes: 32 hexadecimal digits."""
    value = _XXHASH.XXH3_128bits(data, len(data))
    return f"{value.high:016x}{value.low:016x}"


def sign(folder):
    """Writes the manifest anew, of the regular files that it lists and that are there."""
    path = os.path.join(folder, "manifest.json")
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    manifest.pop("xxh3_128", None)
    for name, entry in manifest["files"].items():
        listed = os.path.join(folder, name)
        if os.path.isfile(listed) and not os.path.islink(listed):
            with open(listed, "rb") as file:
                data = file.read()
            entry["bytes"], entry["xxh3_128"] = len(data), xxh3(data)
    compact = json.dumps(manifest, separators=(",", ":"), ensure_ascii=False)
    manifest["xxh3_128"] = xxh3(compact.encode())
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
