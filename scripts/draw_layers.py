#!/usr/bin/env python3
"""Draws which folder of src/ includes which, from the #include lines, into docs/layers.svg.

    scripts/draw_layers.py           writes the drawing
    scripts/draw_layers.py --check   writes nothing; exit status 1 where the drawing differs

An arrow that follows from others is left out, and so are `base` and `config`, which every folder may include.
"""
import argparse
import pathlib
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRAWING = ROOT / "docs/layers.svg"
WIDTH, BOX, HEIGHT, ROW = 760, 104, 34, 84
STYLE = """<style>
text { font: 14px system-ui, sans-serif; text-anchor: middle; fill: #1a237e; }
rect { fill: #e8eaf6; stroke: #3949ab; }
path { fill: none; stroke: #5c6bc0; stroke-width: 1.3; marker-end: url(#head); }
marker path { fill: #5c6bc0; stroke: none; marker-end: none; }
</style>"""
HEAD = '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'


def includes():
    """Folder -> the folders that its sources include, but for those open to all."""
    found = {}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in check_layers.SOURCES:
            continue
        folder = path.relative_to(ROOT / "src").parts[0]
        others = found.setdefault(folder, set())
        for included in check_layers.INCLUDE.findall(path.read_text(encoding="utf-8")):
            if (ROOT / "src" / included).exists():
                others.add(pathlib.PurePosixPath(included).parts[0])
    shown = [folder for folder in found if folder not in check_layers.OPEN]
    return {folder: {other for other in found[folder] if other in shown and other != folder} for folder in shown}


def reachable(graph, folder):
    found, open_ends = set(), list(graph[folder])
    while open_ends:
        other = open_ends.pop()
        if other not in found:
            found.add(other)
            open_ends += graph[other]
    return found


def reduced(graph):
    """The graph without the arrows that follow from others."""
    return {folder: {other for other in others if not any(other in reachable(graph, third) for third in others - {other})}
            for folder, others in graph.items()}


def rows(graph):
    """The folders by the longest way from the top: row 0 is included by no folder."""
    depth = {}

    def deepen(folder, level):
        if level > len(graph):
            raise SystemExit(f"scripts/draw_layers.py: the folders include each other in a circle, {folder} among them")
        if level > depth.get(folder, -1):
            depth[folder] = level
            for other in graph[folder]:
                deepen(other, level + 1)

    for folder in graph:
        if not any(folder in others for others in graph.values()):
            deepen(folder, 0)
    return [sorted(folder for folder in graph if depth[folder] == level) for level in range(max(depth.values()) + 1)]


def ordered(levels, arrows):
    """Each row in the order of what points at it, so that few arrows cross."""
    place = {}
    for level in levels:
        def middle(folder):
            above = [place[other] for other in arrows if folder in arrows[other] and other in place]
            return (sum(above) / len(above) if above else WIDTH / 2, folder)
        level.sort(key=middle)
        for index, folder in enumerate(level):
            place[folder] = WIDTH * (index + .5) / len(level)
    return place


def way(folder, other, levels, x, y):
    """The arrow's curve: from box to box, past those of the rows between."""
    shift = (x[other] - x[folder]) / WIDTH * BOX / 2
    points = [(x[folder] + shift, y[folder] + HEIGHT)]
    for level in levels:
        top = y[level[0]]
        if y[folder] < top < y[other]:
            edges = [0, *(x[box] for box in level), WIDTH]
            gaps = [(left + right) / 2 for left, right in zip(edges, edges[1:]) if right - left > BOX]
            straight = x[folder] + (x[other] - x[folder]) * (top - y[folder]) / (y[other] - y[folder])
            nearest = min(gaps, key=lambda gap: abs(gap - straight)) + shift
            points += [(nearest, top), (nearest, top + HEIGHT)]
    points.append((x[other] - shift, y[other]))
    curve = f"M{points[0][0]:.0f} {points[0][1]}"
    for (x1, y1), (x2, y2) in zip(points, points[1:]):
        bend = (y1 + y2) / 2
        curve += f"C{x1:.0f} {bend:.0f} {x2:.0f} {bend:.0f} {x2:.0f} {y2}"
    return curve


def drawing():
    graph = includes()
    arrows = reduced(graph)
    levels = rows(graph)
    x = ordered(levels, arrows)
    y = {folder: 20 + ROW * index for index, level in enumerate(levels) for folder in level}
    height = 40 + HEIGHT + ROW * (len(levels) - 1)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">', "<title>Folders of src and what they include</title>",
             STYLE, HEAD]
    for folder, others in sorted(arrows.items()):
        parts += [f'<path d="{way(folder, other, levels, x, y)}"/>' for other in sorted(others)]
    for folder in sorted(graph):
        parts.append(f'<rect x="{x[folder] - BOX / 2:.0f}" y="{y[folder]}" width="{BOX}" height="{HEIGHT}" rx="6"/>')
        parts.append(f'<text x="{x[folder]:.0f}" y="{y[folder] + 22}">{folder}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 where the drawing differs")
    new = drawing()
    if not parser.parse_args().check:
        DRAWING.write_text(new, encoding="utf-8")
    elif not DRAWING.exists() or DRAWING.read_text(encoding="utf-8") != new:
        print("docs/layers.svg differs from what the sources include; run scripts/draw_layers.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
