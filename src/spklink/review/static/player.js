// The recording that is being looked at: its waveform, what is heard of it, and comparing voices.
// Sound and pictures come by the number of a conversation; two audio elements outlive every swap.
"use strict";

const base = document.body.dataset.base;
const sound = document.getElementById("sound");
const other = document.getElementById("other");
const byId = (id) => document.getElementById(id);
const outlines = new Map();

const player = { m: null, tracks: 0, solo: 0, muted: new Set(), wave: null, region: null, looping: false, outline: null, zoom: 0 };

function clock(seconds) {
  if (!Number.isFinite(seconds)) return "";
  const rest = seconds % 60, minutes = Math.floor(seconds / 60) % 60, hours = Math.floor(seconds / 3600);
  const tail = `${String(minutes).padStart(hours ? 2 : 1, "0")}:${rest.toFixed(1).padStart(4, "0")}`;
  return hours ? `${hours}:${tail}` : tail;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

async function outlineOf(m) {
  if (!outlines.has(m)) {
    const answer = await fetch(`${base}/outline/${m}`);
    if (!answer.ok) throw new Error("no outline");
    if (outlines.size > 50) outlines.delete(outlines.keys().next().value);
    outlines.set(m, await answer.json());
  }
  return outlines.get(m);
}

// --- what is heard ------------------------------------------------------------------------------

function heardTracks() {
  if (player.solo) return [player.solo];
  const heard = [];
  for (let k = 1; k <= player.tracks; k++) if (!player.muted.has(k)) heard.push(k);
  return heard;
}

function source(m, tracks) {
  return new URL(`${base}/sound/${m}/${tracks.length ? tracks.join("-") : "all"}.wav`, location.href).href;
}

// Another mix of the same recording is another file: on from the same place.
function listenTo(tracks) {
  const url = source(player.m, tracks);
  sound.muted = tracks.length === 0;
  if (sound.src !== url) {
    const at = player.m === Number(sound.dataset.m) ? sound.currentTime : 0;
    const playing = !sound.paused && player.m === Number(sound.dataset.m), rate = sound.playbackRate;
    sound.dataset.m = player.m;
    sound.src = url;
    sound.currentTime = at;
    sound.defaultPlaybackRate = sound.playbackRate = rate;
    if (playing) sound.play().catch(() => {});
  }
  showSwitches();
}

function showSwitches() {
  for (const button of document.querySelectorAll("[data-solo]"))
    button.setAttribute("aria-pressed", String(Number(button.dataset.solo) === player.solo));
  for (const button of document.querySelectorAll("[data-mute]"))
    button.setAttribute("aria-pressed", String(player.muted.has(Number(button.dataset.mute))));
  const heard = heardTracks();
  for (const head of document.querySelectorAll(".heads li"))
    head.classList.toggle("silent", !heard.includes(Number(head.dataset.track)));
}

function solo(track) {
  if (track > player.tracks) return;
  player.solo = player.solo === track ? 0 : track;
  listenTo(heardTracks());
  say(player.solo ? `track ${track} alone` : "all tracks");
}

function mute(track) {
  if (track > player.tracks) return;
  player.solo = 0;
  if (!player.muted.delete(track)) player.muted.add(track);
  listenTo(heardTracks());
}

function togglePlay() {
  stopComparing();
  if (!player.m && player.m !== 0 || byId("play")?.disabled) return;
  if (sound.paused) sound.play().catch(() => say("the browser does not play this recording"));
  else sound.pause();
}

function seek(seconds) {
  sound.currentTime = Math.max(0, Math.min(seconds, (sound.duration || seconds) - 0.05));
  showPlace();
}

function speed(step) {
  const choice = byId("speed");
  if (!choice) return;
  choice.selectedIndex = Math.max(0, Math.min(choice.options.length - 1, choice.selectedIndex + step));
  setSpeed();
}

function setSpeed() {
  const rate = Number(byId("speed").value);
  for (const one of [sound, other]) one.defaultPlaybackRate = one.playbackRate = rate;
}

// --- regions ------------------------------------------------------------------------------------

function stretchHere(next) {
  const own = (player.outline?.speech || []).filter((_, k) => heardTracks().includes(k + 1)).flat();
  own.sort((a, b) => a[0] - b[0]);
  const at = sound.currentTime;
  if (next) return own.find(([from]) => from > at + 0.05);
  return own.find(([from, to]) => from <= at && at < to) || own.find(([from]) => from >= at);
}

function setRegion(start, end) {
  if (!player.wave) return;
  player.region?.remove();
  player.region = player.regions.addRegion({ start, end, color: "rgb(128 128 128 / .22)" });
}

function toggleLoop() {
  if (!player.region) {
    const stretch = stretchHere(false);
    if (!stretch) return;
    setRegion(...stretch);
    player.looping = false;
  }
  player.looping = !player.looping;
  if (player.looping) seek(player.region.start);
  byId("loop")?.setAttribute("aria-pressed", String(player.looping));
}

function endRegion() {
  player.region?.remove();
  player.region = null;
  player.looping = false;
  byId("loop")?.setAttribute("aria-pressed", "false");
}

function moveEdge(edge) {
  const at = sound.currentTime, long = sound.duration || at + 5;
  const start = edge === "start" ? at : player.region?.start ?? Math.max(0, at - 5);
  const end = edge === "end" ? at : player.region?.end ?? Math.min(long, at + 5);
  if (end > start + 0.05) setRegion(start, end);
}

// --- the waveform -------------------------------------------------------------------------------

const STRIP = 76; // pixels a track, as in page.css

function strips(count) {
  return Array.from({ length: count }, (_, k) => ({
    height: STRIP, overlay: false, waveColor: colour("--wave"), progressColor: colour(HUES[k % HUES.length]),
  }));
}

const HUES = ["--blue", "--amber", "--green", "--red", "--sky"];
const LANE = 16; // pixels for who has the turn

// Who has the turn in the colour of the track they are said to be on; of people of whom nothing is
// said, in the order of the list and in other colours.
function turnColours() {
  const on = [...document.querySelectorAll(".heads .person .name")].map((one) => one.textContent);
  const listed = [...document.querySelectorAll(".listed .name")].map((one) => one.textContent);
  const colours = new Map(on.map((who, k) => [who, HUES[k % HUES.length]]));
  listed.forEach((who, k) => { if (!colours.has(who)) colours.set(who, on.length ? "--muted" : HUES[(k + 2) % HUES.length]); });
  return colours;
}

function marks(outline) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const strips = STRIP * outline.levels.length, tall = strips + (outline.turns.length ? LANE : 0);
  svg.setAttribute("viewBox", `0 0 ${outline.seconds} ${tall}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  Object.assign(svg.style, { position: "absolute", left: 0, top: 0, width: "100%", height: `${tall}px`, zIndex: 3, pointerEvents: "none" });
  outline.speech.forEach((stretches, k) => svg.append(bars(stretches, STRIP * (k + 1) - 6, 4, "var(--speech)")));
  const colours = turnColours();
  for (const who of new Set(outline.turns.map(([one]) => one))) {
    const own = outline.turns.filter(([one]) => one === who).map(([, from, to]) => [from, to]);
    svg.append(bars(own, strips + 4, 8, `var(${colours.get(who) || "--muted"})`));
  }
  return svg;
}

function drawMarks() {
  const outline = player.outline, wrapper = player.wave?.getWrapper();
  if (!wrapper || !outline) return;
  wrapper.querySelector(":scope > svg")?.remove();
  wrapper.append(marks(outline));
  wrapper.style.paddingBottom = outline.turns.length ? `${LANE}px` : "";
  const lane = document.querySelector(".heads .turns");
  if (lane) lane.hidden = !outline.turns.length;
}

function bars(stretches, top, height, fill) {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", stretches.map(([from, to]) => `M${from} ${top}H${to}V${top + height}H${from}Z`).join(""));
  path.setAttribute("fill", fill);
  return path;
}

async function drawWave(m) {
  const place = byId(`wave-${m}`);
  if (!place || place.dataset.drawn) return;
  place.dataset.drawn = "1";
  let outline;
  try {
    outline = await outlineOf(m);
  } catch {
    outline = { problem: "it could not be drawn" };
  }
  if (!place.isConnected || player.m !== m) return;
  place.replaceChildren();
  showRemarks(outline);
  if (outline.problem || !outline.levels?.length) return;
  player.outline = outline;
  player.wave?.destroy();
  player.wave = WaveSurfer.create({
    container: place, media: sound, url: sound.src, duration: outline.seconds,
    peaks: outline.levels.map((own) => own.map((level) => level / 255)),
    splitChannels: strips(outline.levels.length), height: STRIP, barWidth: 2, barGap: 1, barRadius: 1,
    cursorColor: colour("--ink"), cursorWidth: 1, cspNonce: document.body.dataset.nonce, autoScroll: true,
  });
  player.regions = player.wave.registerPlugin(WaveSurfer.Regions.create());
  player.regions.enableDragSelection({ color: "rgb(128 128 128 / .22)" });
  player.regions.on("region-created", (region) => {
    if (player.region && player.region !== region) player.region.remove();
    player.region = region;
  });
  player.region = null;
  player.looping = false;
  player.wave.on("ready", () => {
    drawMarks();
    place.dataset.ready = "1";
  });
}

function showRemarks(outline) {
  const list = byId("remarks");
  if (!list) return;
  const said = outline.problem ? [outline.problem] : outline.problems || [];
  list.replaceChildren(...said.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

function zoom(factor) {
  if (!player.wave || !player.outline) return;
  const whole = player.wave.getWidth() / player.outline.seconds;
  player.zoom = Math.max(whole, Math.min(400, (player.zoom || whole) * factor));
  player.wave.zoom(player.zoom <= whole * 1.01 ? 0 : player.zoom);
}

// --- comparing ----------------------------------------------------------------------------------

const AT_ONCE = 5; // seconds of one voice before the other's
let comparing = null;

function clips(outline, track) {
  const own = (outline.speech?.[track - 1] || []).filter(([from, to]) => to - from >= 0.8);
  const longest = [...own].sort((a, b) => b[1] - b[0] - (a[1] - a[0])).slice(0, 8);
  return longest.sort((a, b) => a[0] - b[0]).map(([from, to]) => [from, Math.min(to, from + AT_ONCE)]);
}

async function compareWith(row) {
  const again = comparing?.row === row;
  stopComparing();
  if (again || !row) return;
  const there = Number(row.dataset.m), theirs = Number(row.dataset.track), mine = player.solo || 1;
  const here = player.m;
  const run = (comparing = { row, turn: 0, timer: 0, sides: [] });
  row.querySelector(".compare").setAttribute("aria-pressed", "true");
  row.classList.add("chosen");
  tellComparing("getting ready …");
  try {
    const [ours, others] = await Promise.all([outlineOf(here), outlineOf(there)]);
    if (comparing !== run) return;
    const label = document.querySelector(`.heads li[data-track="${mine}"] kbd`)?.textContent || mine;
    const where = row.querySelector("td").textContent.trim();
    run.sides = [
      { audio: sound, url: source(here, [mine]), clips: clips(ours, mine), says: `this conversation, track ${label}` },
      { audio: other, url: source(there, [theirs]), clips: clips(others, theirs), says: `${where}, track ${row.dataset.label}` },
    ];
  } catch {
    run.sides = [];
  }
  if (run.sides.length < 2 || run.sides.some((one) => !one.clips.length)) {
    stopComparing();
    say("there is no speech to compare");
    return;
  }
  sound.pause();
  player.solo = mine;
  listenTo([mine]);
  if (other.src !== run.sides[1].url) other.src = run.sides[1].url;
  other.playbackRate = sound.playbackRate;
  nextClip(run);
}

function nextClip(run) {
  if (comparing !== run) return;
  const side = run.sides[run.turn % 2];
  const [from, to] = side.clips[Math.floor(run.turn / 2) % side.clips.length];
  tellComparing(`now: ${side.says}`);
  side.audio.currentTime = from;
  side.audio.play().catch(() => stopComparing());
  const watch = () => {
    if (comparing !== run) return;
    if (side.audio.currentTime >= to || side.audio.ended) {
      side.audio.pause();
      run.turn += 1;
      run.timer = setTimeout(nextClip, 300, run);
    } else run.timer = setTimeout(watch, 40);
  };
  run.timer = setTimeout(watch, 40);
}

function tellComparing(text) {
  const box = byId("comparing");
  if (!box) return;
  box.hidden = !text;
  box.textContent = text ? `Comparing, ${text}` : "";
}

function stopComparing() {
  if (!comparing) return;
  clearTimeout(comparing.timer);
  comparing.row.querySelector(".compare")?.setAttribute("aria-pressed", "false");
  comparing = null;
  sound.pause();
  other.pause();
  tellComparing("");
}

// --- as it plays --------------------------------------------------------------------------------

function showPlace() {
  const at = byId("clock"), seeker = byId("seek"), long = byId("length");
  if (at) at.textContent = clock(sound.currentTime);
  if (long && Number.isFinite(sound.duration)) long.textContent = clock(sound.duration);
  if (seeker && sound.duration && document.activeElement !== seeker) seeker.value = Math.round((1000 * sound.currentTime) / sound.duration);
  if (seeker) seeker.setAttribute("aria-valuetext", clock(sound.currentTime));
}

function keepLoop() {
  if (player.looping && player.region && !sound.paused && !comparing &&
      (sound.currentTime >= player.region.end || sound.currentTime < player.region.start - 0.2))
    sound.currentTime = player.region.start;
}

for (const event of ["timeupdate", "loadedmetadata", "seeked"]) sound.addEventListener(event, () => { keepLoop(); showPlace(); });
setInterval(keepLoop, 40);
for (const event of ["play", "pause", "ended"])
  sound.addEventListener(event, () => {
    const label = document.querySelector("#play .label");
    if (label) label.textContent = sound.paused ? "Play" : "Stop";
  });
sound.addEventListener("error", () => {
  if (sound.getAttribute("src")) say("the recording cannot be played");
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  player.wave?.setOptions({ splitChannels: strips(player.outline.levels.length), cursorColor: colour("--ink") });
});

function attend() {
  const article = document.querySelector("article[data-m]");
  if (!article) return;
  const m = Number(article.dataset.m);
  if (m !== player.m) {
    stopComparing();
    sound.pause();
    player.wave?.destroy();
    Object.assign(player, { m, tracks: Number(article.dataset.tracks), solo: 0, wave: null, region: null, looping: false, outline: null, zoom: 0 });
    player.muted.clear();
    if (article.dataset.playable === "1") {
      listenTo(heardTracks());
      drawWave(m);
    } else {
      sound.removeAttribute("src");
      sound.load();
      delete sound.dataset.m;
    }
  } else if (player.outline) {
    showRemarks(player.outline);
    drawMarks();
  }
  const choice = byId("speed");
  if (choice) choice.value = String(sound.playbackRate);
  byId("loop")?.setAttribute("aria-pressed", String(player.looping));
  const label = document.querySelector("#play .label");
  if (label) label.textContent = sound.paused ? "Play" : "Stop";
  showSwitches();
  showPlace();
}
