// Keys, buttons and swaps. Everything a key does a button does too.
"use strict";

let silence = 0;

function say(text) {
  const told = byId("told");
  told.textContent = text;
  told.classList.add("shown");
  clearTimeout(silence);
  silence = setTimeout(() => told.classList.remove("shown"), 4000);
}

function goTo(url) {
  htmx.ajax("GET", url, { target: "#conversation", swap: "innerHTML show:window:top" });
}

function press(key) {
  const button = document.querySelector(`.decide [data-key="${key}"]`);
  if (button && !button.disabled) button.click();
  return Boolean(button);
}

function someoneElse() {
  if (player.solo) press(`n${player.solo}`);
  else if (player.tracks === 1) press("n1");
  else say("first the number of the track, then n: someone else is there");
}

function neighbours() {
  return [...document.querySelectorAll(".neighbour")];
}

function chosen() {
  return document.querySelector(".neighbour.chosen") || neighbours()[0];
}

function chooseNext() {
  const all = neighbours();
  if (!all.length) return;
  const now = all.indexOf(chosen());
  const was = document.querySelector(".neighbour.chosen");
  const next = was ? all[(now + 1) % all.length] : all[0];
  was?.classList.remove("chosen");
  next.classList.add("chosen");
  next.scrollIntoView({ block: "nearest" });
  const busy = comparing;
  if (busy) compareWith(next);
  else say(`chosen: ${next.querySelector("td").textContent.trim()}, track ${next.dataset.label}`);
}

const KEYS = {
  " ": togglePlay,
  0: () => { player.solo = 0; player.muted.clear(); listenTo(heardTracks()); },
  ArrowLeft: () => seek(sound.currentTime - 5),
  ArrowRight: () => seek(sound.currentTime + 5),
  t: () => { const next = stretchHere(true); if (next) seek(next[0]); },
  l: toggleLoop,
  "[": () => moveEdge("start"),
  "]": () => moveEdge("end"),
  ",": () => speed(-1),
  ".": () => speed(1),
  "+": () => zoom(2),
  "=": () => zoom(2),
  "-": () => zoom(0.5),
  c: () => compareWith(chosen()),
  v: chooseNext,
  a: () => press("a"),
  s: () => press("s"),
  u: () => press("u"),
  n: someoneElse,
  z: () => press("z") || say("there is nothing of yours to undo here"),
  w: () => byId("why")?.focus(),
  j: () => byId("next")?.click(),
  Enter: () => byId("next")?.click(),
  f: () => { byId("queue-fold").open = true; byId("find").focus(); },
  "?": () => byId("help").showModal(),
  Escape: () => { stopComparing(); endRegion(); },
};

const TYPED = "input:not([type=range]):not([type=checkbox]), textarea, select";
const PRESSED = "button, a, summary, select, input[type=checkbox]";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const on = event.target;
  if (on.matches?.(TYPED)) {
    if (event.key === "Escape") on.blur();
    return;
  }
  if (byId("help").open) return;
  if ((event.key === " " || event.key === "Enter") && on.matches?.(PRESSED)) return;
  if (event.key.startsWith("Arrow") && on.matches?.("input[type=range]")) return;
  if (!byId("keys-on").checked && event.key !== "Escape") return;
  const digit = /^Digit([1-9])$/.exec(event.code || "");
  if (event.repeat && !event.key.startsWith("Arrow")) return;
  if (digit && event.shiftKey) mute(Number(digit[1]));
  else if (/^[1-9]$/.test(event.key)) solo(Number(event.key));
  else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
  else return;
  event.preventDefault();
});

// A button of the decision says what it stands for before its form is sent.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button[data-verdict]");
  if (button) {
    const form = button.form;
    form.elements.verdict.value = button.dataset.verdict;
    form.elements.seats.value = button.dataset.key === "each"
      ? [...form.querySelectorAll("[data-seat]")].map((one) => one.value).join(" ")
      : button.dataset.seats;
    return;
  }
  const link = event.target.closest?.("a[data-m]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    goTo(link.getAttribute("href"));
    return;
  }
  const on = event.target.closest?.("button");
  if (!on) return;
  if (on.id === "play") togglePlay();
  else if (on.id === "loop") toggleLoop();
  else if (on.classList.contains("unfold")) {
    const open = on.getAttribute("aria-expanded") !== "true";
    on.setAttribute("aria-expanded", String(open));
    for (const row of on.closest("tbody").querySelectorAll(".weak")) row.hidden = !open;
  }
  else if (on.id === "ask-help") byId("help").showModal();
  else if (on.dataset.solo) solo(Number(on.dataset.solo));
  else if (on.dataset.mute) mute(Number(on.dataset.mute));
  else if (on.classList.contains("compare")) {
    for (const row of neighbours()) row.classList.remove("chosen");
    compareWith(on.closest("tr"));
  }
});

// Enter in the field for the reason must not send whatever button happens to be the first.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.id === "why") { event.preventDefault(); event.target.blur(); }
});

document.addEventListener("input", (event) => {
  if (event.target.id === "seek" && sound.duration) seek((event.target.value / 1000) * sound.duration);
});
document.addEventListener("change", (event) => {
  if (event.target.id === "speed") { setSpeed(); event.target.blur(); }
  if (event.target.id === "keys-on") localStorage.setItem("single keys", event.target.checked ? "on" : "off");
});

function showWhere() {
  const m = document.querySelector("article[data-m]")?.dataset.m;
  for (const link of document.querySelectorAll("#queue a[data-m]"))
    if (link.dataset.m === m) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
}

document.body.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.elt.id === "news" && player.m !== null) event.detail.parameters.m = player.m;
});
document.body.addEventListener("htmx:afterSettle", () => { attend(); showWhere(); });
document.body.addEventListener("htmx:responseError", (event) => say(event.detail.xhr.responseText.slice(0, 300) || "that did not work"));
document.body.addEventListener("htmx:sendError", () => {
  if (!document.hidden) say("no answer: is spklink review still running?");
});

byId("keys-on").checked = localStorage.getItem("single keys") !== "off";
if (matchMedia("(max-width: 900px)").matches) byId("queue-fold").open = false;
attend();
showWhere();
