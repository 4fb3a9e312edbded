"use strict";
// Charts as inline SVG. Series differ in marker and dash as well as in colour; every chart has its numbers in a table under it.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a string child is text. */
function make(name, attributes = {}, ...children) {
  const isSvg = ["svg", "line", "path", "rect", "text", "title", "defs", "pattern"].includes(name);
  const element = isSvg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const isNumber = (value) => typeof value === "number" && isFinite(value);
const shown = (value) => (isNumber(value) ? String(Number(value.toPrecision(4))) : "–");
const mean = (values) => {
  const known = values.filter(isNumber);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
};

const MARKERS = [
  "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z", // circle
  "M-4 -4H4V4H-4Z", // square
  "M0 -5L5 4H-5Z", // triangle
  "M0 -5L5 0L0 5L-5 0Z", // diamond
  "M-5 -1H-1V-5H1V-1H5V1H1V5H-1V1H-5Z", // plus
];
const colour = (series) => `var(--series-${series % 5})`;
const shape = (series) => MARKERS[(series + Math.floor(series / 5)) % 5]; // the sixth has the first one's colour, and another marker

function marker(series, x, y, isHollow, label) {
  const path = make("path", {
    d: shape(series),
    transform: `translate(${x} ${y})`,
    fill: isHollow ? "var(--page)" : colour(series),
    stroke: colour(series),
  });
  if (label) path.append(make("title", {}, label));
  return path;
}

function niceStep(span) {
  const power = 10 ** Math.floor(Math.log10(span / 4));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => span / step <= 5);
}

/** Range of the values, opened to round numbers; `floor` and `ceiling` are in it where given. */
function niceRange(values, floor, ceiling) {
  const known = values.filter(isNumber);
  if (isNumber(floor)) known.push(floor);
  if (isNumber(ceiling)) known.push(ceiling);
  let low = Math.min(...known), high = Math.max(...known);
  if (!(high > low)) [low, high] = isNumber(floor) ? [low, low + 1] : [low - .5, high + .5];
  const step = niceStep(high - low);
  return { low: Math.floor(low / step + 1e-9) * step, high: Math.ceil(high / step - 1e-9) * step, step };
}

const BOX = { width: 360, height: 234, left: 48, right: 350, top: 10, bottom: 195 };

function axes(svg, range, xNames, xLabel, xOf, yOf) {
  const first = Math.round(range.low / range.step), last = Math.round(range.high / range.step);
  for (let tick = first; tick <= last; ++tick) {  // whole numbers, for 0 to be 0
    const y = tick * range.step;
    svg.append(make("line", { class: tick === 0 ? "axis" : "grid", x1: BOX.left, x2: BOX.right, y1: yOf(y), y2: yOf(y) }));
    svg.append(make("text", { x: BOX.left - 6, y: yOf(y) + 4, "text-anchor": "end" }, String(Number(y.toPrecision(6))).replace("-", "−")));
  }
  const every = Math.ceil(xNames.length / 8);
  xNames.forEach((name, i) => {
    if (i % every === 0) svg.append(make("text", { x: xOf(i), y: BOX.bottom + 16, "text-anchor": "middle" }, String(name)));
  });
  svg.append(make("line", { class: "axis", x1: BOX.left, x2: BOX.right, y1: BOX.bottom, y2: BOX.bottom }));
  svg.append(make("text", { x: (BOX.left + BOX.right) / 2, y: BOX.height - 7, "text-anchor": "middle" }, xLabel));
}

function tableOf(header, rows) {
  const row = (cells, name) => make("tr", {}, ...cells.map((cell) => make(name, {}, isNumber(cell) ? shown(cell) : cell ?? "–")));
  return make("div", { class: "scroll", tabindex: "0" }, make("table", {}, row(header, "th"), ...rows.map((cells) => row(cells, "td"))));
}

function figure(title, svg, header, rows) {
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${title}; the numbers are in the table below`);
  return make("figure", {}, make("figcaption", {}, title), svg,
    make("details", {}, make("summary", {}, "Numbers"), tableOf(header, rows)));
}

const dashOf = ({ isDashed, isDotted }) => (isDashed ? "6 4" : isDotted ? "2 3" : "none");

/** The smaller mark of a single head. */
const dot = (series, x, y) => make("path", { d: shape(series), transform: `translate(${x} ${y}) scale(.5)`, fill: colour(series), opacity: .6 });

const valuesOf = (series) => series.flatMap((one) => [...one.values, ...(one.dots ?? []).flat(), ...(one.spread ?? []).flat()]);

/** What a marker tells when it is pointed at. */
function labelOf(one, xNames, i) {
  const ends = one.spread?.[i];
  return `${one.name}, ${xNames[i]}: ${shown(one.values[i])}` + (ends ? ` (${shown(ends[0])} to ${shown(ends[1])})` : "");
}

/** Charts that stand in a row and share their vertical axis; null for one without values. */
function lineCharts(charts, { floor, ceiling } = {}) {
  const range = niceRange(charts.flatMap((chart) => valuesOf(chart.series)), floor, ceiling);
  return charts.map((chart) => lineChart({ ...chart, range }));
}

/**
 * series: {name, style: which model, isDashed, isDotted, values: one a layer, spread: [[low, high], ...], dots: [[head values], ...]}.
 */
function lineChart({ title, xNames, xLabel = "layer", series, range }) {
  if (!valuesOf(series).some(isNumber)) return null;
  const step = (BOX.right - BOX.left) / xNames.length;
  const xOf = (i) => BOX.left + step * (i + .5);
  const yOf = (y) => BOX.bottom - ((y - range.low) / (range.high - range.low)) * (BOX.bottom - BOX.top);
  const svg = make("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}` });
  axes(svg, range, xNames, xLabel, xOf, yOf);
  series.forEach((one, s) => {
    const shift = (s - (series.length - 1) / 2) * Math.min(12, step / (series.length + 1));
    const at = one.values.map((y, i) => ({ x: xOf(i) + shift, y, i })).filter(({ y }) => isNumber(y));
    (one.dots ?? []).forEach((heads, i) => heads.filter(isNumber).forEach((y) => svg.append(dot(one.style, xOf(i) + shift, yOf(y)))));
    (one.spread ?? []).forEach((ends, i) => ends && svg.append(make("path", {
      d: `M${xOf(i) + shift - 5} ${yOf(ends[0])}h10m-5 0V${yOf(ends[1])}m-5 0h10`, fill: "none", stroke: colour(one.style) })));
    svg.append(make("path", {
      d: at.map(({ x, y }, i) => `${i ? "L" : "M"}${x} ${yOf(y)}`).join(""),
      fill: "none", stroke: colour(one.style), "stroke-width": 2, "stroke-dasharray": dashOf(one),
    }));
    at.forEach(({ x, y, i }) => svg.append(marker(one.style, x, yOf(y), one.isDashed, labelOf(one, xNames, i))));
  });
  return figure(title, svg, [xLabel, ...series.map((one) => one.name)], xNames.map((name, i) => [String(name), ...series.map((one) => one.values[i])]));
}

const HATCHES = ["M0 0H8V8H0Z", "M0 8L8 0", "M4 0V8", "M0 4H8", "M0 0L8 8"];

/** Groups of bars, one group a layer, told apart by hatching. bars: {name, values: one a layer}. */
function barChart({ title, xNames, bars, style, id, range }) {
  const step = (BOX.right - BOX.left) / xNames.length, width = Math.min((step * .8) / bars.length, 36);
  const xOf = (i) => BOX.left + step * (i + .5);
  const yOf = (y) => BOX.bottom - ((y - range.low) / (range.high - range.low)) * (BOX.bottom - BOX.top);
  const svg = make("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}` });
  svg.append(hatchPatterns(bars.length, style, id));
  axes(svg, range, xNames, "layer", xOf, yOf);
  bars.forEach((bar, b) => bar.values.forEach((y, i) => {
    if (!isNumber(y)) return;
    svg.append(make("rect", {
      x: xOf(i) + (b - bars.length / 2) * width, y: yOf(y), width: Math.max(1, width - 1), height: Math.max(0, BOX.bottom - yOf(y)),
      fill: `url(#${id}-${b})`, stroke: colour(style),
    }, make("title", {}, `${bar.name}, layer ${xNames[i]}: ${shown(y)}`)));
  }));
  return figure(title, svg, ["layer", ...bars.map((bar) => bar.name)], xNames.map((name, i) => [String(name), ...bars.map((bar) => bar.values[i])]));
}

function hatchPatterns(count, style, id) {
  const patterns = Array.from({ length: count }, (_, b) => make("pattern",
    { id: `${id}-${b}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    make("path", { d: HATCHES[b % HATCHES.length], fill: b === 0 ? colour(style) : "none", stroke: colour(style), "stroke-width": 2 })));
  return make("defs", {}, ...patterns);
}

function barLegend(names, style, id) {
  return make("div", { class: "legend" }, ...names.map((name, b) => {
    const svg = make("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" });
    svg.append(hatchPatterns(names.length, style, id), make("rect", { x: 1, y: 1, width: 32, height: 12, fill: `url(#${id}-${b})`, stroke: colour(style) }));
    return make("span", {}, svg, name);
  }));
}

/** entries: {name, style, isDashed, isDotted}. */
function legend(entries) {
  return make("div", { class: "legend" }, ...entries.map((entry) => {
    const svg = make("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" });
    svg.append(make("line", { x1: 0, x2: 34, y1: 7, y2: 7, stroke: colour(entry.style), "stroke-width": 2, "stroke-dasharray": dashOf(entry) }),
      marker(entry.style, 17, 7, entry.isDashed));
    return make("span", {}, svg, entry.name);
  }));
}
