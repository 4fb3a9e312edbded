
"use strict";
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

function closeOthers() {
  for (const list of target.querySelectorAll(".others")) list.remove();
}

/** Shows other translations of a line under it; one that is chosen takes its place. */
async function openOthers(line) {
  const isOpen = line.box.nextElementSibling?.className === "others";
  closeOthers();
  const most = Math.min(5, Number(pair.selectedOptions[0].dataset.beam));
  if (isOpen || !line.text || most < 2) return;
  const list = element("ul", "others");
  list.setAttribute("aria-label", "Other translations");
  line.box.after(list);
  try {
    await ask([line.source], {n_best: most, alignment: "word"}, (_, result) => {
      for (const one of result.translations) {
        const button = element("button", "", one.translation + " ");
        button.type = "button";
        button.append(element("span", "score", one.score.toFixed(2)));
        button.addEventListener("click", () => { showTranslation(line, one); closeOthers(); line.box.focus(); });
        list.appendChild(element("li")).append(button);
      }
      list.querySelector("button")?.focus();
    });
  } catch (error) {
    list.remove();
    say(error.message, true);
  }
}

function onLineKey(event, line) {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (step) {
    line.word = Math.max(0, Math.min(line.tgtWords.length - 1, line.word + step));
    showLinks(line, 1, line.word);
  } else if (event.key === "Enter" || event.key === " ") {
    openOthers(line);
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
  line.box.addEventListener("click", () => openOthers(line));
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
document.addEventListener("keydown", event => { if (event.key === "Escape") { closeOthers(); clearLinks(); } });
pair.addEventListener("change", translate);
at("key").addEventListener("change", translate);
at("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(lines.map(line => line.text).join("\n"));
  say("copied");
});
count();
source.focus();
if (source.value.trim()) translate();
