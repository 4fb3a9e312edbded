#!/usr/bin/env python3
"""CTranslate2's speed at translating a text, from a folder of `lacuna export --to ctranslate2`; prints one JSON line.

    translate_ct2.py --model small.ct2 --spm spm.model --src test2016.de.gz --compute int8 --workers 2 --threads 1 [--one-by-one --limit 60]
"""
import argparse
import json
import statistics
import time

import ctranslate2
import sentencepiece

import corpus


def main():
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--model", required=True)
    flags.add_argument("--spm", required=True)
    flags.add_argument("--src", required=True)
    flags.add_argument("--compute", default="float32", help="float32, int8, ...")
    flags.add_argument("--workers", type=int, default=1)
    flags.add_argument("--threads", type=int, default=2, help="of each worker")
    flags.add_argument("--beam-size", type=int, default=5)
    flags.add_argument("--batch", type=int, default=64, help="sentences")
    flags.add_argument("--one-by-one", action="store_true", help="one sentence at a time, waiting for each")
    flags.add_argument("--length", type=int, default=0, help="steps of each translation, whatever the model would say; 0 = as the model ends it")
    flags.add_argument("--limit", type=int, default=0, help="only the first so many lines; 0 = all")
    flags.add_argument("--rounds", type=int, default=3)
    flags.add_argument("--out", help="file for the translations of the last round")
    flags = flags.parse_args()
    spm = sentencepiece.SentencePieceProcessor(model_file=flags.spm)
    lines = [line for line in corpus.read_lines(flags.src) if line][: flags.limit or None]
    sources = spm.encode(lines, out_type=str)  # the model adds eos
    translator = ctranslate2.Translator(flags.model, device="cpu", compute_type=flags.compute, inter_threads=flags.workers,
                                        intra_threads=flags.threads)
    settings = {"beam_size": flags.beam_size, "length_penalty": 1, "max_decoding_length": flags.length or 256, "min_decoding_length": flags.length or 1}

    def translate():
        if flags.one_by_one:
            return [translator.translate_batch([source], **settings)[0] for source in sources]
        return translator.translate_batch(sources, max_batch_size=flags.batch, **settings)

    translator.translate_batch(sources[:8], **settings)
    seconds = []
    for _ in range(flags.rounds):
        begin = time.perf_counter()
        results = translate()
        seconds.append(time.perf_counter() - begin)
    translations = [result.hypotheses[0] for result in results]
    if flags.out:
        with open(flags.out, "w", encoding="utf-8") as file:
            file.writelines(spm.decode(pieces) + "\n" for pieces in translations)
    tokens, median = sum(len(pieces) + 1 for pieces in translations), statistics.median(seconds)
    print(json.dumps({"output_tokens_per_second": tokens / median, "sentences_per_second": len(lines) / median,
                      "peak_mebibytes": corpus.peak_mebibytes(), "compute": translator.compute_type, "ctranslate2": ctranslate2.__version__}))


if __name__ == "__main__":
    main()
