"""A trained model, for tests of the verbs that use one. The program is the first argument of the test that imports this."""
import small_run
from program import FOLDER, PROGRAM, Program, path

RUN = path("run")
AVERAGED = path("run", "averaged")
LINES = ["1 2 3", "", "4 5", "7 7 1 0 3 2", "9 8"]


def setUpModule():
    small_run.train(PROGRAM, FOLDER)


class Verbs(Program):
    def translates(self, *flags, lines=LINES):
        out = self.prints("translate", "-m", AVERAGED, *flags, text="".join(line + "\n" for line in lines))
        self.assertTrue(out.endswith("\n"))
        return out[:-1].split("\n")
