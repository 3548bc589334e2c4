// What all scripts share.

export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// The page carries the words of its scripts, in its language. {name} in a text stands for a value.
const texts = Object.assign({}, ...all("[data-texts]").map((each) => each.dataset));

export function say(name, values = {}) {
  return texts[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

export const language = document.documentElement.lang;
export const number = new Intl.NumberFormat(language);

// An open dialog has a region of its own: that of the page is inert beneath it.
export function announce(text) {
  const region = document.querySelector("dialog:modal [data-live]") ?? document.querySelector("[data-live]");
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = text; });
}

export function save(parts, type, name) {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  (document.querySelector("dialog:modal") ?? document.body).append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
