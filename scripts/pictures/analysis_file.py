"""What `lacuna analyze` wrote: models by name, from one or several analysis.json files, checked before anything is drawn."""
import collections
import dataclasses
import json
import pathlib

SITES = {"encoder_self": "encoder self", "decoder_self": "decoder self", "cross": "cross"}
STEPS = ("normal", "shifted")

NUMBER, MAYBE = (int, float), (int, float, type(None))
ROWS = {"?sparsity": NUMBER, "?null_rate": NUMBER, "?heads": {"?null_rate": [NUMBER]}}
PLACE = {"site": str, "layer": int, "type": str, "?diversity": {"*": MAYBE}, "?shuffled": ROWS, **ROWS}
SYSTEM = {"aer": MAYBE, "?interval": [NUMBER]}
STEP = {"heads": [SYSTEM], "best_head": int, "average": SYSTEM}
ALIGNMENT = {"sentences": int, "layers": [{"layer": int, "normal": STEP, "shifted": STEP}]}
MODEL = {"name": str, "num_heads": int, "pairs": int, "src_tokens": int, "tgt_tokens": int, "places": [PLACE], "?alignment": ALIGNMENT}
LARGEST = 2 ** 53  # up to here every whole number is one in JSON
ANALYSIS = {"format": int, "src": str, "tgt": str, "?gold": str, "models": [MODEL]}


class Problem(Exception):
    """Something a user can mend: what is wrong, where, and what to do."""


def check(value, shape, where):
    """Throws Problem unless the value has that shape: a type, a list of one shape, or keys with theirs ("?" may be absent, "*" is any)."""
    kind = type(shape) if isinstance(shape, (list, dict)) else shape
    is_odd = not isinstance(value, kind) or isinstance(value, bool)
    if is_odd or (isinstance(value, (int, float)) and not abs(value) <= LARGEST):  # NaN is not, either
        raise Problem(f"{where} is {json.dumps(value)[:40]}, which `lacuna analyze` does not write; run it again")
    if isinstance(shape, list):
        for i, one in enumerate(value):
            check(one, shape[0], f"{where}[{i}]")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            for name in value if key == "*" else [key.lstrip("?")]:
                if name in value:
                    check(value[name], inner, f"{where}.{name}")
                elif not key.startswith("?"):
                    raise Problem(f"{where} has no \"{name}\"; is it an analysis.json? `lacuna analyze` writes one")


@dataclasses.dataclass(frozen=True)
class Model:
    """A model of an analysis.json, under the name it has in the pictures; `style` is its colour and marker."""

    name: str
    style: int
    path: str
    files: dict
    json: dict

    def places(self, site):
        """The layers of a site, the lowest first."""
        return sorted((place for place in self.json["places"] if place["site"] == site), key=lambda place: place["layer"])

    def values(self, site, measure):
        return [place.get(measure) for place in self.places(site)]

    def layers(self):
        """Of alignment, the lowest first."""
        return sorted(self.json["alignment"]["layers"], key=lambda layer: layer["layer"])


def read_analysis(path):
    try:
        analysis = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        check(analysis, ANALYSIS, path)
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}; name the analysis.json that `lacuna analyze` wrote") from None
    except ValueError as error:
        raise Problem(f"{path} is not JSON ({error}); name the analysis.json that `lacuna analyze` wrote") from None
    except RecursionError:
        raise Problem(f"{path} is nested too deeply; name the analysis.json that `lacuna analyze` wrote") from None
    if analysis["format"] != 1:
        raise Problem(f"{path}: format is {analysis['format']}, and this reads 1; run `lacuna analyze` again")
    for m, model in enumerate(analysis["models"]):
        check_heads(model, f"{path}.models[{m}]")
    return analysis


def check_heads(model, where):
    """Throws Problem unless there are as many heads everywhere, the best of them is one, and intervals have two ends."""
    count = model["num_heads"]
    for i, place in enumerate(model["places"]):
        for rows, at in ((place, ""), (place.get("shuffled", {}), ".shuffled")):
            if "null_rate" in rows.get("heads", {}):
                check_length(rows["heads"]["null_rate"], count, f"{where}.places[{i}]{at}.heads.null_rate")
    for i, layer in enumerate(model.get("alignment", {"layers": []})["layers"]):
        for step in STEPS:
            at, best = f"{where}.alignment.layers[{i}].{step}", layer[step]["best_head"]
            check_length(layer[step]["heads"], count, f"{at}.heads")
            if not 0 <= best < count:
                raise Problem(f"{at}.best_head is {best}, and heads are 0 to {count - 1}; run `lacuna analyze` again")
            for name, system in [("average", layer[step]["average"]), *((f"heads[{h}]", head) for h, head in enumerate(layer[step]["heads"]))]:
                check_length(system.get("interval", (0, 0)), 2, f"{at}.{name}.interval")


def check_length(values, count, where):
    if len(values) != count:
        raise Problem(f"{where} has {len(values)} values; expected {count}: run `lacuna analyze` again")


def read_models(arguments):
    """A list of Model from name=path and name,name=path."""
    models = []
    for argument in arguments:
        names, equals, path = argument.partition("=")
        names = names.split(",")
        if not equals or not path or not all(name.strip() and name.isprintable() for name in names):
            raise Problem(f"\"{argument}\" is not NAME=PATH, such as softmax=analysis/analysis.json")
        analysis = read_analysis(path)
        found = [model["name"] for model in analysis["models"]]
        if len(found) != len(names):
            raise Problem(f"{path} holds {len(found)} models ({', '.join(found)}), and \"{argument}\" names {len(names)}; "
                          f"name each, as in a,b={path}")
        files = {key: pathlib.PurePath(analysis[key]).name for key in ("src", "tgt", "gold") if key in analysis}
        models += [Model(name.strip(), len(models) + i, path, files, one) for i, (name, one) in enumerate(zip(names, analysis["models"]))]
    refuse_twins(models)
    return models


def refuse_twins(models):
    """Names that stand for two models, and models that saw different texts."""
    for name, count in collections.Counter(model.name for model in models).items():
        if count > 1:
            paths = " and ".join(model.path for model in models if model.name == name)
            raise Problem(f"\"{name}\" is the name of {count} models ({paths}); give each its own")
    first = models[0]
    for model in models:
        if model.json["pairs"] != first.json["pairs"]:
            raise Problem(f"{model.path}: {model.name} saw {model.json['pairs']} pairs, and {first.name} {first.json['pairs']} ({first.path}); "
                          "analyse the same text with each")
