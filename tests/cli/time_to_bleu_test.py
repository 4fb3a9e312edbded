"""scripts/time_to_bleu.py on logs written by hand: time_to_bleu_test.py SOURCE_FOLDER"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(sys.argv.pop(1), "scripts/time_to_bleu.py")


def train(step, epoch, speed):
    return {"kind": "train", "step": step, "epoch": epoch, "tokens_per_update": 1000, "tokens_per_second": speed}


def valid(step, bleu):
    return {"kind": "valid", "step": step, "bleu": bleu}


class TimeToBleu(unittest.TestCase):
    def run_on(self, records):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "metrics.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
            return subprocess.run([sys.executable, SCRIPT, "--bleu", "34", folder], capture_output=True, text=True, check=False)

    def test_counts_training_until_the_first_validation_that_reaches_it(self):
        records = [train(100, 1, 5000), train(200, 2, 4000), valid(250, 33.9), train(300, 3, 5000), valid(350, 34.2), train(400, 4, 1), valid(500, 36)]
        row = self.run_on(records).stdout.splitlines()[-1]
        self.assertEqual([cell.strip() for cell in row.split("|")[2:-1]], ["350", "3", "34.20", "75"])  # 20 + 25 + 20 seconds, and 10 for what came after

    def test_says_how_far_a_run_came(self):
        self.assertIn("33.90 at most | not reached", self.run_on([train(100, 1, 5000), valid(250, 33.9)]).stdout)

    def test_a_folder_without_a_log_is_an_error(self):
        ended = subprocess.run([sys.executable, SCRIPT, "--bleu", "34", "/nowhere"], capture_output=True, text=True, check=False)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("expected the folder of a run that has begun", ended.stderr)


if __name__ == "__main__":
    unittest.main()
