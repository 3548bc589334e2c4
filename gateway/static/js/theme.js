// In the head and not deferred: the theme is known before the first paint. The choice stays in this browser.
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    chosen = null; // storage is switched off: follow the system
  }
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.bsTheme = dark ? "dark" : "light";
  document.documentElement.classList.add("js");
})();
