#!/usr/bin/env python3
"""Training by two ranks on GPUs beside one process that computes the same: gpu.py PROGRAM

Two ranks on one GPU, whose gradients pass through the CPU's memory, and, where there are two GPUs, one rank on each, whose gradients travel
by NCCL. Losses must agree within 1e-4. Prints a line for each; the exit status is 1 if one differs, 77 where there is no GPU.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import ranks  # noqa: E402
import small_run  # noqa: E402

MOST_DIFFERENCE = 1e-4
CONFIGURATION = """run: {run}
device: {device}
data:
  train: [{{src: {text}, tgt: {text}}}]
  vocab_size: 24
model: {{preset: tiny, d_model: 32, d_ff: 64, num_heads: 2, encoder_layers: 1, decoder_layers: 1, dropout: 0}}
train: {{batch_tokens: 96, lr: 0.004, warmup_steps: 10, max_steps: 20, log_every: 1, update_freq: {update_freq}, precision: fp32}}
"""


def losses(program, folder, name, size, device, update_freq):
    """The losses of all updates of a run."""
    run, text = os.path.join(folder, name), os.path.join(folder, "digits.txt")
    file = run + ".yaml"
    with open(file, "w", encoding="utf-8") as config:
        config.write(CONFIGURATION.format(run=run, text=text, device=device, update_freq=update_freq))
    if size == 1:
        with ranks.Ranks(program, ["train", "-c", file], 1, variables={"WORLD_SIZE": 1}) as alone:
            assert alone.wait(300) == [0], alone.texts()
    else:
        with ranks.Ranks(program, ["train", "-c", file], size) as together:
            assert together.wait(300) == [0] * size, together.texts()
            print(next((line for line in together.text(0).splitlines() if "share" in line or "one GPU" in line), f"{name}: each rank has a GPU"))
    return [record["loss"] for record in ranks.records(run) if "loss" in record]


def main():
    program = os.path.abspath(sys.argv[1])
    gpus = [name for name in os.listdir("/dev") if name.startswith("nvidia") and name[6:].isdigit()]
    if not gpus:
        print("there is no GPU here", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        small_run.write_digits(os.path.join(folder, "digits.txt"), 300, 1)
        expected = losses(program, folder, "alone", 1, "cuda:0", 2)
        worst = 0.0
        for name, device in (("on_one", "cuda:0"), *([("on_two", "cuda")] if len(gpus) > 1 else [])):
            found = losses(program, folder, name, 2, device, 1)
            assert len(found) == len(expected), (found, expected)
            difference = max(abs(a - b) for a, b in zip(found, expected))
            print(f"{name}: losses differ by {difference:.1e}")
            worst = max(worst, difference)
    return 0 if worst <= MOST_DIFFERENCE else 1


if __name__ == "__main__":
    sys.exit(main())
