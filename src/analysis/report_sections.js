// The report: charts of `data.analysis` (analysis.json), and the explorer of `data.sentences`.

const data = JSON.parse(document.getElementById("data").textContent);
const shorter = shortNames(data.analysis.models.map((model) => model.name));
const models = data.analysis.models.map((model, m) => ({ ...model, name: shorter[m], path: model.name }));
const SITES = ["encoder_self", "decoder_self", "cross"];
const SITE_NAMES = { encoder_self: "encoder", decoder_self: "decoder", cross: "cross" };
/** The measures of rows. `ifZero`: what a value of 0 everywhere means; shares are shown in percent. */
const MEASURES = {
  sparsity: { title: "Sparsity: share of visible weights that are exactly 0", isPercent: true, ceiling: 1, ifZero: "no weight is exactly 0" },
  null_rate: { title: "Null rate: share of queries that attend to nothing", isPercent: true, ifZero: "every query attends to something (null rate 0\u00a0%)" },
  entropy: { title: "Entropy in nats of rows that are not null" },
  support: { title: "Support: keys with a weight, per query" },
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
  for (const [key, { isPercent }] of Object.entries(MEASURES)) {
    for (const site of SITES) {
      const values = models.map((model) => mean(placesOf(model, site).map((place) => place[key])));
      if (values.some(isNumber)) rows.push([`${key.replace("_", " ")}, ${SITE_NAMES[site]}`, ...values.map((value) => shown(value, isPercent))]);
    }
  }
  const hasAlignment = models.some((model) => model.alignment);
  for (const step of hasAlignment ? ["normal", "shifted"] : []) {
    const best = models.map((model) => bestAlignment(model, step));
    rows.push([`best AER, ${step}`, ...best.map((one) => one && `${shown(one.aer, true)} (${one.layer}/${one.head})`)]);
  }
  const caption = "Means over layers" + (hasAlignment ? "; alignment error rate (AER) of the best single head (layer/head)." : ".");
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

function writeLayers() {
  const into = section("layers");
  const shuffled = models.some((model) => model.places.some((place) => place.shuffled));
  into.append(make("p", { class: "soft" }, "Lines: all heads of a layer; dots: single heads." + (shuffled ? " Dashed: the same sources with references shuffled." : "")), modelLegend());
  let isFull = false;
  for (const [key, { title, ...scale }] of Object.entries(MEASURES)) {
    isFull = writeCharts(into, title, SITES.map((site) => ({
      title: SITE_NAMES[site], xNames: layerNames(mostLayers(site)), series: measureSeries(key, site),
    })), { floor: 0, ...scale }) || isFull;
  }
  const names = new Set(models.flatMap((model) => model.places.flatMap((place) => Object.keys(place.numbers ?? {}))));
  for (const name of names) isFull = writeNumbers(into, name) || isFull;
  if (!isFull) hide("layers");
}

function writeNumbers(into, name) {
  return writeCharts(into, `Learned ${name}`, SITES.map((site) => ({
    title: SITE_NAMES[site], xNames: layerNames(mostLayers(site)),
    series: models.map((model, m) => {
      const heads = placesOf(model, site).map((place) => place.numbers?.[name] ?? []);
      return { name: model.name, style: m, values: heads.map(mean), dots: heads };
    }),
  })), { isPercent: name === "gate" });
}

// --- alignment ---

const STEPS = { normal: "the step that predicts a word", shifted: "the step that reads it" };

function writeAlignment() {
  const aligned = models.map((model, m) => ({ model, m })).filter(({ model }) => model.alignment);
  if (!aligned.length) return hide("alignment");
  const into = section("alignment");
  into.append(make("p", { class: "soft" }, `Alignment error rate of cross attention's weights, lower is better, on ${aligned[0].model.alignment.sentences} sentences, with bootstrap 95 % intervals. `
    + "Solid: the best head of a layer. Dashed: the average of its heads."));
  const both = (m, name) => [{ name: `${name}, best head`, style: m }, { name: `${name}, average of heads`, style: m, isDashed: true }];
  into.append(legend(aligned.flatMap(({ model, m }) => both(m, model.name))));
  writeCharts(into, "", Object.entries(STEPS).map(([step, title]) => ({
    title: `${step}: ${title}`, xNames: layerNames(mostLayers("cross")),
    series: aligned.flatMap(({ model, m }) => {
      const layers = model.alignment.layers.map((layer) => layer[step]), [best, average] = both(m, model.name);
      const of = (line, systems) => ({ ...line, values: systems.map((one) => one.aer), spread: systems.map((one) => one.interval) });
      return [of(best, layers.map((layer) => layer.heads[layer.best_head])), of(average, layers.map((layer) => layer.average))];
    }),
  })), { isPercent: true });
}

// --- diversity ---

/** Charts of all models for each temperature at which rectified rows are compared; rows that sum to one are in each of them, as they are. */
function writeDiversity() {
  const found = models.flatMap((model) => model.places.flatMap((place) => Object.keys(place.diversity ?? {})));
  if (!found.length) return hide("diversity");
  const into = section("diversity"), temperatures = [...new Set(found)].filter((key) => key !== "as_is").sort((a, b) => b - a);
  into.append(make("p", { class: "soft" }, "Generalized Jensen-Shannon divergence between a layer's heads, in nats: 0 if all attend alike."
    + (temperatures.length ? " Rectified rows p are compared as softmax(T p), rows that sum to one as they are." : "")), modelLegend());
  const write = (target, key) => writeCharts(target, key ? `T = ${Number(key)}` : "", SITES.map((site) => ({
    title: SITE_NAMES[site], xNames: layerNames(mostLayers(site)),
    series: models.map((model, m) => ({ name: model.name, style: m, values: placesOf(model, site).map((place) => place.diversity?.as_is ?? place.diversity?.[key]) })),
  })), { floor: 0 });
  write(into, temperatures[0]);
  if (temperatures.length < 2) return;
  const others = make("details", {}, make("summary", {}, `Other temperatures: T = ${listed(temperatures.slice(1).map(Number))}`));
  temperatures.slice(1).forEach((key) => write(others, key));
  into.append(others);
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
  into.append(make("p", { class: "soft" }, "How far calibration moves attention."), legend(series));
  writeCharts(into, "Jensen-Shannon divergence, nats", [
    { title: "by layer", xNames, series },
    { title: "by entropy of the original", xNames: bins, xLabel: "entropy from, nats", series: entropySeries(bins) },
  ], { floor: 0 });
  writeCharts(into, "Change of entropy, nats (+ disperses)", [{ title: "by layer", xNames, series: calibrationSeries((one) => one.entropy_change) }], { floor: 0 });
  writeCharts(into, "Mean mask", [{ title: "by layer", xNames, series: calibrationSeries((one) => one.mask) }], { floor: 0, ceiling: 1 });
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
  writeCharts(into, "", [{ title: "Kendall's τ-b", xNames: layerNames(mostLayers("cross")), series }], { floor: 0 });
}

writeHeader();
writeOverview();
writeLayers();
writeAlignment();
writeDiversity();
writeCalibration();
writeImportance();
for (const link of document.querySelectorAll("nav a")) if (!document.querySelector(link.getAttribute("href"))) link.remove();
