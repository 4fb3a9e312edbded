// The weights of the explorer's maps: of one sentence, layer and head, between tokens or words. Sentences are unpacked when chosen.

const LEVELS = 63, NOT_VISIBLE = 64, NEGATIVE = 128;
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
