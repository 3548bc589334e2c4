// The pages of the logs: rows by arrow keys, the progress of an export, and the count of rows that arrived meanwhile.

import { offerCopies } from "./copy.js";
import { all, announce, language, number, save, say } from "./page.js";

// ---- the open drawer: arrow keys lead to the previous and the next row ----

// Without a script, a row's link opens a page with its details. Here they open beside the list.
for (const link of all("[data-entries] .row-actions > a")) {
  const details = document.querySelector("[data-row-details]").content.firstElementChild.cloneNode(true);
  details.querySelector("summary > :last-child").append(...link.querySelector("span").childNodes);
  details.querySelector("a").href = link.href;
  link.replaceWith(details);
}

const drawers = all("[data-drawer]");

function offerKeys(root) {
  for (const hint of all("[data-keys]", root)) hint.hidden = false;
}

offerKeys(document);

// The details of a row are fetched when it is opened. Without them, the link in their place opens a page.
async function fill(drawer) {
  const place = drawer.querySelector("[data-drawer-from]");
  if (!place || !drawer.open || place.hasAttribute("aria-busy")) return;
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(place.querySelector("a").href, { headers: { "HX-Request": "true" } });
    // Signed out, too often or gone: the page says which.
    if (answer.status !== 200) throw new Error(String(answer.status));
    place.outerHTML = await answer.text();
    offerCopies(drawer);
    offerKeys(drawer);
  } catch {
    place.removeAttribute("aria-busy");
    announce(say("detailsFailed"));
  }
}

for (const drawer of drawers) drawer.addEventListener("toggle", () => fill(drawer));

document.addEventListener("keydown", (event) => {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const index = drawers.findIndex((drawer) => drawer.open);
  if (!step || index < 0 || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  const next = drawers[index + step];
  if (!next) return;
  drawers[index].open = false;
  next.open = true;
  next.closest("tr").scrollIntoView({ block: "nearest" });
  next.querySelector("summary").focus({ preventScroll: true });
});

// ---- suggestions: the page has the first ones, and a field that is used gets all ----

async function suggestAll(form) {
  const answer = await fetch(form.dataset.suggestions, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (answer?.status !== 200) return; // away, too often or signed out: the first ones stay
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const list of all("datalist", found)) document.getElementById(list.id)?.replaceChildren(...list.children);
}

for (const form of all("[data-suggestions]")) {
  form.addEventListener("focusin", function begin(event) {
    if (!event.target.list) return;
    form.removeEventListener("focusin", begin);
    suggestAll(form);
  });
}

// ---- export: the file is fetched with its progress, and saved when it is whole ----

const NEWLINE = 10;

async function refusal(answer) {
  const inNumbers = say("answered", { status: answer.status });
  if (language !== "en") return inNumbers; // the API speaks English
  try { return (await answer.json()).message; } catch { return inNumbers; }
}

for (const link of all("[data-export]")) {
  const box = document.querySelector("[data-export-box]");
  const text = box.querySelector("[data-export-text]");
  const bar = box.querySelector("progress");
  const stop = box.querySelector("[data-export-stop]");
  let running = null;

  const end = (words) => {
    running = null;
    bar.hidden = stop.hidden = true;
    text.textContent = words;
    announce(words);
  };

  async function read(answer) {
    const total = Number(answer.headers.get("X-Total-Count"));
    const parts = [];
    let rows = -1; // the line of headings
    for (const reader = answer.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      for (const byte of value) if (byte === NEWLINE) rows += 1;
      bar.value = total ? Math.min(1, Math.max(0, rows) / total) : 1;
      text.textContent = say("rowsOf", { rows: number.format(Math.max(0, rows)), all: number.format(total) });
    }
    const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition"))?.[1];
    save(parts, "text/csv", name ?? "audit.csv");
    return total;
  }

  async function run(control) {
    try {
      const answer = await fetch(link.href, { signal: control.signal });
      if (!answer.ok) return await refusal(answer);
      return say("exported", { rows: number.format(await read(answer)) });
    } catch {
      return say(control.signal.aborted ? "exportCancelled" : "exportFailed");
    }
  }

  link.addEventListener("click", async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (running) return;
    running = new AbortController();
    box.hidden = bar.hidden = stop.hidden = false;
    bar.value = 0;
    text.textContent = say("counting");
    announce(say("exportBegins"));
    end(await run(running));
  });
  stop.addEventListener("click", () => running?.abort());
}

// ---- live tail: one question in 5 s while the page is visible; rows stay where they are ----

const EVERY_MS = 5000;
const HASH = "#live";
const ENDED = [401, 402, 403, 404];

for (const tail of all("[data-tail]")) {
  const button = tail.querySelector("[data-tail-switch]");
  const fresh = tail.querySelector("[data-tail-new]");
  let timer = null;
  tail.hidden = false;

  const turn = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(look, EVERY_MS) : null;
    button.setAttribute("aria-checked", String(on));
    history.replaceState(null, "", on ? HASH : location.pathname + location.search);
  };

  async function look() {
    if (document.hidden) return;
    let answer;
    try {
      answer = await fetch(tail.dataset.tail);
    } catch {
      return; // the network is away; the next question may get through
    }
    if (ENDED.includes(answer.status)) {
      turn(false);
      announce(say("liveEnded", { why: await refusal(answer) }));
    }
    if (!answer.ok) return;
    const { total } = await answer.json();
    const words = total ? say("newRows", { rows: number.format(total) }) : "";
    if (fresh.textContent === words) return;
    fresh.textContent = words;
    fresh.hidden = !total;
    announce(words);
  }

  button.addEventListener("click", () => turn(timer === null));
  fresh.href = location.pathname + location.search + HASH;
  fresh.addEventListener("click", (event) => {
    event.preventDefault();
    location.reload(); // the address may differ by its hash only, which loads nothing
  });
  if (location.hash === HASH) turn(true);
}
