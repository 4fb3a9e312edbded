// The report: charts of `data.analysis` (analysis.json), and the explorer of `data.sentences`.

const data = JSON.parse(document.getElementById("data").textContent);
const shorter = shortNames(data.analysis.models.map((model) => model.name));
const models = data.analysis.models.map((model, m) => ({ ...model, name: shorter[m], path: model.name }));
const SITES = ["encoder_self", "decoder_self", "cross"];
const SITE_NAMES = { encoder_self: "encoder", decoder_self: "decoder", cross: "cross" };
const MEASURES = {
  sparsity: "Sparsity: share of visible weights that are exactly 0",
  null_rate: "Null rate: share of queries that attend to nothing",
  entropy: "Entropy in nats of rows that are not null",
  support: "Support: keys with a weight, per query",
};

const placesOf = (model, site) => model.places.filter((place) => place.site === site);
const section = (id) => document.getElementById(id);
const layerNames = (count) => Array.from({ length: count }, (_, i) => i);
const mostLayers = (site) => Math.max(...models.map((model) => placesOf(model, site).length));
const modelLegend = () => legend(models.map((model, m) => ({ name: model.name, style: m })));

/** Paths without the folders that all of them begin and end with; of a single one, the name of its run. */
function shortNames(paths) {
  const parts = paths.map((path) => path.split("/").filter(Boolean));
  const isShared = (of) => parts.every((one) => one.length > 1 && of(one) === of(parts[0]));
  const saysLittle = (folder) => new Set(paths).size > 1 || /^(averaged|best|last|step_\d+)$/.test(folder);
  while (isShared((one) => one.at(-1)) && saysLittle(parts[0].at(-1))) parts.forEach((one) => one.pop());
  while (isShared((one) => one[0])) parts.forEach((one) => one.shift());
  const names = parts.map((one) => one.join("/"));
  return names.map((name, i) => (names.indexOf(name) < i ? `${name} (${i + 1})` : name));
}

function hide(id) {
  section(id).remove();
}

function writeHeader() {
  const { src, tgt, overrides } = data.analysis;
  const names = models.map((model) => model.name).join(", ");
  document.title = `What attention does: ${names}`;
  section("subject").append(`${names} on ${src} and ${tgt}: ${models[0].pairs} pairs, `
    + `${models[0].src_tokens} source and ${models[0].tgt_tokens} target tokens, by forced decoding${overrides ? ` with ${overrides}` : ""}.`);
  for (const one of document.querySelectorAll("main section")) {
    document.querySelector("nav").append(make("a", { href: `#${one.id}` }, one.querySelector("h2").textContent));
  }
}

// --- overview ---

function bestAlignment(model, step) {
  if (!model.alignment) return null;
  const rates = model.alignment.layers.flatMap((layer) => layer[step].heads.map((head, h) => ({ aer: head.aer, layer: layer.layer, head: h })));
  return rates.filter(({ aer }) => isNumber(aer)).sort((a, b) => a.aer - b.aer)[0];
}

function writeOverview() {
  const into = section("overview"), rows = [];
  for (const key of Object.keys(MEASURES)) {
    for (const site of SITES) {
      const values = models.map((model) => mean(placesOf(model, site).map((place) => place[key])));
      if (values.some(isNumber)) rows.push([`${key.replace("_", " ")}, ${SITE_NAMES[site]}`, ...values]);
    }
  }
  const hasAlignment = models.some((model) => model.alignment);
  for (const step of hasAlignment ? ["normal", "shifted"] : []) {
    const best = models.map((model) => bestAlignment(model, step));
    rows.push([`best AER, ${step}`, ...best.map((one) => one && `${(100 * one.aer).toFixed(1)} (${one.layer}/${one.head})`)]);
  }
  const caption = "Means over layers" + (hasAlignment ? "; AER in percent, of the best single head (layer/head)." : ".");
  if (rows.length) into.append(make("p", { class: "soft" }, caption), tableOf(["", ...models.map((model) => model.name)], rows));
  const notes = models.map((model) => `${model.name} is ${model.path}.` + (model.notes.length ? ` Not measured: ${model.notes.join("; ")}.` : ""));
  into.append(make("details", {}, make("summary", {}, "Checkpoints, and what was not measured"),
    make("ul", { class: "soft" }, ...notes.map((note) => make("li", {}, note)))));
}

// --- layer by layer ---

function measureSeries(key, site) {
  const series = [];
  models.forEach((model, m) => {
    const places = placesOf(model, site);
    series.push({ name: model.name, style: m, values: places.map((place) => place[key]), dots: places.map((place) => place.heads?.[key] ?? []) });
    if (places.some((place) => place.shuffled?.[key] !== undefined))
      series.push({ name: `${model.name}, shuffled references`, style: m, isDashed: true, values: places.map((place) => place.shuffled?.[key]) });
  });
  return series;
}

function writeRow(into, title, charts) {
  const drawn = charts.filter(Boolean);
  if (drawn.length && title) into.append(make("h3", {}, title));
  if (drawn.length) into.append(make("div", { class: "charts" }, ...drawn));
  return drawn.length > 0;
}

function writeLayers() {
  const into = section("layers");
  const shuffled = models.some((model) => model.places.some((place) => place.shuffled));
  into.append(make("p", { class: "soft" }, "Lines: all heads of a layer; dots: single heads." + (shuffled ? " Dashed: the same sources with references shuffled." : "")), modelLegend());
  let isFull = false;
  for (const [key, title] of Object.entries(MEASURES)) {
    isFull = writeRow(into, title, lineCharts(SITES.map((site) => ({
      title: SITE_NAMES[site], xNames: layerNames(mostLayers(site)), series: measureSeries(key, site),
    })), { floor: 0, ceiling: key === "sparsity" ? 1 : undefined })) || isFull;
  }
  const names = new Set(models.flatMap((model) => model.places.flatMap((place) => Object.keys(place.numbers ?? {}))));
  for (const name of names) isFull = writeNumbers(into, name) || isFull;
  if (!isFull) hide("layers");
}

function writeNumbers(into, name) {
  return writeRow(into, `Learned ${name}`, lineCharts(SITES.map((site) => ({
    title: SITE_NAMES[site], xNames: layerNames(mostLayers(site)),
    series: models.map((model, m) => {
      const heads = placesOf(model, site).map((place) => place.numbers?.[name] ?? []);
      return { name: model.name, style: m, values: heads.map(mean), dots: heads };
    }),
  }))));
}

// --- alignment ---

function writeAlignment() {
  const aligned = models.map((model, m) => ({ model, m })).filter(({ model }) => model.alignment);
  if (!aligned.length) return hide("alignment");
  const percent = (value) => (isNumber(value) ? 100 * value : null);
  const ends = (system) => (system.interval ? system.interval.map(percent) : null);
  const into = section("alignment");
  into.append(make("p", { class: "soft" }, `Alignment error rate in percent, lower is better, on ${aligned[0].model.alignment.sentences} sentences, with bootstrap 95 % intervals. `
    + "Solid: best head of a layer (AoH). Dashed: average of its heads (AoL)."));
  into.append(legend(aligned.flatMap(({ model, m }) => [{ name: `${model.name}, AoH`, style: m }, { name: `${model.name}, AoL`, style: m, isDashed: true }])));
  writeRow(into, "Weights of the step that predicts a word (normal), or that has it as input (shifted)", lineCharts(["normal", "shifted"].map((step) => ({
    title: step, xNames: layerNames(mostLayers("cross")),
    series: aligned.flatMap(({ model, m }) => {
      const layers = model.alignment.layers.map((layer) => layer[step]), best = layers.map((layer) => layer.heads[layer.best_head]);
      return [
        { name: `${model.name}, AoH`, style: m, values: best.map((one) => percent(one.aer)), spread: best.map(ends) },
        { name: `${model.name}, AoL`, style: m, isDashed: true, values: layers.map((layer) => percent(layer.average.aer)), spread: layers.map((layer) => ends(layer.average)) },
      ];
    }),
  }))));
}

// --- diversity ---

function writeDiversity() {
  const into = section("diversity");
  const range = niceRange(models.flatMap((model) => model.places.flatMap((place) => Object.values(place.diversity ?? {}))), 0);
  let isFull = false;
  models.forEach((model, m) => {
    const places = model.places.filter((place) => place.diversity);
    if (!places.length) return;
    const keys = [...new Set(places.flatMap((place) => Object.keys(place.diversity)))];
    const names = keys.map((key) => (key === "as_is" ? "as it is" : `T = ${Number(key)}`));
    const charts = SITES.filter((site) => placesOf(model, site).some((place) => place.diversity)).map((site) => barChart({
      title: SITE_NAMES[site], xNames: layerNames(placesOf(model, site).length), style: m, id: `bars-${m}-${site}`, range,
      bars: keys.map((key, k) => ({ name: names[k], values: placesOf(model, site).map((place) => place.diversity?.[key]) })),
    }));
    into.append(make("h3", {}, model.name), barLegend(names, m, `legend-${m}`), make("div", { class: "charts" }, ...charts));
    isFull = true;
  });
  if (!isFull) return hide("diversity");
  into.querySelector("h2").after(make("p", { class: "soft" }, "Generalised Jensen-Shannon divergence between a layer's heads, in nats: 0 if all attend alike. Rectified rows p are compared as softmax(T p)."));
}

// --- calibration and importance ---

function calibrationSeries(valueOf) {
  return models.flatMap((model, m) => ["cross", "decoder_self"].flatMap((site) => {
    const places = placesOf(model, site);
    if (!places.some((place) => place.calibration)) return [];
    return [{ name: `${model.name}, ${SITE_NAMES[site]}`, style: m, isDashed: site === "decoder_self", values: places.map((place) => place.calibration && valueOf(place.calibration)) }];
  }));
}

function entropySeries(bins) {
  return models.flatMap((model, m) => ["cross", "decoder_self"].flatMap((site) => {
    const found = placesOf(model, site).flatMap((place) => place.calibration?.by_entropy ?? []);
    if (!found.length) return [];
    const values = bins.map((from) => {
      const here = found.filter((bin) => bin.from === from), rows = here.reduce((sum, bin) => sum + bin.rows, 0);
      return rows ? here.reduce((sum, bin) => sum + bin.rows * bin.divergence, 0) / rows : null;
    });
    return [{ name: `${model.name}, ${SITE_NAMES[site]}`, style: m, isDashed: site === "decoder_self", values }];
  }));
}

function writeCalibration() {
  const into = section("calibration"), series = calibrationSeries((one) => one.divergence);
  if (!series.length) return hide("calibration");
  const bins = [...new Set(models.flatMap((model) => model.places.flatMap((place) => (place.calibration?.by_entropy ?? []).map((bin) => bin.from))))].sort((a, b) => a - b);
  const xNames = layerNames(Math.max(mostLayers("cross"), mostLayers("decoder_self")));
  into.append(legend(series));
  writeRow(into, "How far calibration moves attention", [
    ...lineCharts([
      { title: "Jensen-Shannon divergence, nats", xNames, series },
      { title: "The same by entropy of the original", xNames: bins, xLabel: "entropy from, nats", series: entropySeries(bins) },
    ], { floor: 0 }),
    ...lineCharts([{ title: "Change of entropy, nats (+ disperses)", xNames, series: calibrationSeries((one) => one.entropy_change) }], { floor: 0 }),
    ...lineCharts([{ title: "Mean mask", xNames, series: calibrationSeries((one) => one.mask) }], { floor: 0, ceiling: 1 }),
  ]);
}

function writeImportance() {
  const series = models.flatMap((model, m) => {
    if (!model.importance) return [];
    const layers = model.importance.layers;
    const one = [{ name: `${model.name}, attention`, style: m, values: layers.map((layer) => layer.attention.tau_b) }];
    const add = (key, name, line) => {
      if (layers.some((layer) => layer[key])) one.push({ name: `${model.name}, ${name}`, style: m, ...line, values: layers.map((layer) => layer[key]?.tau_b) });
    };
    add("original", "attention before calibration", { isDotted: true });
    add("mask", "mask", { isDashed: true });
    return one;
  });
  if (!series.length) return hide("importance");
  const into = section("importance");
  into.append(make("p", { class: "soft" }, "Does cross attention point at what matters? Kendall's τ-b of attention averaged over heads with the norm of the gradient of a target token's probability by each source state."
    + (models.some((model) => model.importance?.layers.some((layer) => layer.mask)) ? " The masks of calibrated attention are constants of that gradient." : "")), legend(series));
  writeRow(into, "", lineCharts([{ title: "Kendall's τ-b", xNames: layerNames(mostLayers("cross")), series }], { floor: 0 }));
}

writeHeader();
writeOverview();
writeLayers();
writeAlignment();
writeDiversity();
writeCalibration();
writeImportance();
for (const link of document.querySelectorAll("nav a")) if (!document.querySelector(link.getAttribute("href"))) link.remove();
startExplorer();
