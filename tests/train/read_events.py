"""Prints the scalars of a folder of event files as TensorBoard's own reader sees them: {"tag": [[step, value], ...]}."""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[point.step, point.value] for point in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
