// The search over the whole organization on Ctrl-K, and the list of keys on "?". Without it, the button opens a page.

import { all, announce, say } from "./page.js";

const opener = document.querySelector("[data-open-palette]");
const dialog = document.querySelector("[data-palette]");
const help = document.querySelector("[data-keyboard-help]");
const field = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
const PAUSE_MS = 150;
let active = -1;
let asked = null;
let waiting = 0;

const options = () => all("[role=option]", list);

function mark(index) {
  const shown = options();
  active = shown.length ? (index + shown.length) % shown.length : -1;
  shown.forEach((option, position) => {
    option.id = `palette-${position}`;
    option.setAttribute("aria-selected", String(position === active));
  });
  if (active < 0) field.removeAttribute("aria-activedescendant");
  else {
    field.setAttribute("aria-activedescendant", shown[active].id);
    shown[active].scrollIntoView({ block: "nearest" });
  }
}

function clear() {
  clearTimeout(waiting);
  asked?.abort();
  list.replaceChildren();
  mark(0);
}

async function ask() {
  asked?.abort();
  const mine = new AbortController();
  asked = mine;
  try {
    const address = `${opener.href}?q=${encodeURIComponent(field.value)}`;
    const answer = await fetch(address, { headers: { "HX-Request": "true" }, signal: mine.signal });
    // Signed out, too often or gone: the page says which.
    if (answer.status !== 200) throw new Error(String(answer.status));
    const text = await answer.text();
    if (mine.signal.aborted) return;
    list.innerHTML = text;
    mark(0);
    announce(say("results", { count: options().length }));
  } catch (fault) {
    if (fault.name === "AbortError") return;
    clear();
    announce(say("searchFailed"));
  }
}

function open() {
  if (document.querySelector("dialog:modal")) return;
  field.value = "";
  clear();
  dialog.showModal();
  ask();
}

opener.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open();
});

field.addEventListener("input", () => {
  // Results of other words must not be opened by Enter.
  clear();
  waiting = setTimeout(ask, PAUSE_MS);
});

field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") mark(active + 1);
  else if (event.key === "ArrowUp") mark(active - 1);
  else if (event.key === "Enter") {
    const chosen = options()[active];
    location.assign(chosen ? chosen.href : `${opener.href}?q=${encodeURIComponent(field.value)}`);
  } else return;
  event.preventDefault();
});

for (const each of [dialog, help]) {
  each.addEventListener("click", (event) => { if (event.target === each) each.close(); });
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    open();
  } else if (event.key === "?" && !event.target.closest("input, textarea, select, [contenteditable]")) {
    if (!document.querySelector("dialog:modal")) help.showModal();
  }
});
