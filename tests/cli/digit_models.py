"""Two models that copy digits, and what tests of the verbs that look at attention take beside them."""
import small_run
from program import FOLDER, PROGRAM, path, read, write


def train_briefly(name, *flags, configuration=None):
    """The run folder of a model that has learned nothing yet."""
    small_run.run(PROGRAM, "train", "-c", configuration or small_run.configuration(FOLDER, name), "--train.max_steps", "2", *flags)
    return path(name)


def train():
    """Run folders of a model with softmax and of one with ReLA, a text, and gold links: every word's is with the word at its own place."""
    softmax = small_run.train(PROGRAM, FOLDER)
    small_run.run(PROGRAM, "train", "-c", small_run.configuration(FOLDER, "rela"), "--model.attention", "rela")
    text = path("text")
    small_run.write_digits(text, 30, 5)
    lengths = [len(line.split()) for line in read("text").splitlines()]
    gold = write("gold", "".join(" ".join(f"{i}-{i}" for i in range(length)) + "\n" for length in lengths))
    return softmax, path("rela"), text, gold
