// Forms of many ticks: how many differ from what is stored, ticks of a whole row, and a question before they are lost.

import { all, announce, say } from "./page.js";

function notSaved(added, removed) {
  if (added && removed) return say("addedAndRemoved", { added, removed });
  if (added) return say("onlyAdded", { added });
  return removed ? say("onlyRemoved", { removed }) : say("notSaved");
}

// Tools of a form that are ticked on its other pages.
const elsewhere = (root) => all("input[type=hidden][name=tool]", root);

const missing = (these, those) => [...these].filter((each) => !those.has(each)).length;

for (const form of all("form[data-guard]")) {
  const boxes = all("input[type=checkbox], input[type=radio]", form);
  const summary = form.querySelector("[data-change-summary]");
  const before = summary?.textContent;
  const storedElsewhere = new Set(elsewhere(form).map((each) => each.value));
  let leaving = false;

  const changes = () => {
    const ticks = boxes.filter((box) => box.type === "checkbox" && box.checked !== box.defaultChecked);
    const ticked = new Set(elsewhere(form).map((each) => each.value));
    const added = ticks.filter((box) => box.checked).length + missing(ticked, storedElsewhere);
    const removed = ticks.filter((box) => !box.checked).length + missing(storedElsewhere, ticked);
    const others = boxes.some((box) => box.type === "radio" && box.checked !== box.defaultChecked);
    return { added, removed, any: added + removed > 0 || others || "unsaved" in form.dataset };
  };
  const show = () => {
    const { added, removed, any } = changes();
    if (summary) summary.textContent = any ? notSaved(added, removed) : before;
    form.classList.toggle("is-changed", any);
  };

  form.addEventListener("change", show);
  form.addEventListener("submit", () => { leaving = true; });
  window.addEventListener("beforeunload", (event) => {
    if (!leaving && changes().any) event.preventDefault();
  });
  window.addEventListener("pageshow", () => { leaving = false; show(); });

  for (const bulk of all("[data-bulk]", form)) {
    bulk.hidden = false;
    const own = all("input[type=checkbox]", bulk.closest("tr"));
    bulk.addEventListener("click", (event) => {
      const asked = event.target.closest("[data-bulk-set]")?.dataset.bulkSet;
      if (!asked) return;
      for (const box of own) box.checked = asked === "all";
      show();
    });
  }
}

// "Tick: all, read-only, none" tick in place. The address shows the same ticks, so it says which they are.
async function tick(form, address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const wanted = new Set(all("input[name=tool]:checked, input[type=hidden][name=tool]", page).map((each) => each.value));
  for (const each of elsewhere(form)) each.remove();
  for (const box of all("input[type=checkbox][name=tool]", form)) {
    box.checked = wanted.has(box.value);
    wanted.delete(box.value);
  }
  for (const value of wanted) {
    const kept = document.createElement("input");
    Object.assign(kept, { type: "hidden", name: "tool", value });
    form.append(kept);
  }
  form.querySelector("[data-mode-list]").checked = true;
  form.dispatchEvent(new Event("change", { bubbles: true }));
  announce(form.querySelector("[data-change-summary]").textContent);
}

for (const link of all("a[data-tick]")) {
  link.addEventListener("click", async (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const form = link.closest("form");
    form.inert = true; // a tick or a save in between would be lost
    try {
      await tick(form, link.href);
    } catch {
      location.assign(link.href);
    }
    form.inert = false;
    link.focus();
  });
}

// Ticking a tool off means a list: the choice between all and a list follows.
for (const choice of all("[data-mode-list]")) {
  choice.form.addEventListener("change", (event) => {
    if (event.target.type === "checkbox" && !choice.checked) {
      choice.checked = true;
      choice.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
}

// Descriptions are searched too, and travel once.
for (const row of all("#tool-list [data-filter-text]")) {
  row.dataset.filterText += ` ${row.querySelector(".tool-text").textContent.toLowerCase()}`;
}

// Words to filter by, beside the field they are put into.
for (const chips of all("[data-chips]")) {
  chips.hidden = false;
  const field = chips.parentElement.querySelector("[data-filter]");
  const press = () => {
    const words = field.value.trim().toLowerCase().split(/\s+/);
    for (const chip of all("[data-chip]", chips)) chip.setAttribute("aria-pressed", String(words.includes(chip.dataset.chip)));
  };
  chips.addEventListener("click", (event) => {
    const word = event.target.closest("[data-chip]")?.dataset.chip;
    if (!word) return;
    const words = field.value.trim().split(/\s+/).filter(Boolean);
    field.value = (words.includes(word) ? words.filter((each) => each !== word) : [...words, word]).join(" ");
    field.dispatchEvent(new Event("input"));
  });
  field.addEventListener("input", press);
}
