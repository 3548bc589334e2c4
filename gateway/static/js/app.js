// What scripts add to pages that work without them. Hooks are data attributes; nothing here is needed to send a form.

import { offerCopies } from "./copy.js";
import { all, announce, language, save, say } from "./page.js";

// ---- storage that may be switched off ----

function remember(key, value) {
  try { localStorage.setItem(key, value); } catch { announce(say("notKept")); }
}

// ---- theme ----

// The first click shows the other theme; the third one follows the system again.
function nextTheme(choice, shown) {
  if (choice === "system") return shown === "dark" ? "light" : "dark";
  const other = choice === "dark" ? "light" : "dark";
  const ofSystem = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return choice === ofSystem ? "system" : other;
}

for (const button of all("[data-theme-switch]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const theme = nextTheme(root.dataset.themeChoice, root.dataset.bsTheme);
    root.dataset.themeChoice = theme;
    remember("theme", theme);
    document.dispatchEvent(new CustomEvent("theme-chosen"));
    announce(say({ dark: "themeDark", light: "themeLight", system: "themeSystem" }[theme]));
  });
}

// ---- a line on paper ----

for (const line of all("[data-printed]")) {
  addEventListener("beforeprint", () => {
    line.querySelector("time").textContent = new Date().toLocaleString(language, { dateStyle: "long", timeStyle: "long" });
    line.querySelector("span").textContent = location.href;
  });
}

// ---- a message goes when it has been read ----

for (const button of all("[data-dismiss]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    button.closest(".notice").remove();
    document.getElementById("main").focus();
  });
}

// ---- menus: one open at a time, closed by a click elsewhere ----

const menus = all("[data-menu]");

function closeMenus(except) {
  for (const menu of menus) if (menu !== except) menu.open = false;
}

document.addEventListener("click", (event) => closeMenus(event.target.closest("[data-menu]")));
for (const menu of menus) {
  menu.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !menu.contains(event.relatedTarget)) menu.open = false;
  });
}

// ---- Escape closes an open menu and the drawer of a log row ----

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const open of all("[data-menu][open], [data-drawer][open]")) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});

// ---- on a narrow or a low screen the navigation scrolls: the current page is in sight ----

for (const current of all(".side [aria-current]")) {
  const bar = current.closest(".side");
  bar.scrollLeft = current.offsetLeft - (bar.clientWidth - current.offsetWidth) / 2;
  bar.scrollTop = current.offsetTop + current.offsetHeight + 18 - bar.clientHeight;
}

offerCopies(document);

// ---- the dialog that shows a secret once ----

for (const dialog of all("[data-copy-once]")) {
  const secrets = all("[data-secret]", dialog);
  const live = document.createElement("div");
  live.className = "visually-hidden";
  live.setAttribute("role", "status");
  live.dataset.live = "";
  dialog.append(live); // the page's own region is inert while the dialog is open
  for (const code of all("[data-fill]", dialog)) {
    code.textContent = secrets.reduce((text, each) => text.replaceAll(`$${each.dataset.secret}`, each.value), code.textContent);
  }
  const download = dialog.querySelector("[data-download-env]");
  download.hidden = false;
  download.addEventListener("click", () => {
    const lines = secrets.map((each) => `${each.dataset.secret}=${each.value}\n`);
    save(lines, "text/plain", download.dataset.downloadEnv);
    announce(say("saved", { name: download.dataset.downloadEnv }));
  });
  for (const input of secrets) input.addEventListener("focus", () => input.select());
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("keydown", (event) => { if (event.key === "Escape") event.preventDefault(); });
  dialog.close();
  dialog.showModal();
  dialog.addEventListener("close", () => dialog.showModal());
  (dialog.querySelector(".copy:not([hidden])") ?? dialog).focus();
  // The page may wait in the back/forward cache: the value must not.
  window.addEventListener("pagehide", () => dialog.remove());
}

// ---- parts of a page that show a secret once: the page may wait in the back/forward cache ----

for (const part of all("[data-once]")) window.addEventListener("pagehide", () => part.remove());

// ---- a dialog that the page opens with ----

for (const dialog of all("dialog[data-modal]")) {
  dialog.close();
  dialog.showModal();
  window.addEventListener("pagehide", () => dialog.remove());
}

// ---- forms: send once, say what is awaited; dangerous ones wait for the typed name ----

for (const form of all("form[method=post]")) {
  let sent = false;
  const button = form.querySelector("[type=submit]");
  const label = form.querySelector("[data-busy-text]");
  const before = label?.textContent;
  form.addEventListener("submit", (event) => {
    if (sent) {
      event.preventDefault();
      return;
    }
    sent = true;
    if (!button) return;
    button.setAttribute("aria-busy", "true");
    button.setAttribute("aria-disabled", "true");
    if (form.dataset.busy) {
      label.textContent = form.dataset.busy;
      announce(form.dataset.busy);
    }
  });
  window.addEventListener("pageshow", () => {
    sent = false;
    if (!button) return;
    button.removeAttribute("aria-busy");
    button.removeAttribute("aria-disabled");
    if (label) label.textContent = before;
  });
}

for (const input of all("[data-confirm-text]")) {
  const button = input.form.querySelector("[type=submit]");
  const check = () => { button.disabled = input.value.trim() !== input.dataset.confirmText; };
  input.addEventListener("input", check);
  check();
}

document.querySelector("[data-focus]")?.focus();

// On a small screen the tabs scroll: the current one is in view.
for (const tab of all(".tabs > [aria-current]")) tab.parentElement.scrollLeft = tab.offsetLeft + tab.offsetWidth - tab.parentElement.clientWidth;

// ---- relative times; the absolute one stays as the title ----

const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3600], ["minute", 60]];
const words = new Intl.RelativeTimeFormat(language, { numeric: "auto" });

function relative(moment) {
  const seconds = (moment.getTime() - Date.now()) / 1000;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? [null, 1];
  if (unit === null) return say(seconds > 0 ? "inAMoment" : "justNow");
  // A week from now is in 7 days, also a second later.
  return words.format(seconds > 0 ? Math.round(seconds / size) : Math.trunc(seconds / size), unit);
}

// The moment itself stays beside it where rows are compared by it.
for (const time of all("[data-clocks] time")) {
  const clock = document.createElement("span");
  clock.className = "clock";
  clock.textContent = time.textContent;
  time.after(clock);
}

function showTimes() {
  for (const time of all("time[datetime]")) time.textContent = relative(new Date(time.dateTime));
}

showTimes();
setInterval(showTimes, 30_000);

// ---- filter a list while typing ----

for (const input of all("[data-filter]")) {
  const list = document.querySelector(input.dataset.filter);
  const items = all("[data-filter-text]", list);
  const empty = list.querySelector("[data-filter-empty]");
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase().split(/\s+/);
    let shown = 0;
    for (const item of items) {
      item.hidden = !wanted.every((word) => item.dataset.filterText.includes(word));
      shown += item.hidden ? 0 : 1;
    }
    for (const group of all("[data-filter-group]", list)) group.hidden = all("[data-filter-text]", group).every((item) => item.hidden);
    empty.hidden = shown > 0;
    announce(say("shownOf", { shown, all: items.length }));
  });
}

// ---- "Try again" of an error page repeats the same address ----

for (const link of all("[data-retry]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    location.reload();
  });
}
