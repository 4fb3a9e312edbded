"""The German-English grammar behind the bundled corpus: a meaning is drawn once and said twice."""
