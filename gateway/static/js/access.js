// Forms of many ticks: how many differ from what is stored, ticks of a whole row, and a question before they are lost.

import { all, say } from "./page.js";

for (const form of all("form[data-guard]")) {
  const boxes = all("input[type=checkbox], input[type=radio]", form);
  const summary = form.querySelector("[data-change-summary]");
  const before = summary?.textContent;
  let leaving = false;

  const changes = () => {
    const ticks = boxes.filter((box) => box.type === "checkbox" && box.checked !== box.defaultChecked);
    const added = ticks.filter((box) => box.checked).length;
    const others = boxes.some((box) => box.type === "radio" && box.checked !== box.defaultChecked);
    return { added, removed: ticks.length - added, any: ticks.length > 0 || others || "unsaved" in form.dataset };
  };
  const show = () => {
    const { added, removed, any } = changes();
    if (summary) summary.textContent = any ? say("notSavedYet", { added, removed }) : before;
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
