import { openFile, openMicrophone } from "./audio.js";
import { cues, srt, vtt } from "./subtitles.js";

const UNSENT_BYTES = 256 * 1024; // above it a fast file waits for the network
const count = (n, noun) => `${n} ${noun}${Number(n) === 1 ? "" : "s"}`;
const UNITS = {
  hold_n: (n) => `${count(n, "token")} held back`,
  align_att_f: (n) => `${count(n, "frame")} held back`,
  la_n: (n) => `${n} searches agree`,
  wait_k: (n) => `${count(n, "interval")} behind`,
  ctc_wait: (n) => `${count(n, "token")} behind`,
};

const find = (id) => document.getElementById(id);
const query = location.search; // carries the token
let info = { tune: null, tgt_lang: "" };
let run = null; // the source and socket of the moment
let words = [];

const separator = () => (/^(zh|ja)\b/i.test(info.tgt_lang) ? "" : " ");
const plainText = () => words.map((word) => word.text).join(separator());

function show(state, text) {
  find("state").dataset.state = state;
  find("state-text").textContent = text;
  if (state !== "running" && state !== "finishing") find("clock").textContent = "";
  const active = state === "running" || state === "finishing" || state === "connecting";
  for (const id of ["microphone", "open"]) find(id).hidden = active;
  for (const id of ["stop", "flush"]) find(id).hidden = !active;
  for (const id of ["stop", "flush"]) find(id).disabled = state !== "running";
  find("results").hidden = active || !words.length;
  find("hint").hidden = active || words.length > 0;
}

function complain(text, notice = false) {
  find("error-text").textContent = text;
  find("error").hidden = !text;
  find("error").classList.toggle("notice", notice);
}

function clear() {
  words = [];
  find("committed").replaceChildren();
  find("unstable").textContent = "";
  find("figures").textContent = "";
}

function add(message) {
  const paper = find("paper");
  const follows = paper.scrollHeight - paper.scrollTop - paper.clientHeight < 60;
  if (message.words.length) {
    const piece = document.createElement("span");
    const seconds = (message.words[0].delay_ms / 1000).toFixed(1);
    const text = document.createElement("span");
    text.textContent = message.new.trimStart();
    const delay = document.createElement("small");
    delay.textContent = `${seconds} s`;
    delay.setAttribute("aria-hidden", "true");
    piece.className = "piece";
    piece.title = `Released after ${seconds} s of audio, ${Math.round(message.lag_ms)} ms after it came`;
    piece.append(message.new.slice(0, -text.textContent.length), text, delay);
    find("committed").append(piece);
    words.push(...message.words);
  }
  find("unstable").textContent = message.unstable && (words.length ? separator() : "") + message.unstable;
  const audio = (message.audio_ms / 1000).toFixed(1);
  find("figures").textContent = `${audio} s of audio · ${count(words.length, separator() ? "word" : "character")} · ${Math.round(message.lag_ms)} ms to answer`;
  if (follows) paper.scrollTop = paper.scrollHeight;
}

function connect(rate) {
  const address = new URL(location.pathname + query, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  return new Promise((resolve, reject) => {
    socket.onopen = () => {
      socket.send(JSON.stringify({ extended: true, sample_rate: rate }));
      sendTune(socket);
      sendPauses(socket);
      resolve(socket);
    };
    socket.onerror = () => reject(new Error("The server cannot be reached. Is it running?"));
  });
}

function flush() {
  if (run?.socket?.readyState === WebSocket.OPEN) run.socket.send(JSON.stringify({ flush: true }));
}

function sendTune(socket) {
  if (info.tune) socket.send(JSON.stringify({ tune: { [info.tune.name]: Number(find("tune").value) } }));
}

function sendPauses(socket) {
  socket.send(JSON.stringify({ pauses: find("pauses").checked }));
}

// Ends when the server has said that all is translated; fails with its error. The text before stays until the server
// answers, for it may refuse.
function listen(socket) {
  let fresh = true;
  return new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.error) return reject(new Error(`The server says: ${message.error}`));
      if (fresh) clear();
      fresh = false;
      if (message.notice) complain(message.notice, true);
      else if (message.end_of_processing) resolve();
      else add(message);
    };
    socket.onclose = () => reject(new Error("The connection was lost. The text so far is kept."));
  });
}

async function translate(open, label) {
  if (run) return;
  run = {};
  complain("");
  show("connecting", "Starting…");
  try {
    run.source = await open();
    const socket = await connect(run.source.rate);
    run.socket = socket;
    const answered = listen(run.socket);
    const begin = performance.now();
    const tick = () => { find("clock").textContent = clock(performance.now() - begin); };
    show("running", label);
    tick();
    run.timer = setInterval(tick, 1000);
    const sent = run.source.run(async (samples) => {
      const isOpen = () => socket.readyState === WebSocket.OPEN;
      while (isOpen() && socket.bufferedAmount > UNSENT_BYTES) await new Promise((resolve) => setTimeout(resolve, 20));
      if (isOpen()) socket.send(samples);
    });
    await Promise.race([sent, answered]);
    clearInterval(run.timer);
    show("finishing", "Finishing…");
    run.socket.send(JSON.stringify({ end_of_stream: true }));
    await answered;
    show("done", "Done");
  } catch (error) {
    run.source?.stop();
    show("failed", "Stopped");
    complain(error.message);
  }
  find("unstable").textContent = "";
  clearInterval(run.timer);
  if (run.socket) run.socket.onclose = null;
  run.socket?.close();
  run = null;
}

function clock(ms) {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function startFile(file) {
  const paced = document.querySelector("[name=pace]:checked").value === "spoken";
  if (file) translate(() => openFile(file, paced, find("listen").checked), "Translating");
}

function save(kind, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  link.download = `translation.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function copy() {
  try {
    await navigator.clipboard.writeText(plainText());
    find("copy").textContent = "Copied";
    setTimeout(() => { find("copy").textContent = "Copy"; }, 1500);
  } catch {
    getSelection().selectAllChildren(find("committed"));
    complain("This browser lets no page copy: the text is marked, copy it with the keyboard.", true);
  }
}

function showTune() {
  find("tune-value").textContent = UNITS[info.tune.name](find("tune").value);
}

find("microphone").onclick = () => translate(openMicrophone, "Listening");
find("open").onclick = () => find("file").click();
find("file").onchange = ({ target }) => {
  startFile(target.files[0]);
  target.value = "";
};
find("stop").onclick = () => run?.source.stop();
find("flush").onclick = flush;
find("dismiss").onclick = () => complain("");
find("copy").onclick = copy;
find("save-txt").onclick = () => save("txt", `${plainText()}\n`);
find("save-srt").onclick = () => save("srt", srt(cues(words, separator())));
find("save-vtt").onclick = () => save("vtt", vtt(cues(words, separator())));
find("show-delays").onchange = ({ target }) => find("paper").classList.toggle("delays", target.checked);
find("tune").oninput = showTune;
find("tune").onchange = () => run?.socket && sendTune(run.socket);
find("pauses").onchange = () => run?.socket && sendPauses(run.socket);
find("controls").onsubmit = (event) => event.preventDefault();

document.onkeydown = (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const button = { m: "microphone", o: "open", s: "stop", n: "flush" }[event.key.toLowerCase()];
  if (button && !find(button).hidden) find(button).click();
};

const paper = find("paper");
document.ondragover = (event) => {
  event.preventDefault();
  paper.classList.add("dropping");
};
document.ondragleave = (event) => {
  if (!event.relatedTarget) paper.classList.remove("dropping"); // it has left the window
};
document.ondrop = (event) => {
  event.preventDefault();
  paper.classList.remove("dropping");
  startFile(event.dataTransfer.files[0]);
};

try {
  info = await (await fetch(`info${query}`)).json();
  find("languages").textContent = [info.src_lang, info.tgt_lang].filter(Boolean).join(" → ");
  find("text").lang = info.tgt_lang;
  find("pauses").checked = !info.long_form;
  if (info.tune) {
    for (const key of ["min", "max", "value"]) find("tune")[key] = info.tune[key];
    find("tuning").hidden = false;
    showTune();
  }
} catch {
  complain("The server cannot be reached. Is it running?");
}
show("idle", "Ready");
