"""A small model that copies digits, for tests of the verbs that need one."""
import os
import random
import subprocess

from patience import seconds


def write_digits(path, lines, seed):
    """`lines` lines of 2 to 7 digits, as words; the same text on both sides is the corpus."""
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(lines):
            file.write(" ".join(str(draw.randrange(10)) for _ in range(draw.randint(2, 7))) + "\n")


def configuration(folder, run="run"):
    """Writes corpus and configuration of a model that is trained in a few seconds; the name of the configuration."""
    write_digits(os.path.join(folder, "train.txt"), 1500, 1)
    path = os.path.join(folder, f"{run}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""run: {folder}/{run}
data: {{train: [{{src: {folder}/train.txt, tgt: {folder}/train.txt}}], vocab_size: 24, spm_type: bpe}}
model: {{preset: tiny, d_model: 64, encoder_layers: 1, decoder_layers: 2, dropout: 0, attention_dropout: 0}}
train: {{batch_tokens: 1024, lr: 0.005, warmup_steps: 60, schedule: inverse_sqrt, max_steps: 240, save_every: 80, average_last: 2}}
""")
    return path


def run(program, *words):
    """The program with these words, which must end well: what it said is shown where it does not."""
    ended = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds(300), check=False)
    if ended.returncode != 0:
        raise AssertionError(f"lacuna {' '.join(words)}: exit code {ended.returncode}\n{ended.stderr}")


def train(program, folder, *overrides):
    """The run folder of a trained model."""
    run(program, "train", "-c", configuration(folder), *overrides)
    return os.path.join(folder, "run")
