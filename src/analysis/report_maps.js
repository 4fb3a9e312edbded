// Maps of the explorer: the weights of one sentence, layer and head as squares whose area is the weight. Sentences are unpacked when chosen.

const LEVELS = 63, NOT_VISIBLE = 64, NEGATIVE = 128, SMALLEST_CELL = 15, LARGEST_CELL = 26;
const unpacked = new Map();

async function unpack(sentence, m) {
  const key = `${sentence}/${m}`;
  if (!unpacked.has(key)) {
    const bytes = Uint8Array.from(atob(data.sentences[sentence].models[m].weights), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    unpacked.set(key, new Uint8Array(await new Response(stream).arrayBuffer()));
  }
  return unpacked.get(key);
}

/** Tokens and words on both axes of a map. Decoder rows are named by the token they predict, or by the one they read. */
function axesOf(tokens, site, byInput) {
  const src = { pieces: tokens.src, words: tokens.src_words };
  const predicted = { pieces: tokens.tgt, words: tokens.tgt_words };
  const read = { pieces: ["⟨s⟩", ...tokens.tgt.slice(0, -1)], words: [-1, ...tokens.tgt_words.slice(0, -1)] };
  if (site === "encoder_self") return { rows: src, columns: src };
  if (site === "decoder_self") return { rows: byInput ? read : predicted, columns: read };
  return { rows: byInput ? read : predicted, columns: src };
}

/** The weight of a level, relative to the largest magnitude. */
const shareOf = (level) => (level & NEGATIVE ? -1 : 1) * ((level & ~NEGATIVE) / LEVELS) ** 2;

/** Where a place's levels begin. */
const offsetOf = (tokens, model, placeIndex) => model.places.slice(0, placeIndex).reduce((sum, _, p) => sum + mapSize(tokens, model, p), 0);

/** [rows][columns] weights of one head, or of the mean over heads; NaN where a key is not visible. */
function weightsOf(bytes, tokens, model, placeIndex, head, rows, columns) {
  const begin = offsetOf(tokens, model, placeIndex), scale = tokens.scales[placeIndex], heads = head === "mean" ? layerNames(model.num_heads) : [Number(head)];
  const weights = Float64Array.from({ length: 256 }, (_, level) => (level === NOT_VISIBLE ? 0 : scale * shareOf(level)));
  return Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (_, c) => {
    let sum = 0, isVisible = false;
    for (const h of heads) {
      const level = bytes[begin + (h * rows + r) * columns + c];
      isVisible ||= level !== NOT_VISIBLE;
      sum += weights[level];
    }
    return isVisible ? sum / heads.length : NaN;
  }));
}

function mapSize(tokens, model, p) {
  const site = model.places[p].site;
  const rows = site === "encoder_self" ? tokens.src.length : tokens.tgt.length, columns = site === "decoder_self" ? tokens.tgt.length : tokens.src.length;
  return model.num_heads * rows * columns;
}

/** The pieces of a word as text; all but the last may end with the joiner. */
function joinedPieces(pieces, joiner) {
  const bare = pieces.map((piece, i) => (joiner && i + 1 < pieces.length && piece.endsWith(joiner) ? piece.slice(0, -joiner.length) : piece));
  return bare.join("").replaceAll("▁", "");
}

/** The pieces of each word, as indices: pieces that stand next to each other and have the same word. */
function wordGroups(axis) {
  const found = [];
  axis.words.forEach((word, i) => {
    if (i > 0 && word === axis.words[i - 1]) found.at(-1).push(i);
    else found.push([i]);
  });
  return found;
}

/** Pieces of a word put together: columns are summed, rows averaged. */
function byWords(matrix, rows, columns, joiner) {
  const rowGroups = wordGroups(rows), columnGroups = wordGroups(columns);
  const known = (values) => values.filter((value) => !isNaN(value));
  const merged = rowGroups.map((group) => columnGroups.map((keys) => {
    const sums = group.map((r) => known(keys.map((c) => matrix[r][c]))).filter((values) => values.length);
    if (!sums.length) return NaN;
    return sums.reduce((total, values) => total + values.reduce((sum, value) => sum + value, 0), 0) / group.length;
  }));
  const names = (axis, found) => found.map((group) => joinedPieces(group.map((i) => axis.pieces[i]), joiner));
  return { matrix: merged, rowNames: names(rows, rowGroups), columnNames: names(columns, columnGroups) };
}

/** The cells of each gold link, {kind, top, left, height, width}, on a map of pieces or of words. */
function goldBoxes(gold, rows, columns, useWords) {
  const boxesOf = (kind) => gold[kind].flatMap(([src, tgt]) => {
    const span = (axis, word) => {
      const groups = wordGroups(axis), g = groups.findIndex((group) => axis.words[group[0]] === word);
      return g < 0 ? null : useWords ? [g, 1] : [groups[g][0], groups[g].length];
    };
    const row = span(rows, tgt), column = span(columns, src);
    return row && column ? [{ kind, top: row[0], height: row[1], left: column[0], width: column[1] }] : [];
  });
  return gold ? ["sure", "possible"].flatMap(boxesOf) : [];
}

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
