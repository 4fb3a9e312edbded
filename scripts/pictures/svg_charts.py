"""Small charts as SVG files that need nothing else: light and dark, and told apart by shape and dash as well as by colour.

Lines by layer in panels that share an axis, tables of shaded cells, pairs of points in rows: each function gives a whole document as text. A series
has a `style`, a whole number: its colour and its marker, the same in every chart.
"""
import dataclasses
import math
import textwrap
import xml.etree.ElementTree as ElementTree

LIGHT = {"page": "#fcfcfb", "text": "#1c1c1a", "soft": "#5b5b56", "grid": "#d4d4ce", "ink": "#14467c",
         "series": ("#0b5cad", "#b34700", "#00704f", "#8a2a76", "#5f5600")}
DARK = {"page": "#171816", "text": "#ecece6", "soft": "#aaaaa2", "grid": "#44453f", "ink": "#8ec2ff",
        "series": ("#74b4ff", "#ffab6b", "#5fd3aa", "#e59ad3", "#d8cd66")}
MARKERS = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",  # circle
    "M-4 -4H4V4H-4Z",  # square
    "M0 -5L5 4H-5Z",  # triangle
    "M0 -5L5 0L0 5L-5 0Z",  # diamond
    "M-5 -1H-1V-5H1V-1H5V1H1V5H-1V1H-5Z",  # plus
)
LETTER, LINE = 7, 15  # of 12 px letters: the width of one, generously, and the height of a line
MARGIN, GAP = 16, 18


@dataclasses.dataclass(frozen=True)
class Line:
    """One value for each layer, None where there is none; an interval is (low, high). A dashed line has open markers."""

    name: str
    style: int
    values: list
    intervals: list = None
    is_dashed: bool = False


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    lines: list


@dataclasses.dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on pixels from `begin` to `end`, marked at each `step`."""

    low: float
    high: float
    step: float
    begin: float = 0
    end: float = 1

    def at(self, value):
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        return [count * self.step for count in range(round(self.low / self.step), round(self.high / self.step) + 1)]

    def on(self, begin, end):
        return dataclasses.replace(self, begin=begin, end=end)


def round_axis(values, floor=None, ceiling=None):
    """An axis with round ends and steps that holds the values, and floor and ceiling where given."""
    held = list(values) + [end for end in (floor, ceiling) if end is not None]
    low, high = min(held), max(held)
    if high <= low:
        low, high = (low, low + 1) if floor is not None else (low - 0.5, high + 0.5)
    power = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if (high - low) / (factor * power) <= 5)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step)


def pushed(sorted_places, gap, low, high):
    """The places, moved up where one is nearer than `gap` to the one before; together they fit from low to high if there is room."""
    places, least = [], low
    for place in sorted_places:
        places.append(max(place, least))
        least = places[-1] + gap
    most = max(high, low + gap * (len(places) - 1))
    for i in reversed(range(len(places))):
        places[i] = min(places[i], most)
        most = places[i] - gap
    return places


def spread(wanted, gap, low, high):
    """Places near the wanted ones, in the same order, at least `gap` apart and, if there is room, from low to high."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    ascending = [wanted[i] for i in order]
    up = pushed(ascending, gap, low, high)
    down = [-place for place in reversed(pushed([-place for place in reversed(ascending)], gap, -high, -low))]
    places = [0.0] * len(wanted)
    for i, *both in zip(order, up, down):
        places[i] = sum(both) / 2
    return places


def make(tag, *children, **attributes):
    """An element; a string child is its text. `class_` is class, `text_anchor` is text-anchor; numbers are rounded."""
    element = ElementTree.Element(tag)
    for key, value in attributes.items():
        element.set(key.rstrip("_").replace("_", "-"), f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value))
    for child in children:
        if isinstance(child, str):
            element.text = child
        else:
            element.append(child)
    return element


def words(x, y, text, kind="label", anchor="start"):
    return make("text", text, class_=kind, x=float(x), y=float(y), text_anchor=anchor)


def rule(kind, x1, y1, x2, y2):
    return make("line", class_=kind, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2))


def colour(style):
    """The class of a series."""
    return f"series-{style % len(LIGHT['series'])}"


def marker(style, x, y, is_open=False, says=None):
    shape = MARKERS[(style + style // len(LIGHT["series"])) % len(MARKERS)]  # the sixth has the first one's colour, and another marker
    tip = [make("title", says)] if says else []
    return make("path", *tip, class_=colour(style) + (" open" if is_open else ""), d=shape, transform=f"translate({x:.1f} {y:.1f})")


def rules_of(theme):
    """The style sheet of one theme."""
    lines = [f"text {{ font: 12px system-ui, sans-serif; fill: {theme['text']}; stroke: none; }}", f".page {{ fill: {theme['page']}; }}",
             f".soft {{ fill: {theme['soft']}; }}", f".axis {{ stroke: {theme['soft']}; }}", f".grid {{ stroke: {theme['grid']}; }}",
             f".heat {{ fill: {theme['ink']}; }}", f".cell {{ fill: none; stroke: {theme['grid']}; }}"]
    lines += [f".series-{i} {{ stroke: {shade}; fill: {shade}; }}" for i, shade in enumerate(theme["series"])]
    return lines + [f".open {{ fill: {theme['page']}; }}"]


def style_sheet():
    common = [".title { font-weight: 600; font-size: 15px; }", ".panel { font-weight: 600; }", ".curve { fill: none; stroke-width: 2; }",
              ".leader { fill: none; opacity: .5; }", ".dashed { stroke-dasharray: 6 4; }"]
    dark = [f"  {line}" for line in rules_of(DARK)]
    return "\n" + "\n".join([*rules_of(LIGHT), "@media (prefers-color-scheme: dark) {", *dark, "}", *common]) + "\n"


def document(title, subtitle, notes, width, height, parts):
    """A whole file: a heading, parts drawn under it on width x height, and notes at the foot, wrapped."""
    width = max(width, LETTER * len(subtitle), 1.3 * LETTER * len(title)) + 2 * MARGIN
    foot = [line for note in notes for line in textwrap.wrap(note, int((width - 2 * MARGIN) / LETTER))]
    top, total = 58, 58 + height + LINE * len(foot) + (MARGIN if foot else 4)
    svg = make("svg", make("title", title), make("style", style_sheet()), xmlns="http://www.w3.org/2000/svg", role="img",
               viewBox=f"0 0 {width:.0f} {total:.0f}", width=round(width), height=round(total))
    svg.append(make("rect", class_="page", width=round(width), height=round(total)))
    svg.append(words(MARGIN, 24, title, "title"))
    svg.append(words(MARGIN, 42, subtitle, "soft"))
    svg.append(make("g", *parts, transform=f"translate({MARGIN} {top})"))
    for i, line in enumerate(foot):
        svg.append(words(MARGIN, top + height + LINE * (i + 1), line, "soft"))
    ElementTree.indent(svg)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def tick(value):
    return f"{value:.6g}".replace("-", "\N{MINUS SIGN}")


# --- lines by layer ---


def line_chart(title, subtitle, rows, plot_width, floor=None, ceiling=None, decimals=3, notes=()):
    """Rows of panels that share their vertical axis. Lines are named where they end."""
    panels = [panel for row in rows for panel in row]
    lines = [line for panel in panels for line in panel.lines]
    values = [value for line in lines for value in line.values if value is not None]
    ends = [end for line in lines for interval in line.intervals or [] if interval for end in interval]
    axis = round_axis(values + ends, floor, ceiling)
    room = LETTER * max(len(line.name) for line in lines) + 34
    plot_height = max(160, LINE * max(len(panel.lines) for panel in panels))
    size = (40 + plot_width + room, 20 + plot_height + 44)
    parts = []
    for r, row in enumerate(rows):
        for p, panel in enumerate(row):
            box = axis.on(20 + plot_height, 20)  # upwards
            parts.append(make("g", *panel_parts(panel, box, 40, plot_width, decimals), transform=f"translate({p * size[0]} {r * size[1]})"))
    return document(title, subtitle, notes, size[0] * max(len(row) for row in rows), size[1] * len(rows), parts)


def panel_parts(panel, axis, left, width, decimals):
    layers = max(len(line.values) for line in panel.lines)
    step = width / layers
    parts = [words(left, 8, panel.title, "panel")]
    for value in axis.ticks():
        parts.append(rule("grid", left, axis.at(value), left + width, axis.at(value)))
        parts.append(words(left - 6, axis.at(value) + 4, tick(value), "soft", "end"))
    parts.append(rule("axis", left, axis.begin, left + width, axis.begin))
    parts += [words(left + step * (i + 0.5), axis.begin + 16, str(i), "soft", "middle") for i in range(layers)]
    parts.append(words(left + width / 2, axis.begin + 31, "layer", "soft", "middle"))
    drawn = [line for line in panel.lines if any(value is not None for value in line.values)]
    aside = min(9, step / (2 * len(drawn) + 1))  # of one line from the next, so that neither hides the other
    xs = [[left + step * (i + 0.5) + aside * (s - (len(drawn) - 1) / 2) for i in range(layers)] for s in range(len(drawn))]
    for line, line_xs in zip(drawn, xs):
        parts += curve_parts(line, line_xs, axis, decimals)
    return parts + label_parts(drawn, xs, axis, left + width)


def curve_parts(line, xs, axis, decimals):
    known = [(x, axis.at(value), i) for i, (x, value) in enumerate(zip(xs, line.values)) if value is not None]
    style = colour(line.style) + " curve"
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in known)
    parts = [make("path", class_=style + (" dashed" if line.is_dashed else ""), d=path)] if len(known) > 1 else []
    for x, y, i in known:
        ends = line.intervals[i] if line.intervals else None
        says = f"{line.name}, layer {i}: {line.values[i]:.{decimals}f}"
        if ends:
            says += f" ({ends[0]:.{decimals}f} to {ends[1]:.{decimals}f})"
            low, high = axis.at(ends[0]), axis.at(ends[1])
            parts.append(make("path", class_=style, stroke_opacity=".6", d=f"M{x - 3:.1f} {low:.1f}h6m-3 0V{high:.1f}m-3 0h6"))
        parts.append(marker(line.style, x, y, line.is_dashed, says))
    return parts


def label_parts(lines, xs, axis, right):
    """Each line's marker and name beside its end, with a thin line to it."""
    ends = [max(i for i, value in enumerate(line.values) if value is not None) for line in lines]
    points = [(line_xs[end], axis.at(line.values[end])) for line, line_xs, end in zip(lines, xs, ends)]
    parts = []
    for line, (x, y), place in zip(lines, points, spread([y for _, y in points], LINE, axis.end + 4, axis.begin - 4)):
        kind = colour(line.style) + " leader"
        parts.append(make("path", class_=kind, d=f"M{x + 6:.1f} {y:.1f}L{right + 8:.1f} {place:.1f}"))
        parts.append(marker(line.style, right + 13, place, line.is_dashed))
        parts.append(words(right + 22, place + 4, line.name))
    return parts


# --- shaded tables ---


def heat_tables(title, subtitle, tables, row_name, column_name, notes=(), widest=880):
    """Tables (name, style, rows of values from 0 on), as many beside each other as fit; the largest value of all is the darkest cell."""
    top = max((value for _, _, rows in tables for row in rows for value in row if value is not None), default=0) or 1
    cell, head, parts, x, y, right, below = (48, 24), 58, [], 0, 0, 0, 0
    for name, style, rows in tables:
        width = max(head + cell[0] * max(map(len, rows)), LETTER * len(name) + 20)
        height = 44 + cell[1] * len(rows) + GAP
        if x and x + width > widest:
            x, y = 0, below
        group = [marker(style, 5, 4), words(16, 8, name, "panel"), *cells(rows, top, cell, head, row_name, column_name)]
        parts.append(make("g", *group, transform=f"translate({x} {y})"))
        x, right, below = x + width + GAP, max(right, x + width), max(below, y + height)
    return document(title, subtitle, notes, right, below, parts)


def cells(rows, top, cell, head, row_name, column_name):
    parts = [words(head + cell[0] * (c + 0.5), 32, f"{column_name} {c}", "soft", "middle") for c in range(max(map(len, rows)))]
    for r, row in enumerate(rows):
        y = 40 + cell[1] * r
        parts.append(words(head - 8, y + 16, f"{row_name} {r}", "soft", "end"))
        for c, value in enumerate(row):
            place = {"x": head + cell[0] * c, "y": y, "width": cell[0], "height": cell[1]}
            if value is not None:
                parts.append(make("rect", class_="heat", fill_opacity=f"{0.5 * value / top:.3f}", **place))
                parts.append(words(place["x"] + cell[0] / 2, y + 16, f"{value:.2f}", anchor="middle"))
            parts.append(make("rect", class_="cell", **place))
    return parts


# --- pairs of points ---


def pair_chart(title, subtitle, pairs, names, notes=(), width=520):
    """A row for each (name, style, first, second): a full marker and an open one, joined; `names` says what they are."""
    left, height = LETTER * max(len(name) for name, *_ in pairs) + 12, 50
    axis = round_axis([value for *_, first, second in pairs for value in (first, second)], 0).on(left, left + width)
    bottom, parts = height * len(pairs), []
    for value in axis.ticks():
        parts += [rule("grid", axis.at(value), 0, axis.at(value), bottom), words(axis.at(value), bottom + 16, tick(value), "soft", "middle")]
    parts.append(rule("axis", left, bottom, left + width, bottom))
    for i, (name, style, *values) in enumerate(pairs):
        y = height * (i + 0.5)
        parts.append(words(left - 12, y + 4, name, anchor="end"))
        parts.append(make("path", class_=colour(style) + " curve", d=f"M{axis.at(values[0]):.1f} {y}H{axis.at(values[1]):.1f}"))
        for value, label, is_open in zip(values, names, (False, True)):
            text = f"{label} {value:.3f}"
            half = LETTER * len(text) / 2
            parts.append(marker(style, axis.at(value), y, is_open))
            parts.append(words(min(max(axis.at(value), left + half), left + width - half), y + (19 if is_open else -10), text, anchor="middle"))
    return document(title, subtitle, notes, left + width + GAP, bottom + 26, parts)
