"use strict";
// Maps of weights, as the report and the page of `lacuna serve` show them: squares whose area is the weight, read by pointer or arrow keys.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a string child is text. */
function make(name, attributes = {}, ...children) {
  const isSvg = ["svg", "g", "line", "path", "rect", "text", "title"].includes(name);
  const element = isSvg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const isNumber = (value) => typeof value === "number" && isFinite(value);
/** A number as text: four digits, or percent with one decimal. */
const shown = (value, isPercent) => (!isNumber(value) ? "–" : isPercent ? `${(100 * value).toFixed(1)}\u00a0%` : String(Number(value.toPrecision(4))));

const pen = document.createElement("canvas").getContext("2d"); // measures text
const widthOf = (text, font) => {
  pen.font = font;
  return pen.measureText(text).width;
};

const SMALLEST_CELL = 15, LARGEST_CELL = 26;

function cut(text, most = 14) {
  const letters = [...text]; // which a text's length and slice may count as two, and split
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
}

// Text of either direction does not turn what stands around it: as an element, and where only characters can stand (FSI, PDI).
const isolated = (text) => make("bdi", {}, text);
const isolatedText = (text) => `\u2068${text}\u2069`;
const LABEL_FONT = "700 12px system-ui, sans-serif"; // as labels are while the cursor is on their row or column

/** Pixels that the names of a map's rows or columns, and that of the axis, need beside it. */
const room = (names) => 32 + Math.max(20, ...names.map((name) => widthOf(cut(name), LABEL_FONT)));

/**
 * Draws a map into `pane`, as large as fits, and lets pointer and arrow keys read it. `axes` are the titles of rows and columns, and what a row does. `told`
 * is called with the cell that pointer or keys are at. Returns a function that moves to a cell that another map's `told` was called with, if the tokens match.
 */
function drawMap(pane, { matrix, rowNames, columnNames, isSum, gold }, axes, told) {
  const left = room(rowNames), top = room(columnNames), into = pane.querySelector(".map");
  const fitting = Math.floor((into.clientWidth - left - 8) / columnNames.length), cell = Math.min(LARGEST_CELL, Math.max(SMALLEST_CELL, fitting));
  const width = left + Math.max(columnNames.length * cell, widthOf(axes.columns, LABEL_FONT)) + 8;
  const height = Math.max(top + rowNames.length * cell, widthOf(axes.rows, LABEL_FONT) + 12) + 8;
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: "0", role: "application", "aria-label": "Weights; arrow keys move, the value is read out below" });
  let most = -Infinity, least = 0;
  for (const row of matrix) for (const value of row) if (!isNaN(value)) [most, least] = [Math.max(most, value), Math.min(least, value)];
  const scale = Math.max(most, -least) || 1, zero = least < 0 && isSum ? "≈ 0" : "exactly 0"; // rounded weights of both signs may cancel
  const rowTexts = rowNames.map((name, r) => make("text", { class: "row-name", x: left - 4, y: top + r * cell + cell / 2 + 4, "text-anchor": "end" }, cut(name)));
  const columnTexts = columnNames.map((name, c) => make("text", { class: "column-name", transform: `translate(${left + c * cell + cell / 2 + 4} ${top - 4}) rotate(-90)` }, cut(name)));
  svg.append(...rowTexts, ...columnTexts, gridOf(left, top, rowNames.length, columnNames.length, cell));
  matrix.forEach((row, r) => svg.append(...rowShapes(row, scale, left, top + r * cell, cell)));
  svg.append(make("text", { class: "axis-name", x: left, y: 14 }, `${axes.columns} →`),
    make("text", { class: "axis-name", transform: "translate(14 8) rotate(-90)", "text-anchor": "end" }, `← ${axes.rows}`));
  for (const box of gold) svg.append(make("rect", {
    class: `gold ${box.kind}`, x: left + box.left * cell, y: top + box.top * cell, width: box.width * cell, height: box.height * cell }));
  const linkAt = (r, c) => gold.find((box) => r >= box.top && r < box.top + box.height && c >= box.left && c < box.left + box.width);
  const cursor = make("rect", { class: "cursor", width: cell, height: cell, visibility: "hidden" });
  svg.append(cursor);
  let at = { r: 0, c: 0 };
  const move = (r, c) => {
    if (r < 0 || c < 0 || r >= rowNames.length || c >= columnNames.length) return;
    rowTexts[at.r].classList.remove("near");
    columnTexts[at.c].classList.remove("near");
    at = { r, c };
    rowTexts[r].classList.add("near");
    columnTexts[c].classList.add("near");
    cursor.setAttribute("x", left + c * cell);
    cursor.setAttribute("y", top + r * cell);
    cursor.setAttribute("visibility", "visible");
    const value = matrix[r][c];
    const said = isNaN(value) ? "not visible" : value === 0 ? zero : `≈ ${shown(value)}`;
    const link = linkAt(r, c) ? `, a ${linkAt(r, c).kind} gold link` : "";
    pane.querySelector(".value").replaceChildren(`${axes.rowWord} “`, isolated(rowNames[r]), `” → ${axes.columnWord} “`, isolated(columnNames[c]), `”${link}: ${said}`);
  };
  const moveAndTell = (r, c) => {
    move(r, c);
    told({ row: at.r, column: at.c, rowName: rowNames[at.r], columnName: columnNames[at.c] });
  };
  for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, (event) => {
    const box = svg.getBoundingClientRect();
    moveAndTell(Math.floor((event.clientY - box.top - top) / cell), Math.floor((event.clientX - box.left - left) / cell));
  });
  svg.addEventListener("keydown", (event) => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    moveAndTell(at.r + by[0], at.c + by[1]);
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  svg.addEventListener("focus", () => moveAndTell(at.r, at.c));
  into.replaceChildren(svg);
  pane.querySelector(".value").textContent = `Largest weight: ${shown(most)}` + (least < 0 ? `; hollow squares are weights below 0, down to ${shown(least)}` : "");
  return ({ row, column, rowName, columnName }) => {
    if (rowNames[row] === rowName && columnNames[column] === columnName) move(row, column);
  };
}

/** The lines between cells: one shape, however many there are. */
function gridOf(left, top, rows, columns, cell) {
  const across = Array.from({ length: rows + 1 }, (_, r) => `M${left} ${top + r * cell}h${columns * cell}`);
  const down = Array.from({ length: columns + 1 }, (_, c) => `M${left + c * cell} ${top}v${rows * cell}`);
  return make("path", { class: "lines", d: across.join("") + down.join("") });
}

/**
 * A row of a map: the keys that are not visible, weights above 0 and below, as far as it has them. A shape each, as one for every cell would be slow to draw
 * for long sentences, and one for all rows to draw again where the cursor was. A weight is a square whose area is its share of `scale`, the largest
 * magnitude; it is hollow and in another color below 0.
 */
function rowShapes(row, scale, left, y, cell) {
  let hidden = "", above = "", below = "";
  for (let c = 0; c < row.length; ++c) {
    const x = left + c * cell;
    if (isNaN(row[c])) {
      const begin = c;
      while (c + 1 < row.length && isNaN(row[c + 1])) ++c;
      hidden += rectangle(x, y, (c + 1 - begin) * cell, cell);
    } else if (row[c] !== 0) {
      const side = Math.max(1.5, Math.sqrt(Math.abs(row[c] / scale)) * (cell - 2)), from = (cell - side) / 2;
      if (row[c] > 0) above += rectangle(x + from, y + from, side, side);
      else below += hollowSquare(x + from, y + from, side, Math.min(2, side / 2));
    }
  }
  const shapes = [["hidden", hidden], ["weight", above], ["weight negative", below]];
  return shapes.filter(([, d]) => d).map(([name, d]) => make("path", { class: name, d }));
}

const rounded = (pixels) => String(Math.round(pixels * 100) / 100);
const rectangle = (x, y, width, height) => `M${rounded(x)} ${rounded(y)}h${rounded(width)}v${rounded(height)}h${rounded(-width)}z`;
/** Lines so thick along the inside of a square's sides: the hole is drawn the other way round. */
const hollowSquare = (x, y, side, line) => {
  const hole = side - 2 * line;
  return rectangle(x, y, side, side) + (hole > 0 ? `M${rounded(x + line)} ${rounded(y + line)}v${rounded(hole)}h${rounded(hole)}v${rounded(-hole)}z` : "");
};
