// The explorer: a sentence's weights, one map beside another, small maps of all heads, and a link to what is shown.

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
    make("div", { class: "heads scroll", tabindex: "0" }), make("p", { class: "value", "aria-live": "polite" }), make("div", { class: "map" }), make("div", { class: "tools" }));
  model.element.className = "wide";
  model.select.value = String(Math.min(number, models.length - 1));
  for (const { select } of [model, layer, head]) select.addEventListener("change", changed);
  return { element, changed, model: model.select, layer: layer.select, head: head.select };
}

/** Offers the layers and heads of the pane's model. */
function refillPane(pane, site) {
  const model = models[Number(pane.model.value)];
  refill(pane.layer, placesOf(model, site).map((place) => [place.layer, `${place.layer}: ${place.type}`]));
  refill(pane.head, [...layerNames(model.num_heads).map((h) => [h, h]), ["mean", "average of all"]]);
}

/** The titles of a map's axes, and the words for a row and a column when a cell is read out. */
function axisNames(site, byInput) {
  const read = "target, read", rows = site === "encoder_self" ? "source" : byInput ? read : "target, predicted";
  const columns = site === "decoder_self" ? read : "source";
  const rowWord = site === "encoder_self" ? "source" : byInput ? "reading" : "predicting";
  return { rows, columns, rowWord, columnWord: site === "decoder_self" ? "target read" : "source" };
}

/** Draws what the pane's selects say; leaves drawMap()'s function as pane.follow. */
async function drawPane(pane, sentence, site, useWords, byInput, told) {
  const m = Number(pane.model.value), model = models[m], { gold, line, models: all } = data.sentences[sentence], tokens = all[m];
  refillPane(pane, site);
  const placeIndex = model.places.findIndex((place) => place.site === site && place.layer === Number(pane.layer.value));
  const turn = (pane.turn = (pane.turn ?? 0) + 1);
  const bytes = await unpack(sentence, m);
  if (turn !== pane.turn) return; // something else was chosen meanwhile
  const { rows, columns } = axesOf(tokens, site, byInput);
  const matrix = weightsOf(bytes, tokens, model, placeIndex, pane.head.value, rows.pieces.length, columns.pieces.length);
  const map = useWords ? byWords(matrix, rows, columns, tokens.joiner) : { matrix, rowNames: rows.pieces, columnNames: columns.pieces };
  map.isSum = useWords || pane.head.value === "mean";
  map.gold = site === "cross" ? goldBoxes(gold, rows, columns, useWords) : [];
  pane.follow = drawMap(pane.element, map, axisNames(site, byInput), told);
  drawHeads(pane, `${sentence} ${m} ${site}`, bytes, tokens, model, site);
  const title = `${model.name}, sentence ${line + 1}, ${SITE_NAMES[site]}, layer ${pane.layer.value}, head ${pane.head.value}`;
  const csv = () => [["", ...map.columnNames], ...map.matrix.map((row, r) => [map.rowNames[r], ...row.map((value) => (isNaN(value) ? "" : Number(value.toPrecision(4))))])];
  pane.element.querySelector(".tools").replaceChildren(...saveButtons(title, () => standalone(pane.element.querySelector(".map svg"), title, []), csv));
}

const HEAD_PIXELS = 64; // the most on a side of a small map

/** Small maps of all heads, a row a layer; each chooses its head. `key`: of what they show; they are drawn anew where it changes. */
function drawHeads(pane, key, bytes, tokens, model, site) {
  const into = pane.element.querySelector(".heads");
  if (into.dataset.key !== key) {
    into.dataset.key = key;
    const names = layerNames(model.num_heads).map((head) => make("span", {}, `head ${head}`));
    const grid = make("div", { class: "grid", style: `--heads: ${model.num_heads}` }, make("span", {}), ...names);
    model.places.forEach((place, p) => {
      if (place.site !== site) return;
      grid.append(make("span", {}, `layer ${place.layer}`));
      for (let head = 0; head < model.num_heads; ++head) grid.append(headButton(pane, place, head, smallMap(bytes, tokens, model, p, head)));
    });
    into.replaceChildren(grid);
  }
  for (const button of into.querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(button.dataset.layer === pane.layer.value && button.dataset.head === pane.head.value));
}

function headButton(pane, place, head, canvas) {
  const name = `Layer ${place.layer}, head ${head}: ${place.type}`;
  const button = make("button", { type: "button", title: name, "aria-label": name, "data-layer": place.layer, "data-head": head }, canvas);
  button.addEventListener("click", () => {
    [pane.layer.value, pane.head.value] = [String(place.layer), String(head)];
    pane.changed();
  });
  return button;
}

/** A head's weights as shades of ink; of a long sentence, the largest weight that falls on a pixel. */
function smallMap(bytes, tokens, model, p, head) {
  const site = model.places[p].site, columns = site === "decoder_self" ? tokens.tgt.length : tokens.src.length;
  const rows = mapSize(tokens, model, p) / model.num_heads / columns, begin = offsetOf(tokens, model, p) + head * rows * columns;
  const height = Math.min(rows, HEAD_PIXELS), width = Math.min(columns, HEAD_PIXELS), largest = new Uint8Array(height * width);
  for (let r = 0; r < rows; ++r) for (let c = 0; c < columns; ++c) {
    const level = bytes[begin + r * columns + c], at = Math.floor((r * height) / rows) * width + Math.floor((c * width) / columns);
    if (level !== NOT_VISIBLE) largest[at] = Math.max(largest[at], level & ~NEGATIVE);
  }
  const canvas = make("canvas", { width, height }), context = canvas.getContext("2d"), image = context.createImageData(width, height);
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const parts = [1, 3, 5].map((i) => parseInt(ink.slice(i, i + 2), 16));
  largest.forEach((level, i) => image.data.set([...parts, (255 * level) / LEVELS], 4 * i));
  context.putImageData(image, 0, 0);
  return canvas;
}

// --- the link to a view ---

/** The choices of a view, by the names they have in the page's address; `panes` are those that are open. */
function viewHash(sentence, site, useWords, byInput, panes) {
  const view = new URLSearchParams({ line: data.sentences[sentence].line + 1, site });
  if (useWords) view.set("words", 1);
  if (byInput) view.set("shifted", 1);
  panes.forEach((pane, p) => {
    const number = p ? String(p + 1) : "";
    view.set(`model${number}`, models[Number(pane.model.value)].name);
    view.set(`layer${number}`, pane.layer.value);
    view.set(`head${number}`, pane.head.value);
  });
  return `#${view}`;
}

/** Sets the controls as the address says. False if it names no view; what it names and is not here stays as it was. */
function readView({ sentence, site, words, byInput, second }, panes) {
  const view = new URLSearchParams(location.hash.slice(1));
  if (!view.has("line")) return false;
  const choose = (select, value) => {
    if ([...select.options].some((option) => option.value === String(value))) select.value = String(value);
  };
  choose(sentence.select, data.sentences.findIndex((one) => one.line + 1 === Number(view.get("line"))));
  choose(site.select, view.get("site"));
  words.input.checked = view.has("words");
  byInput.input.checked = view.has("shifted");
  second.input.checked = view.has("model2");
  panes.forEach((pane, p) => {
    const number = p ? String(p + 1) : "";
    choose(pane.model, models.findIndex((model) => model.name === view.get(`model${number}`)));
    refillPane(pane, site.select.value);
    choose(pane.layer, view.get(`layer${number}`));
    choose(pane.head, view.get(`head${number}`));
  });
  return true;
}

function explanation(hasGold) {
  return "A square's area is the weight, relative to the largest of the map; an empty cell is exactly 0, a grey one a key that the query does not see. "
    + (hasGold ? "Outlines are gold links between words, dashed where they are only possible. " : "")
    + "Point at a cell, or focus the map and use the arrow keys, for its value; where two maps have the same tokens, both tell theirs. The small maps show all heads and choose one."
    + (data.omitted ? ` ${data.omitted} more sentences would have made this file too large.` : "");
}

function startExplorer() {
  const into = section("explorer");
  if (!data.sentences.length) {
    into.append(make("p", {}, data.omitted
      ? `None of the ${data.omitted} sentences kept for it are here: their weights would have made this file too large. A larger --explore may find shorter ones.`
      : "No sentences were kept for it (--explore 0)."));
    return;
  }
  const controls = {
    sentence: chooser("Sentence", data.sentences.map((one, i) => [i, `${one.line + 1}: ${isolatedText(cut(one.src_text, 60))}`])),
    site: chooser("Attention", SITES.map((one) => [one, SITE_NAMES[one]])),
    words: check("words on the axes", false), byInput: check("rows are tokens read (shifted)", false), second: check("two side by side", models.length > 1),
  };
  const { sentence, site, words, byInput, second } = controls;
  site.select.value = "cross";
  const texts = make("p", { class: "soft" }), link = make("a", { class: "link", title: "Copy it, or the page's address, to come back to these maps" }, "Link to this view");
  const redraw = () => draw().catch((error) => { texts.textContent = `The weights could not be shown: ${error}`; });
  const changed = () => redraw().then(() => history.replaceState(null, "", link.getAttribute("href")));
  const panes = [makePane(0, changed), makePane(1, changed)];
  async function draw() {
    const chosen = Number(sentence.select.value);
    texts.replaceChildren(isolated(data.sentences[chosen].src_text), " → ", isolated(data.sentences[chosen].tgt_text));
    panes[1].element.hidden = !second.input.checked;
    const open = panes.filter((pane) => !pane.element.hidden);
    await Promise.all(open.map((pane) => drawPane(pane, chosen, site.select.value, words.input.checked, byInput.input.checked,
      (cell) => open.forEach((other) => other === pane || other.follow?.(cell)))));
    link.setAttribute("href", viewHash(chosen, site.select.value, words.input.checked, byInput.input.checked, open));
  }
  for (const one of [sentence.select, site.select, words.input, byInput.input, second.input]) one.addEventListener("change", changed);
  into.append(make("p", { class: "soft" }, explanation(data.sentences.some((one) => one.gold))),
    make("div", { class: "controls" }, sentence.element, site.element, words.element, byInput.element, second.element, link), texts,
    make("div", { class: "panes" }, ...panes.map((pane) => pane.element)));
  const showView = () => readView(controls, panes) && redraw().then(() => into.scrollIntoView());
  window.addEventListener("hashchange", showView);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const heads of into.querySelectorAll(".heads")) heads.dataset.key = "";  // whose ink is that of the other scheme
    redraw();
  });
  if (!showView()) redraw();
}
