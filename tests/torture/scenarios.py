"""What is walked: commands on a tiny corpus and a tiny model, each of which takes about a second."""
import dataclasses
import glob
import os
import random
import shutil
import subprocess

CONFIGURATION = """run: run
threads: 1
data: {train: [{src: train.src, tgt: train.tgt}, {src: more.src, tgt: more.tgt, weight: 2}], vocab_size: 40, spm_type: bpe}
model: {d_model: 16, num_heads: 2, d_ff: 16, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}
train: {precision: fp32, batch_tokens: 120, lr: 1e-3, warmup_steps: 2, max_steps: 4, save_every: 2, log_every: 1, keep_last: 1,
        valid_every: 2, valid_translate: false, metric: loss, keep_best: 1}
"""
WORDS = "ada bel cor dim eko fal gun hal ira jot kem lun mor nis opa pel qua rim sol tun".split()
TRAIN = "train -c c.yaml"
CACHED = "--data.spm_model spm.model --data.cache cache"
VALID = "--data.valid '{src: valid.src, tgt: valid.tgt}'"
TEST = "--data.test '{src: test.src, tgt: test.tgt}'"


def write_texts(folder):
    """Texts whose targets are the sources backwards, and the configuration."""
    draw = random.Random(1)
    for name, lines in (("train", 60), ("more", 30), ("valid", 8), ("test", 8), ("old", 6)):
        sentences = [[draw.choice(WORDS) for _ in range(draw.randint(2, 6))] for _ in range(lines)]
        for end, order in (("src", 1), ("tgt", -1)):
            with open(os.path.join(folder, f"{name}.{end}"), "w", encoding="utf-8") as file:
                file.writelines(" ".join(words[::order]) + "\n" for words in sentences)
    with open(os.path.join(folder, "c.yaml"), "w", encoding="utf-8") as file:
        file.write(CONFIGURATION)


# Folders that scenarios begin with, made once: what each begins with itself, and the commands that make the rest.
TEMPLATES = {
    "texts": (None, ()),
    "vocabulary": ("texts", ("vocab -i train.src train.tgt -o spm.model --vocab-size 40 --type bpe",)),
    "cached": ("vocabulary", (f"check -c c.yaml {CACHED}",)),
    "trained": ("cached", (f"{TRAIN} {CACHED} --train.keep_last 3 --train.max_steps 6",)),
}


@dataclasses.dataclass
class Change:
    """What others do to the files of a program that runs. `act` gets the workshop, the folder and the command; a process that it returns
    is waited for."""
    act: object
    names: str = ""  # what an error has to name
    touches: tuple = ()  # files that it changes: they are put back before the command runs again
    may_be_read: bool = False  # what the command makes of the changed files is right too
    may_go: str = ""  # this folder may be gone in the end, but not come again
    may_refuse: bool = False  # once they are put back, the command may also say what to do


@dataclasses.dataclass
class Scenario:
    name: str
    about: str
    template: str
    command: str
    before: str = ""  # a command that comes after the template's
    save_every: int = 0  # updates between checkpoints, where it trains
    output: str = ""  # the file or folder that is the old or the new one at any moment
    may_lack: bool = False  # some of its files may be missing: those that are there have to be of one run
    kinds: tuple = ()  # only these faults, unless empty
    change: Change | None = None  # in place of faults: what is done at each operation while the program is stopped


# A process that dies alone loses no power: an ablation has several.
NO_POWER = ("eio", "enospc", "eintr", "emfile", "einval", "full", "readonly", "kill", "short", "torn")
ABLATE = (f"ablate -c c.yaml {CACHED} {VALID} {TEST} -o ablation --rounds 0 --train.max_steps 2"
          " --columns bleu,difference,chrf,loss,zeros,parameters,seeds")
SCENARIOS = [
    Scenario("save", "training that saves checkpoints", "cached", f"{TRAIN} {CACHED}", save_every=2),
    Scenario("keep", "keep and delete checkpoints, with a moving average", "cached",
             f"{TRAIN} {CACHED} --train.save_every 1 --train.keep_last 2 --train.ema_decay 0.5 --train.max_steps 3", save_every=1),
    Scenario("best", "validation; best and last; the average at the end", "cached", f"{TRAIN} {CACHED} {VALID} --train.average_last 2",
             save_every=2),
    Scenario("metrics", "a run that goes on: metrics.jsonl is cut and continued", "cached", f"{TRAIN} {CACHED} {VALID}",
             before=f"{TRAIN} {CACHED} {VALID} --train.max_steps 3", save_every=2),
    Scenario("first", "training from texts alone: vocabulary, token cache, run", "texts", f"{TRAIN} --train.max_steps 2", save_every=2),
    Scenario("overwrite", "a run that takes another's place", "trained",
             f"{TRAIN} {CACHED} --model.d_ff 24 --train.overwrite true --train.max_steps 2", save_every=2),
    Scenario("bleu", "validation and a test set by sacreBLEU", "cached",
             f"{TRAIN} {CACHED} {VALID} {TEST} --train.valid_translate true --train.metric bleu --train.valid_beam_size 1"
             " --train.max_steps 2", save_every=2),
    Scenario("vocabulary", "training a vocabulary, over an older one", "vocabulary",
             "vocab -i train.src train.tgt -o spm.model --vocab-size 36", output="spm.model"),
    Scenario("cache", "the token cache, made by a dry run", "vocabulary", f"check -c c.yaml {CACHED}"),
    Scenario("average", "averaging checkpoints, over an older average", "trained", "average -o mean run --last 3",
             before="average -o mean run --last 2", output="mean"),
    Scenario("quantize", "rounding a model, over an older one", "trained", "quantize -m run -o small",
             before="quantize -m run -o small --precision bf16", output="small"),
    Scenario("export", "a model for transformers, over an older one", "trained",
             "export -m run --to hf -o out --overwrite --translate.beam_size 2 --license cc0-1.0", before="export -m run --to hf -o out",
             output="out"),
    Scenario("export_package", "a package of Argos Translate, over an older one", "trained",
             "export -m run --to argos -o out.argosmodel --overwrite --src-lang de --tgt-lang en",
             before="export -m run --to argos -o out.argosmodel --src-lang en --tgt-lang de", output="out.argosmodel"),
    Scenario("shortlist", "a shortlist, over an older one", "trained", "shortlist -m run --src train.src --tgt train.tgt -o list",
             before="shortlist -m run --src old.src --tgt old.tgt -o list", output="list"),
    Scenario("translate", "translate -o, over an older file", "trained", "translate -m run -i test.src -o out",
             before="translate -m run -i old.src -o out", output="out"),
    Scenario("translate_packed", "translate -o to a packed file", "trained", "translate -m run -i test.src -o out.zst", output="out.zst"),
    Scenario("filter", "score --filter, over the files of an older one", "trained",
             "score -m run --src train.src --tgt train.tgt --filter kept --keep 0.5",
             before="score -m run --src old.src --tgt old.tgt --filter kept", output="kept", may_lack=True),
    Scenario("analyze", "analyze -o, over an older report", "trained",
             "analyze -m run --src test.src --tgt test.tgt -o report --only sparsity --explore 2",
             before="analyze -m run --src old.src --tgt old.tgt -o report --only entropy --explore 1", output="report", may_lack=True),
    Scenario("ablate", "an ablation that gets a second attention type", "cached", f"{ABLATE} --attention softmax,rela",
             before=f"{ABLATE} --attention softmax", kinds=NO_POWER),
]


def one_of(folder, pattern):
    return min(glob.glob(os.path.join(folder, pattern)))


def cut(path, share):
    """Cuts a file in place; a pattern stands for the first file that it fits."""
    def act(_workshop, folder, _command):
        file = one_of(folder, path)
        os.truncate(file, int(os.path.getsize(file) * share))
    return act


def overwrite(path):
    """Writes other bytes over a file in place."""
    def act(_workshop, folder, _command):
        file = one_of(folder, path)
        with open(file, "r+b") as old:
            old.write(bytes(os.path.getsize(file)))
    return act


def replace(path):
    """Puts another file in the place of one, by its name."""
    def act(_workshop, folder, _command):
        file = one_of(folder, path)
        with open(file + ".new", "wb") as new:
            new.write(bytes(os.path.getsize(file)))
        os.rename(file + ".new", file)
    return act


def delete(_workshop, folder, _command):
    shutil.rmtree(os.path.join(folder, "run"), ignore_errors=True)


def move(_workshop, folder, _command):
    if os.path.exists(os.path.join(folder, "run")):
        os.rename(os.path.join(folder, "run"), os.path.join(folder, "moved"))


def start_again(workshop, folder, command):
    """The same command a second time. It is waited for a while: it may wait for a lock of the one that is stopped."""
    second = workshop.start(command, folder, counts=False)
    try:
        second.wait(timeout=1)
    except subprocess.TimeoutExpired:
        pass
    return second


MODEL, IDS, OFFSETS, TEXT = "run/last/model.safetensors", "cache/*/src.ids", "cache/*/src.offsets", "train.src"
FROM_TEXTS = f"{TRAIN} --data.spm_model spm.model --train.max_steps 2"


def changed(name, about, template, command, **change):
    return Scenario(name, about, template, command, kinds=("pause",), change=Change(**change))


def of_cache(name, about, act, path):
    return changed(name, f"training while its token cache is {about}", "cached", f"{TRAIN} {CACHED}", act=act, names="cache",
                   touches=(path,), may_be_read=True)


def of_corpus(name, about, act):
    return changed(name, f"training while a text is {about}", "vocabulary", FROM_TEXTS, act=act, names=TEXT, touches=(TEXT,),
                   may_be_read=True, may_refuse=True)


def of_model(name, about, act):
    return changed(name, f"translate while its model is {about}", "trained", "translate -m run -i test.src -o out", act=act,
                   names="model.safetensors", touches=(MODEL,))


SCENARIOS += [
    changed("run_deleted", "training while its run folder is removed", "cached", f"{TRAIN} {CACHED}", act=delete, names="run",
            may_go="run"),
    changed("run_deleted_early", "the same, from texts alone", "texts", f"{TRAIN} --train.max_steps 2", act=delete, names="run",
            may_go="run"),
    changed("run_moved", "training while its run folder is renamed", "cached", f"{TRAIN} {CACHED}", act=move, names="run",
            may_go="run"),
    changed("run_shared", "a second process with the same run folder", "vocabulary", FROM_TEXTS, act=start_again),
    of_corpus("corpus_cut", "cut", cut(TEXT, 0.5)),
    of_corpus("corpus_replaced", "replaced", replace(TEXT)),
    of_cache("cache_emptied", "cut to nothing", cut(IDS, 0), IDS),
    of_cache("cache_cut", "cut", cut(OFFSETS, 0.5), OFFSETS),
    of_cache("cache_replaced", "replaced", replace(IDS), IDS),
    of_model("model_cut", "cut", cut(MODEL, 0.5)),
    of_model("model_overwritten", "overwritten", overwrite(MODEL)),
    of_model("model_replaced", "replaced", replace(MODEL)),
]
