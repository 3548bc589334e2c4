// Buttons that copy a text of the page, or a row of a log as the API has it.

import { all, announce, say } from "./page.js";

async function copyText(text, source) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Plain http on a host name: no clipboard API, so the browser's own copy of a selection.
  const area = source instanceof HTMLInputElement ? source : document.createElement("textarea");
  if (area !== source) {
    area.value = text;
    area.className = "visually-hidden";
    (document.querySelector("dialog:modal") ?? document.body).append(area);
  }
  area.select();
  const done = document.execCommand("copy");
  if (area !== source) area.remove();
  if (!done) throw new Error("copy refused");
}

// The log row of this id as the API has it. Its id begins with its time.
async function entryText(button, id) {
  const at = new Date(parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toISOString();
  const address = button.closest("[data-entries]").dataset.entries;
  const answer = await fetch(`${address}&limit=500&start=${at}&end=${at}`);
  const found = (await answer.json()).entries.find((each) => each.id === id);
  return JSON.stringify(found, null, 2);
}

// Each button works once it has been offered.
export function offerCopies(root) {
  for (const button of all("[data-copy]", root)) {
    button.hidden = false;
    const entry = button.dataset.copyEntry;
    const source = button.dataset.copy
      ? document.querySelector(button.dataset.copy)
      : button.parentElement.querySelector("code");
    const label = button.querySelector("[data-copy-text]");
    const before = label.textContent;
    button.addEventListener("click", async () => {
      let result = "copied";
      try {
        await copyText(entry ? await entryText(button, entry) : (source.value ?? source.textContent), source);
      } catch {
        result = entry ? "rowNotCopied" : "copyYourself";
      }
      label.textContent = say(result === "copied" ? "copied" : "notCopied");
      announce(say(result));
      setTimeout(() => { label.textContent = before; }, 2500);
    });
  }
}
