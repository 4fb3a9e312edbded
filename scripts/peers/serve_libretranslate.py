#!/usr/bin/env python3
"""LibreTranslate with one package of `lacuna export --to argos`, without the network; serves until it is stopped.

    serve_libretranslate.py --package model.argosmodel --folder FOLDER --port 5123 [--compute int8]

FOLDER takes what it installs. Needs the package libretranslate. A line is a sentence: its splitter's model would be fetched.
"""
import argparse
import os
import sys


def main():
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--package", required=True)
    flags.add_argument("--folder", required=True)
    flags.add_argument("--port", required=True)
    flags.add_argument("--compute", default="int8", help="float32, int8, ...")
    flags = flags.parse_args()
    for name, part in (("ARGOS_PACKAGES_DIR", "packages"), ("XDG_DATA_HOME", "data"), ("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config")):
        os.environ[name] = os.path.join(flags.folder, part)
    os.environ["ARGOS_COMPUTE_TYPE"] = flags.compute
    os.makedirs(os.environ["ARGOS_PACKAGES_DIR"], exist_ok=True)
    import argostranslate.package
    from argostranslate import sbd

    sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
    argostranslate.package.install_from_path(flags.package)
    sys.argv = ["libretranslate", "--host", "127.0.0.1", "--port", flags.port, "--disable-files-translation"]
    import libretranslate.init

    libretranslate.init.boot = lambda *_: None  # it would look for packages on the network
    libretranslate.main()


if __name__ == "__main__":
    main()
