// In the head and not deferred: the theme is known before the first paint. The choice stays in this browser.
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    chosen = null; // storage is switched off: follow the system
  }
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    const choice = root.dataset.themeChoice;
    root.dataset.bsTheme = (choice === "system" ? system.matches : choice === "dark") ? "dark" : "light";
    document.dispatchEvent(new CustomEvent("theme"));
  };
  root.dataset.themeChoice = chosen === "dark" || chosen === "light" ? chosen : "system";
  show();
  system.addEventListener("change", show);
  document.addEventListener("theme-chosen", show);
  root.classList.add("js");
})();
