// Charts as inline SVG. Series differ in marker and dash as well as in color; every chart can be read as a table, and saved.

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
const color = (series) => `var(--series-${series % 5})`;
const shape = (series) => MARKERS[(series + Math.floor(series / 5)) % 5]; // the sixth has the first one's color, and another marker

function marker(series, x, y, isHollow, label) {
  const path = make("path", {
    d: shape(series),
    transform: `translate(${x} ${y})`,
    fill: isHollow ? "var(--page)" : color(series),
    stroke: color(series),
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

const tickName = (y, isPercent) => (isPercent ? `${Number((100 * y).toPrecision(6))}\u00a0%` : String(Number(y.toPrecision(6)))).replace("-", "−");

function axes(svg, { range, xNames, xLabel, isPercent }, xOf, yOf) {
  const first = Math.round(range.low / range.step), last = Math.round(range.high / range.step);
  for (let tick = first; tick <= last; ++tick) {  // whole numbers, for 0 to be 0
    const y = tick * range.step;
    svg.append(make("line", { class: tick === 0 ? "axis" : "grid", x1: BOX.left, x2: BOX.right, y1: yOf(y), y2: yOf(y) }));
    svg.append(make("text", { x: BOX.left - 6, y: yOf(y) + 4, "text-anchor": "end" }, tickName(y, isPercent)));
  }
  const every = Math.ceil(xNames.length / 8);
  xNames.forEach((name, i) => {
    if (i % every === 0) svg.append(make("text", { x: xOf(i), y: BOX.bottom + 16, "text-anchor": "middle" }, String(name)));
  });
  svg.append(make("line", { class: "axis", x1: BOX.left, x2: BOX.right, y1: BOX.bottom, y2: BOX.bottom }));
  svg.append(make("text", { x: (BOX.left + BOX.right) / 2, y: BOX.height - 7, "text-anchor": "middle" }, xLabel));
}

function tableOf(header, rows, isPercent) {
  const row = (cells, name) => make("tr", {}, ...cells.map((cell) => make(name, {}, isNumber(cell) ? shown(cell, isPercent) : cell ?? "–")));
  return make("div", { class: "scroll", tabindex: "0" }, make("table", {}, row(header, "th"), ...rows.map((cells) => row(cells, "td"))));
}

const dashOf = ({ isDashed, isDotted }) => (isDashed ? "6 4" : isDotted ? "2 3" : "none");

/** The smaller mark of a single head. */
const dot = (series, x, y) => make("path", { d: shape(series), transform: `translate(${x} ${y}) scale(.5)`, fill: color(series), opacity: .6 });

const valuesOf = (series) => series.flatMap((one) => [...one.values, ...(one.dots ?? []).flat(), ...(one.spread ?? []).flat()]);

/** The text that a marker shows when it is pointed at. */
function labelOf(one, xNames, i, isPercent) {
  const ends = one.spread?.[i];
  return `${one.name}, ${xNames[i]}: ${shown(one.values[i], isPercent)}` + (ends ? ` (${shown(ends[0], isPercent)} to ${shown(ends[1], isPercent)})` : "");
}

/**
 * Appends charts that stand in a row and share their vertical axis, under a heading. Charts without values are left out; where `ifZero` is given, a sentence
 * that ends with it stands for those that are 0 everywhere. Returns false if there was nothing to write.
 */
function writeCharts(into, heading, charts, { floor, ceiling, isPercent, ifZero } = {}) {
  const known = charts.filter((chart) => valuesOf(chart.series).some(isNumber));
  if (!known.length) return false;
  const zero = ifZero ? known.filter((chart) => valuesOf(chart.series).every((value) => !isNumber(value) || value === 0)) : [];
  const drawn = known.filter((chart) => !zero.includes(chart));
  if (heading) into.append(make("h3", {}, heading));
  if (zero.length) into.append(make("p", {}, `${capitalized(listed(zero.map((chart) => chart.title)))} attention: ${ifZero}.`));
  const range = niceRange(drawn.flatMap((chart) => valuesOf(chart.series)), floor, ceiling);
  if (drawn.length) into.append(make("div", { class: "charts" }, ...drawn.map((chart) => lineChart({ xLabel: "layer", heading, range, isPercent, ...chart }))));
  return true;
}

const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);
const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** series: {name, style: which model, isDashed, isDotted, values: one a layer, spread: [[low, high], ...], dots: [[head values], ...]}. */
function lineChart(chart) {
  const { heading, title, xNames, xLabel, series, range, isPercent } = chart;
  const step = (BOX.right - BOX.left) / xNames.length;
  const xOf = (i) => BOX.left + step * (i + .5);
  const yOf = (y) => BOX.bottom - ((y - range.low) / (range.high - range.low)) * (BOX.bottom - BOX.top);
  const svg = make("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}` });
  axes(svg, chart, xOf, yOf);
  series.forEach((one, s) => {
    const shift = (s - (series.length - 1) / 2) * Math.min(12, step / (series.length + 1));
    const at = one.values.map((y, i) => ({ x: xOf(i) + shift, y, i })).filter(({ y }) => isNumber(y));
    (one.dots ?? []).forEach((heads, i) => heads.filter(isNumber).forEach((y) => svg.append(dot(one.style, xOf(i) + shift, yOf(y)))));
    (one.spread ?? []).forEach((ends, i) => ends && svg.append(make("path", {
      d: `M${xOf(i) + shift - 5} ${yOf(ends[0])}h10m-5 0V${yOf(ends[1])}m-5 0h10`, fill: "none", stroke: color(one.style) })));
    svg.append(make("path", {
      d: at.map(({ x, y }, i) => `${i ? "L" : "M"}${x} ${yOf(y)}`).join(""),
      fill: "none", stroke: color(one.style), "stroke-width": 2, "stroke-dasharray": dashOf(one),
    }));
    at.forEach(({ x, y, i }) => svg.append(marker(one.style, x, yOf(y), one.isDashed, labelOf(one, xNames, i, isPercent))));
  });
  const table = tableOf([xLabel, ...series.map((one) => one.name)], xNames.map((name, i) => [String(name), ...series.map((one) => one.values[i])]), isPercent);
  const name = heading ? `${heading}: ${title}` : title;
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${name}; the numbers are in the table below`);
  return make("figure", {}, make("figcaption", {}, title), svg,
    make("div", { class: "tools" }, make("details", {}, make("summary", {}, "Numbers"), table),
      ...saveButtons(name, () => standalone(svg, name, series), () => csvRows(chart))));
}

/** The numbers of a chart, those of intervals and single heads among them. */
function csvRows({ xNames, xLabel, series, isPercent }) {
  const number = (value) => (isNumber(value) ? Number((isPercent ? 100 * value : value).toPrecision(6)) : "");
  const header = [xLabel], rows = xNames.map((name) => [name]);
  const add = (name, valueOf) => {
    header.push(isPercent ? `${name} (%)` : name);
    rows.forEach((row, i) => row.push(number(valueOf(i))));
  };
  for (const one of series) {
    add(one.name, (i) => one.values[i]);
    if (one.spread) ["low", "high"].forEach((end, e) => add(`${one.name}, ${end}`, (i) => one.spread[i]?.[e]));
    const heads = Math.max(0, ...(one.dots ?? []).map((dots) => dots.length));
    for (let head = 0; head < heads; ++head) add(`${one.name}, head ${head}`, (i) => one.dots[i]?.[head]);
  }
  return [header, ...rows];
}

const legendMark = (entry) => [
  make("line", { x1: 0, x2: 34, y1: 7, y2: 7, stroke: color(entry.style), "stroke-width": 2, "stroke-dasharray": dashOf(entry) }),
  marker(entry.style, 17, 7, entry.isDashed),
];

/** entries: {name, style, isDashed, isDotted}. */
function legend(entries) {
  return make("div", { class: "legend" }, ...entries.map((entry) =>
    make("span", {}, make("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" }, ...legendMark(entry)), entry.name)));
}

// --- saving ---

const SAVED_STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "visibility", "font-family", "font-size", "font-weight", "text-anchor"];

/** The text of an SVG file: the picture with its title above and a legend of `entries` below, in the colors and letters that the page has now. */
function standalone(svg, title, entries) {
  const { width, height } = svg.viewBox.baseVal, titleHeight = 26, rowHeight = 20;
  const widest = Math.max(width, 16 + widthOf(title, "700 12px system-ui, sans-serif"), ...entries.map((entry) => 60 + widthOf(entry.name, "12px system-ui, sans-serif")));
  const size = { width: Math.ceil(widest), height: titleHeight + height + rowHeight * entries.length + 8 };
  const heading = make("text", { x: 8, y: 18, class: "near" }, title);
  const legends = entries.map((entry, i) => make("g", { transform: `translate(8 ${titleHeight + height + i * rowHeight})` },
    ...legendMark(entry), make("text", { x: 42, y: 11 }, entry.name)));
  const picture = make("svg", { ...size, viewBox: `0 0 ${size.width} ${size.height}` },
    make("rect", { class: "paper", width: "100%", height: "100%" }), heading,
    make("g", { transform: `translate(0 ${titleHeight})` }, ...[...svg.childNodes].map((child) => child.cloneNode(true))), ...legends);
  svg.parentNode.append(picture); // styles are known of what is on the page
  const styles = [...picture.querySelectorAll("*")].map((element) => [element, getComputedStyle(element)]);
  for (const [element, style] of styles) for (const name of SAVED_STYLES) element.style.setProperty(name, style.getPropertyValue(name));
  picture.remove();
  return new XMLSerializer().serializeToString(picture);
}

function csvText(rows) {
  const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

function download(file, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Buttons that save a chart's picture and its numbers under a name made from `title`. */
function saveButtons(title, svgText, rowsOf) {
  const file = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "_").replace(/^_|_$/g, "").slice(0, 80);
  const button = (kind, save) => {
    const element = make("button", { type: "button", title: `Save as ${kind}`, "aria-label": `Save ${title} as ${kind}` }, kind);
    element.addEventListener("click", save);
    return element;
  };
  return [button("SVG", () => download(`${file}.svg`, "image/svg+xml", svgText())), button("CSV", () => download(`${file}.csv`, "text/csv", csvText(rowsOf())))];
}
