
const at = id => document.getElementById(id);
const source = at("source"), target = at("target"), mirror = at("mirror"), pair = at("pair"), state = at("status");
const PAUSE_MS = 400;  // after the last key
let work = null, timer = 0, lines = [];

const element = (name, kind, text) => {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
};

/** Appends the text to a parent, each of its words in a span; returns the spans. */
function appendWords(parent, text) {
  const words = [];
  for (const part of text.split(/(\s+)/)) {
    if (!part) continue;
    if (/^\s/.test(part)) { parent.append(part); continue; }
    words.push(parent.appendChild(element("span", "", part)));
  }
  return words;
}

function say(text, isError) {
  state.textContent = text;
  state.classList.toggle("error", Boolean(isError));
}

function count() {
  const number = [...source.value].length, most = Number(source.dataset.most);
  at("count").textContent = `${number} of ${most} characters`;
  at("count").classList.toggle("error", number > most);
}

/** Sends lines to the service; calls back with each of its answers as it comes. */
async function ask(texts, settings, onAnswer, signal) {
  const [src, tgt] = pair.value.split("|");
  const headers = {"Content-Type": "application/x-ndjson"};
  if (at("key").value) headers.Authorization = `Bearer ${at("key").value}`;
  const query = new URLSearchParams({source: src, target: tgt, ...settings});
  const body = texts.map(text => JSON.stringify({text}) + "\n").join("");
  const answer = await fetch(`/v1/translate?${query}`, {method: "POST", headers, body, signal});
  if (!answer.ok) throw new Error((await answer.json()).error);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", number = 0;
  for (;;) {
    const {value, done} = await reader.read();
    if (done) break;
    const whole = (rest + value).split("\n");
    rest = whole.pop();
    for (const text of whole) {
      const result = JSON.parse(text);
      if (result.error) throw new Error(result.error);
      onAnswer(number++, result);
    }
  }
}

function clearLinks() {
  for (const word of document.querySelectorAll(".linked")) word.classList.remove("linked");
}

/** Marks a word of a side (0 = source) and those it is linked with. */
function showLinks(line, side, index) {
  clearLinks();
  const words = [line.srcWords, line.tgtWords];
  for (const link of line.links)
    if (link[side] === index) words[1 - side][link[1 - side]]?.classList.add("linked");
  words[side][index]?.classList.add("linked");
}

function showTranslation(line, result) {
  line.box.textContent = "";
  line.box.classList.remove("waits", "high", "middle", "low");
  const sure = Math.exp(Math.min(0, result.score));
  line.box.classList.add(sure > .7 ? "high" : sure > .4 ? "middle" : "low");
  line.box.title = `score ${result.score.toFixed(3)}${result.truncated ? "; ends where it met a limit" : ""}`;
  line.text = result.translation;
  line.tgtWords = appendWords(line.box, result.translation);
  line.links = (result.alignment || "").split(" ").filter(Boolean).map(link => link.split("-").map(Number));
  line.tgtWords.forEach((word, i) => word.addEventListener("mouseenter", () => { line.word = i; showLinks(line, 1, i); }));
}

function closePanels() {
  for (const panel of target.querySelectorAll(".panel")) panel.remove();
}

const mostTranslations = () => Math.min(5, Number(pair.selectedOptions[0].dataset.beam));

/** Appends a button that calls `act` when it is chosen. */
function addButton(parent, kind, text, act) {
  const button = parent.appendChild(element("button", kind, text));
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

/** Opens what there is to a line under it: other translations, of which one that is chosen takes its place, and its attention. */
async function openPanel(line) {
  const isOpen = line.box.nextElementSibling?.className === "panel";
  closePanels();
  if (isOpen || !line.text) return;
  const panel = element("div", "panel"), list = panel.appendChild(element("ul", "others"));
  list.setAttribute("aria-label", "Other translations");
  const see = addButton(panel, "see", "Attention", () => openAttention(line, panel, see));
  line.box.after(panel);
  try {
    if (mostTranslations() > 1)
      await ask([line.source], {n_best: mostTranslations(), alignment: "word"}, (_, result) => {
        for (const one of result.translations) {
          const button = addButton(list.appendChild(element("li")), "", one.translation + " ", () => { showTranslation(line, one); closePanels(); line.box.focus(); });
          button.append(element("span", "score", one.score.toFixed(2)));
        }
      });
    panel.querySelector("button").focus();
  } catch (error) {
    panel.remove();
    say(error.message, true);
  }
}

/** The mean of matrices of one size. */
function meanOf(matrices) {
  return matrices[0].map((row, r) => row.map((_, c) => matrices.reduce((sum, matrix) => sum + matrix[r][c], 0) / matrices.length));
}

/** Appends a choice of [value, name], whose first is chosen. */
function addChoice(parent, name, options, changed) {
  const label = parent.appendChild(element("label", "", `${name} `)), select = label.appendChild(element("select"));
  for (const [value, text] of options) select.append(new Option(text, value));
  select.addEventListener("change", changed);
  return select;
}

/** Shows the cross attention of a line's translation, a sentence at a time. */
function showAttention(panel, sentences) {
  const box = panel.appendChild(element("div", "attention")), controls = box.appendChild(element("div", "controls"));
  box.append(element("div", "map"), element("p", "value"),
    element("p", "soft", "A square's area is the weight, beside the largest of the map; an empty cell is exactly 0. Point at a cell, or focus the map and use the arrow keys."));
  box.querySelector(".value").setAttribute("aria-live", "polite");
  const {weights} = sentences[0], usual = Math.max(0, weights.length - 2);  // the layer that links are taken from
  const numbered = (count, word) => Array.from({length: count}, (_, i) => [i, `${word}${i}`]);
  const draw = () => {
    const sentence = sentences[Number(of.value)], heads = sentence.weights[Number(layer.value)];
    const matrix = head.value === "mean" ? meanOf(heads) : heads[Number(head.value)];
    drawMap(box, {matrix, rowNames: sentence.target, columnNames: sentence.source, isSum: true, gold: []},
      {rows: "translation", columns: "source", rowWord: "translating", columnWord: "source"}, () => {});
  };
  const names = sentences.map((one, i) => [i, cut(one.source.join(" "), 30)]);
  const of = addChoice(controls, "Sentence", names, draw);
  of.parentElement.hidden = sentences.length < 2;
  const layer = addChoice(controls, "Layer", numbered(weights.length, ""), draw);
  const head = addChoice(controls, "Head", [["mean", "mean of all"], ...numbered(weights[0].length, "")], draw);
  layer.value = String(usual);
  draw();
  box.querySelector(".map svg").focus();
}

/** Asks for the attention of a line's translation, and shows it; a second time closes it. */
async function openAttention(line, panel, button) {
  const open = panel.querySelector(".attention");
  button.setAttribute("aria-expanded", String(!open));
  if (open) return open.remove();
  button.disabled = true;
  try {
    await ask([line.source], {n_best: mostTranslations(), attention: "true"}, (_, result) => {
      const chosen = result.translations.find(one => one.translation === line.text) || result.translations[0];
      const sentences = chosen.attention.filter(one => one && one.target.length);
      if (sentences.length) showAttention(panel, sentences);
      else panel.append(element("p", "attention soft", "This line is too long for its attention to be shown."));
    });
  } catch (error) {
    say(error.message, true);
  }
  button.disabled = false;
}

function onLineKey(event, line) {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (step) {
    line.word = Math.max(0, Math.min(line.tgtWords.length - 1, line.word + step));
    showLinks(line, 1, line.word);
  } else if (event.key === "Enter" || event.key === " ") {
    openPanel(line);
  } else {
    return;
  }
  event.preventDefault();
}

function lineFor(text, begin, former) {
  const line = {source: text, begin, links: [], srcWords: appendWords(mirror, text), tgtWords: [], word: -1, text: ""};
  line.box = target.appendChild(element("div", text.trim() ? "line waits" : "line blank", former || "\u00a0"));
  if (!text.trim()) return line;
  line.box.tabIndex = 0;
  line.box.addEventListener("click", () => openPanel(line));
  line.box.addEventListener("keydown", event => onLineKey(event, line));
  line.box.addEventListener("mouseleave", clearLinks);
  line.box.addEventListener("blur", clearLinks);
  return line;
}

/** Lays the source text under the field where it is written, so that its words can be marked. */
function layOut() {
  const former = lines.map(line => line.text);
  mirror.textContent = target.textContent = "";
  let begin = 0;
  lines = source.value.split("\n").map((text, i) => {
    if (i) mirror.append("\n");
    const line = lineFor(text, begin, former[i]);
    begin += text.length + 1;
    return line;
  });
  mirror.append("\n");
  if (!source.value) target.textContent = "";
}

async function translate() {
  clearTimeout(timer);
  work?.abort();
  work = new AbortController();
  const {signal} = work;
  layOut();
  const full = lines.filter(line => line.source.trim());
  at("copy").hidden = at("help").hidden = !full.length;
  if (!full.length) return say("");
  say("translating …");
  try {
    await ask(full.map(line => line.source), {alignment: "word"}, (i, result) => showTranslation(full[i], result), signal);
    say("");
  } catch (error) {
    if (error.name !== "AbortError") say(error.message, true);
  }
}

function onCaret() {
  if (document.activeElement !== source) return;
  const line = lines.findLast(one => one.begin <= source.selectionStart);
  if (!line || !line.links.length) return;
  const before = line.source.slice(0, source.selectionStart - line.begin + 1).split(/\s+/).filter(Boolean);
  showLinks(line, 0, before.length - 1);
}

at("send").hidden = true;
at("form").addEventListener("submit", event => { event.preventDefault(); translate(); });
source.addEventListener("input", () => { count(); layOut(); clearTimeout(timer); timer = setTimeout(translate, PAUSE_MS); });
source.addEventListener("blur", clearLinks);
source.addEventListener("keydown", event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate(); });
document.addEventListener("selectionchange", onCaret);
document.addEventListener("keydown", event => { if (event.key === "Escape") { closePanels(); clearLinks(); } });
pair.addEventListener("change", translate);
at("key").addEventListener("change", translate);
at("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(lines.map(line => line.text).join("\n"));
  say("copied");
});
count();
source.focus();
if (source.value.trim()) translate();
