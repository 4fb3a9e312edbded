#!/usr/bin/env python3
"""The pictures that papers on attention show, from what `lacuna analyze` wrote: SVG files, and a page with their numbers.

    attention_pictures.py --out docs/attention --title "Multi30k De-En" softmax=a/analysis.json rela-g=b/analysis.json

Sparsity, head diversity and alignment error by layer, null rate by layer and head, and null rate on true and on shuffled references. Names stand for
models; a file of several models takes as many, in their order: softmax,rela-g=both/analysis.json. What a file doesn't hold is left out, and said.
"""
import argparse
import collections
import dataclasses
import pathlib
import sys

from pictures import svg_charts
from pictures.analysis_file import SITES, STEPS, Problem, read_models
from pictures.svg_charts import Line, Panel


@dataclasses.dataclass(frozen=True)
class Picture:
    """A chart, how to read it, what can be said of its numbers, and these as rows of a table."""

    file: str
    title: str
    svg: str
    reading: str
    facts: list
    header: list
    rows: list
    notes: list = ()


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def shown(value, decimals=3):
    return "\N{EN DASH}" if value is None else f"{value:.{decimals}f}"


def layer_count(models):
    return max(len(model.places(site)) for model in models for site in SITES)


def layer_header(models, *first):
    """Of rows that end in `layer_cells`."""
    return [*first, *(f"layer {i}" for i in range(layer_count(models))), "mean"]


def layer_cells(models, values):
    """A cell for each layer that the deepest of the models has, and the mean."""
    return [*map(shown, values), *[shown(None)] * (layer_count(models) - len(values)), shown(mean(values))]


def measured_sites(models, measure):
    return [site for site in SITES if any(value is not None for model in models for value in model.values(site, measure))]


def lacks_sparsity(model):
    return None if measured_sites([model], "sparsity") else "sparsity was not measured (lacuna analyze --only left it out)"


def sparsity(models, notes):
    sites = measured_sites(models, "sparsity")
    panels = [Panel(SITES[site], [Line(model.name, model.style, model.values(site, "sparsity")) for model in models]) for site in sites]
    title = "Sparsity by layer"
    return Picture(
        "sparsity.svg", title, svg_charts.line_chart(title, "share of visible weights that are exactly 0", [panels], 170, 0, 1, notes=notes),
        "How to read it: higher is sparser; 0 is a layer without a weight of exactly 0. Layer 0 is the lowest.", [],
        layer_header(models, "site", "model"),
        [[SITES[site], model.name, *layer_cells(models, model.values(site, "sparsity"))] for site in sites for model in models], notes)


def lacks_alignment(model):
    if "alignment" not in model.json:
        return "alignment error was not measured (lacuna analyze --gold FILE does)"
    heads = [head for layer in model.layers() for step in STEPS for head in layer[step]["heads"]]
    return None if any(head["aer"] is not None for head in heads) else "no alignment error is defined: neither gold nor found links"


def systems(model, step, kind):
    """Of each layer, its best head ("AoH") or the average of its heads ("AoL")."""
    ones = [layer[step] for layer in model.layers()]
    return [one["heads"][one["best_head"]] if kind == "AoH" else one["average"] for one in ones]


def percent(value):
    return None if value is None else 100 * value


def error_line(model, step, kind):
    found = systems(model, step, kind)
    intervals = [[percent(end) for end in one["interval"]] if one.get("interval") else None for one in found]
    return Line(f"{model.name} {kind}", model.style, [percent(one["aer"]) for one in found], intervals, is_dashed=kind == "AoL")


def error_cell(line, layer):
    if layer >= len(line.values) or line.values[layer] is None:
        return shown(None)
    ends = line.intervals[layer]
    return shown(line.values[layer], 1) + (f" ({ends[0]:.1f} to {ends[1]:.1f})" if ends else "")


def best_fact(model):
    """The lowest error of any head, for each step."""
    found = []
    for step in STEPS:
        heads = [(head["aer"], layer["layer"], h) for layer in model.layers() for h, head in enumerate(layer[step]["heads"])]
        heads = [head for head in heads if head[0] is not None]
        if heads:
            rate, layer, head = min(heads)
            found.append(f"{step} {percent(rate):.1f} (layer {layer}, head {head})")
    return f"{model.name}: the lowest of any head is {', '.join(found)}."


def alignment_error(models, notes):
    kinds = [("AoH", "AoL")] if len(models) <= 3 else [("AoH",), ("AoL",)]  # more lines than six in a panel hide each other
    rows = [[Panel(step, [error_line(model, step, kind) for model in models for kind in row]) for step in STEPS] for row in kinds]
    lines = [(step, model, kind, error_line(model, step, kind)) for step in STEPS for model in models for kind in ("AoH", "AoL")]
    depth = max(len(model.layers()) for model in models)
    title = "Alignment error by layer"
    subtitle = "AER in percent; AoH (solid): best head, AoL (dashed): average of heads"
    if any(ends for *_, line in lines for ends in line.intervals):
        subtitle += "; bars: bootstrap 95 % intervals"
    sentences = ", ".join(sorted({str(model.json["alignment"]["sentences"]) for model in models}))
    return Picture(
        "alignment_error.svg", title, svg_charts.line_chart(title, subtitle, rows, 300, decimals=1, notes=notes),
        f"How to read it: lower is better. *Normal* reads links off the step that predicts a word, *shifted* off the step that has it as input. "
        f"The best head of a layer is chosen by its error on these same {sentences} sentences.",
        [best_fact(model) for model in models],
        ["weights", "model", "of", *(f"layer {i}" for i in range(depth))],
        [[step, model.name, kind, *(error_cell(line, i) for i in range(depth))] for step, model, kind, line in lines], notes)


def null_rates(model, of=lambda place: place):
    """Of cross attention, by layer: the rates of all heads, and of each."""
    found = [of(place) for place in model.places("cross")]
    return [(rows.get("null_rate"), rows.get("heads", {}).get("null_rate")) for rows in found]


def shuffled_null_rates(model):
    return null_rates(model, lambda place: place.get("shuffled", {}))


def lacks_null_rate(model):
    rates = null_rates(model)
    if not rates or any(pooled is None or not heads for pooled, heads in rates):
        return "null rate was not measured (lacuna analyze --only left it out)"
    return None if any(pooled > 0 for pooled, _ in rates) else "no row of cross attention is null"


def null_rate(models, notes):
    tables = [(model.name, model.style, [heads for _, heads in null_rates(model)]) for model in models]
    title, subtitle = "Null rate by layer and head", "cross attention: share of target positions that attend to nothing; the stronger the colour, the more"
    facts = []
    for name, _, rows in tables:
        rate, layer, head = max((value, layer, head) for layer, heads in enumerate(rows) for head, value in enumerate(heads))
        average = mean([value for heads in rows for value in heads])
        facts.append(f"{name}: {shown(rate)} in layer {layer}, head {head}, is its highest; {shown(average)} is the mean over layers and heads.")
    num_heads = max(len(heads) for _, _, rows in tables for heads in rows)
    rows = [[model.name, str(layer), *([*map(shown, heads)] + [shown(None)] * (num_heads - len(heads))), shown(pooled)]
            for model in models for layer, (pooled, heads) in enumerate(null_rates(model))]
    return Picture(
        "null_rate.svg", title, svg_charts.heat_tables(title, subtitle, tables, "layer", "head", notes),
        "How to read it: 0 is a head that always attends to something, 1 one that never does. Layer 0 is the lowest.", facts,
        ["model", "layer", *(f"head {h}" for h in range(num_heads)), "all heads"], rows, notes)


def lacks_shuffled(model):
    true, shuffled = null_rates(model), shuffled_null_rates(model)
    if not true or any(pooled is None for pooled, _ in shuffled):
        return "null rate on shuffled references was not measured (lacuna analyze --shuffle-references does)"
    if any(pooled is None for pooled, _ in true):
        return "null rate was not measured (lacuna analyze --only left it out)"
    return None if any(pooled > 0 for pooled, _ in true + shuffled) else "no row of cross attention is null"


def shuffled_null_rate(models, notes):
    kinds = {"true": null_rates, "shuffled": shuffled_null_rates}
    rates = {(model.name, kind): [pooled for pooled, _ in of(model)] for model in models for kind, of in kinds.items()}
    means = {key: mean(values) for key, values in rates.items()}
    title = "Null rate on true and on shuffled references"
    pairs = [(model.name, model.style, means[model.name, "true"], means[model.name, "shuffled"]) for model in models]
    return Picture(
        "shuffled_null_rate.svg", title,
        svg_charts.pair_chart(title, "cross attention, mean over layers; full: true references, open: the same, shuffled", pairs, list(kinds), notes),
        "How to read it: a shuffled reference translates another sentence. Where the null rate tells wrong pairs from right ones, the open mark is "
        "to the right of the full one.",
        [f"{name}: null rate {shown(true)} on true references, {shown(shuffled)} on shuffled ones." for name, _, true, shuffled in pairs],
        layer_header(models, "model", "references"),
        [[model.name, kind, *layer_cells(models, rates[model.name, kind])] for model in models for kind in kinds], notes)


AS_IS = "as_is"


def lacks_diversity(model):
    return None if measured_sites([model], "diversity") else "head diversity was not measured (lacuna analyze --only left it out)"


def temperatures(models):
    """Those at which any rectified row was compared, the largest first; [AS_IS] if rows all sum to one."""
    found = {key for model in models for site in SITES for one in model.values(site, "diversity") for key in one or {}} - {AS_IS}
    return sorted(found, key=float, reverse=True) or [AS_IS]


def diversities(model, site, temperature):
    """By layer: at that temperature, or as they are for rows that sum to one."""
    return [(one or {}).get(AS_IS, (one or {}).get(temperature)) for one in model.values(site, "diversity")]


def named_temperature(key):
    return "as is" if key == AS_IS else f"T = {float(key):g}"


def diversity_rows(models, sites):
    """Of a model, a row for each temperature, or one if none of its rows at that site needs any."""
    for site in sites:
        for model in models:
            keys = {key for one in model.values(site, "diversity") for key in one or {}}
            for key in temperatures([model]) if keys != {AS_IS} else [AS_IS]:
                yield [SITES[site], model.name, named_temperature(key), *layer_cells(models, diversities(model, site, key))]


def diversity(models, notes):
    sites, keys = measured_sites(models, "diversity"), temperatures(models)
    rows = [[Panel(SITES[site] if key == AS_IS else f"{SITES[site]}, {named_temperature(key)}",
                   [Line(model.name, model.style, diversities(model, site, key)) for model in models]) for site in sites] for key in keys]
    title = "Head diversity by layer"
    reading = "How to read it: 0 if all heads of a layer attend alike, the logarithm of their number if no two share a key."
    if keys != [AS_IS]:
        reading += " Rectified rows p are compared as softmax(T p), T as in a panel's title, rows that sum to one as they are."
    return Picture(
        "head_diversity.svg", title,
        svg_charts.line_chart(title, "generalised Jensen-Shannon divergence of a layer's heads, in nats", rows, 170, 0, notes=notes),
        reading, [], layer_header(models, "site", "model", "rows"), list(diversity_rows(models, sites)), notes)


PICTURES = (  # the function that draws one, and why a model can't be in it, or None
    ("sparsity.svg", sparsity, lacks_sparsity),
    ("alignment_error.svg", alignment_error, lacks_alignment),
    ("null_rate.svg", null_rate, lacks_null_rate),
    ("shuffled_null_rate.svg", shuffled_null_rate, lacks_shuffled),
    ("head_diversity.svg", diversity, lacks_diversity),
)


def draw_all(models):
    """The pictures that can be drawn; says which can't be, and why."""
    pictures = []
    for file, draw, lacks in PICTURES:
        why = {model.name: lacks(model) for model in models}
        drawn = [model for model in models if not why[model.name]]
        reasons = collections.defaultdict(list)
        for name, reason in why.items():
            if reason:
                reasons[reason].append(name)
        notes = [f"Not shown: {', '.join(names)}: {reason}." for reason, names in reasons.items()]
        for reason, names in reasons.items():
            say(f"{file}: {'left out' if drawn else 'not drawn'}: {', '.join(names)}: {reason}")
        if drawn:
            pictures.append(draw(drawn, notes))
    return pictures


# --- the page ---


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines)


def types(model):
    """What kind of attention each site has."""
    found = {SITES[site]: "/".join(dict.fromkeys(place["type"] for place in model.places(site))) for site in SITES if model.places(site)}
    return found.popitem()[1] if len(set(found.values())) == 1 else ", ".join(f"{site} {kind}" for site, kind in found.items())


def page(title, commands, models, pictures):
    columns = ("num_heads", "pairs", "src_tokens", "tgt_tokens")
    rows = [[model.name, types(model), *(str(model.json[key]) for key in columns), ", ".join(model.files.values())] for model in models]
    parts = [f"# What attention does: {title}",
             "By forced decoding, as `lacuna analyze` measures it; `src/analysis/README.md` defines the measures. "
             "Pictures and tables are by `scripts/attention_pictures.py`."]
    if commands:
        parts.append("```sh\n" + "\n".join(commands) + "\n```")
    parts.append(table(["model", "attention", "heads", "pairs", "source tokens", "target tokens", "files"], rows))
    for picture in pictures:
        parts += [f"## {picture.title}", f"![{picture.title}]({picture.file})", picture.reading]
        if picture.facts or picture.notes:
            parts.append("\n".join(f"- {line}" for line in [*picture.facts, *picture.notes]))
        parts.append(table(picture.header, picture.rows))
    return "\n\n".join(parts) + "\n"


def write(folder, text, pictures):
    """The page and its pictures; one of ours that is no longer drawn goes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            (folder / picture.file).write_text(picture.svg, encoding="utf-8")
        (folder / "README.md").write_text(text, encoding="utf-8")
        for file in {file for file, *_ in PICTURES} - {picture.file for picture in pictures}:
            if (folder / file).exists():
                (folder / file).unlink()
                say(f"{folder / file} was of an earlier run, and is removed")
    except OSError as error:
        raise Problem(f"{error.filename or folder}: {error.strerror}; name a folder that can be written to with --out") from None


def say(text):
    print(f"attention_pictures.py: {text}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME=PATH", help="a name for each model of an analysis.json, and the file")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="folder for the pictures and README.md")
    parser.add_argument("--title", required=True, help="which data and models these are")
    parser.add_argument("--command", action="append", default=[], help="a command to quote in the page, such as that of the analysis; again for more")
    options = parser.parse_args()
    try:
        models = read_models(options.models)
        pictures = draw_all(models)
        if not pictures:
            raise Problem("nothing to draw: " + ", ".join(model.path for model in models) + "; run `lacuna analyze` without --only")
        write(options.out, page(options.title, options.command, models, pictures), pictures)
    except Problem as problem:
        say(f"error: {problem}")
        sys.exit(2)
    print(f"{options.out}: {len(pictures)} pictures and README.md")


if __name__ == "__main__":
    main()
