// The explorer: weights of one sentence, layer and head as a map of squares, their area the weight. Sentences are unpacked when chosen.

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

/** [rows][columns] weights of one head, or of the mean over heads; NaN where a key is not visible. */
function weightsOf(bytes, tokens, model, placeIndex, head, rows, columns) {
  let begin = 0;
  for (let p = 0; p < placeIndex; ++p) begin += mapSize(tokens, model, p);
  const scale = tokens.scales[placeIndex], heads = head === "mean" ? layerNames(model.num_heads) : [Number(head)];
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

/** Pieces of a word put together: columns are summed, rows averaged. */
function byWords(matrix, rows, columns, joiner) {
  const groups = (axis) => {
    const found = [];
    axis.words.forEach((word, i) => {
      if (i > 0 && word === axis.words[i - 1]) found.at(-1).push(i);
      else found.push([i]);
    });
    return found;
  };
  const rowGroups = groups(rows), columnGroups = groups(columns);
  const known = (values) => values.filter((value) => !isNaN(value));
  const merged = rowGroups.map((group) => columnGroups.map((keys) => {
    const sums = group.map((r) => known(keys.map((c) => matrix[r][c]))).filter((values) => values.length);
    if (!sums.length) return NaN;
    return sums.reduce((total, values) => total + values.reduce((sum, value) => sum + value, 0), 0) / group.length;
  }));
  const names = (axis, found) => found.map((group) => joinedPieces(group.map((i) => axis.pieces[i]), joiner));
  return { matrix: merged, rowNames: names(rows, rowGroups), columnNames: names(columns, columnGroups) };
}

function cut(text, most = 14) {
  const letters = [...text]; // which a text's length and slice may count as two, and split
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
}

// Text of either direction does not turn what stands around it: as an element, and where only characters can stand (FSI, PDI).
const isolated = (text) => make("bdi", {}, text);
const isolatedText = (text) => `\u2068${text}\u2069`;
const pen = document.createElement("canvas").getContext("2d");
pen.font = "700 12px system-ui, sans-serif"; // as labels are while the cursor is on their row or column

/** Pixels that the names need beside the map. */
const room = (names) => 12 + Math.max(20, ...names.map((name) => pen.measureText(cut(name)).width));

/**
 * Draws a map into `pane`, as large as fits, and lets pointer and arrow keys read it. `told` hears of the cell that they are at; what comes back goes to
 * the cell that another map's `told` heard of, if it is of the same tokens.
 */
function drawMap(pane, { matrix, rowNames, columnNames, isSum }, rowWord, columnWord, told) {
  const left = room(rowNames), top = room(columnNames), into = pane.querySelector(".map");
  const fitting = Math.floor((into.clientWidth - left - 8) / columnNames.length), cell = Math.min(LARGEST_CELL, Math.max(SMALLEST_CELL, fitting));
  const width = left + columnNames.length * cell + 8, height = top + rowNames.length * cell + 8;
  const svg = make("svg", { width, height, tabindex: "0", role: "application", "aria-label": "Weights; arrow keys move, the value is read out below" });
  let most = -Infinity, least = 0;
  for (const row of matrix) for (const value of row) if (!isNaN(value)) [most, least] = [Math.max(most, value), Math.min(least, value)];
  const scale = Math.max(most, -least) || 1, zero = least < 0 && isSum ? "≈ 0" : "exactly 0"; // rounded weights of both signs may cancel
  const rowTexts = rowNames.map((name, r) => make("text", { x: left - 4, y: top + r * cell + cell / 2 + 4, "text-anchor": "end" }, cut(name)));
  const columnTexts = columnNames.map((name, c) => make("text", { transform: `translate(${left + c * cell + cell / 2 + 4} ${top - 4}) rotate(-90)` }, cut(name)));
  svg.append(...rowTexts, ...columnTexts, gridOf(left, top, rowNames.length, columnNames.length, cell));
  matrix.forEach((row, r) => svg.append(...rowShapes(row, scale, left, top + r * cell, cell)));
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
    pane.querySelector(".value").replaceChildren(`${rowWord} “`, isolated(rowNames[r]), `” → ${columnWord} “`, isolated(columnNames[c]), `”: ${said}`);
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
 * magnitude; it is hollow and in another colour below 0.
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

function chooser(label, options) {
  const select = make("select", {}, ...options.map(([value, name]) => make("option", { value }, name)));
  return { element: make("label", {}, label, select), select };
}

function check(label, isChecked) {
  const input = make("input", { type: "checkbox" });
  input.checked = isChecked;
  return { element: make("label", { class: "check" }, input, label), input };
}

/** Fills a select with layers or heads, keeping what was chosen if it is still there. */
function refill(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, name]) => make("option", { value }, name)));
  if (options.some(([value]) => String(value) === before)) select.value = before;
}

function makePane(number, changed) {
  const model = chooser("Model", models.map((one, m) => [m, one.name]));
  const layer = chooser("Layer", []), head = chooser("Head", []);
  const element = make("div", { class: "pane" }, make("div", { class: "controls" }, model.element, layer.element, head.element),
    make("p", { class: "value", "aria-live": "polite" }), make("div", { class: "map" }));
  model.element.className = "wide";
  model.select.value = String(Math.min(number, models.length - 1));
  for (const { select } of [model, layer, head]) select.addEventListener("change", changed);
  return { element, model: model.select, layer: layer.select, head: head.select };
}

/** What drawMap gives is left as pane.follow. */
async function drawPane(pane, sentence, site, useWords, byInput, told) {
  const m = Number(pane.model.value), model = models[m], tokens = data.sentences[sentence].models[m];
  refill(pane.layer, placesOf(model, site).map((place) => [place.layer, `${place.layer}: ${place.type}`]));
  refill(pane.head, [...layerNames(model.num_heads).map((h) => [h, h]), ["mean", "average of all"]]);
  const placeIndex = model.places.findIndex((place) => place.site === site && place.layer === Number(pane.layer.value));
  const turn = (pane.turn = (pane.turn ?? 0) + 1);
  const bytes = await unpack(sentence, m);
  if (turn !== pane.turn) return; // something else was chosen meanwhile
  const { rows, columns } = axesOf(tokens, site, byInput);
  const matrix = weightsOf(bytes, tokens, model, placeIndex, pane.head.value, rows.pieces.length, columns.pieces.length);
  const map = useWords ? byWords(matrix, rows, columns, tokens.joiner) : { matrix, rowNames: rows.pieces, columnNames: columns.pieces };
  map.isSum = useWords || pane.head.value === "mean";
  pane.follow = drawMap(pane.element, map, site === "encoder_self" ? "source" : byInput ? "reading" : "predicting", site === "decoder_self" ? "target read" : "source", told);
}

function startExplorer() {
  const into = section("explorer");
  if (!data.sentences.length) {
    into.append(make("p", {}, data.omitted
      ? `None of the ${data.omitted} sentences kept for it are here: their weights would have made this file too large. A larger --explore may find shorter ones.`
      : "No sentences were kept for it (--explore 0)."));
    return;
  }
  const sentence = chooser("Sentence", data.sentences.map((one, i) => [i, `${one.line + 1}: ${isolatedText(cut(one.src_text, 60))}`]));
  const site = chooser("Attention", SITES.map((one) => [one, SITE_NAMES[one]]));
  site.select.value = "cross";
  const words = check("words on the axes", false), byInput = check("rows are tokens read (shifted)", false), second = check("two side by side", models.length > 1);
  const texts = make("p", { class: "soft" });
  const changed = () => draw().catch((error) => { texts.textContent = `The weights could not be shown: ${error}`; });
  const panes = [makePane(0, changed), makePane(1, changed)];
  async function draw() {
    const chosen = Number(sentence.select.value);
    texts.replaceChildren(isolated(data.sentences[chosen].src_text), " → ", isolated(data.sentences[chosen].tgt_text));
    panes[1].element.hidden = !second.input.checked;
    const open = panes.filter((pane) => !pane.element.hidden);
    await Promise.all(open.map((pane) => drawPane(pane, chosen, site.select.value, words.input.checked, byInput.input.checked,
      (cell) => open.forEach((other) => other === pane || other.follow?.(cell)))));
  }
  for (const one of [sentence.select, site.select, words.input, byInput.input, second.input]) one.addEventListener("change", changed);
  into.append(make("p", { class: "soft" }, "A square's area is the weight, relative to the largest of the map; an empty cell is exactly 0, a grey one a key that the query does not see. "
    + "Point at a cell, or focus the map and use the arrow keys, for its value; where two maps have the same tokens, both tell theirs." + (data.omitted ? ` ${data.omitted} more sentences would have made this file too large.` : "")),
    make("div", { class: "controls" }, sentence.element, site.element, words.element, byInput.element, second.element), texts,
    make("div", { class: "panes" }, ...panes.map((pane) => pane.element)));
  changed();
}
