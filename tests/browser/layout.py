"""The room of a page: space between buttons on a phone, no content that jumps, and all of it on paper."""

from __future__ import annotations

from playwright.sync_api import Page

NEAREST_PX, LOWEST_PX, PRIMARY_PX = 8, 24, 44
MOST_SHIFT = 0.02  # the sum of the scores of a page
PAPER = {"width": 718, "height": 1_000}  # A4 between its margins, in CSS pixels

# Runs before any script of the page. A shift within half a second of a touch or a key is no surprise.
COLLECT_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const each of list.getEntries()) {
    if (each.hadRecentInput) continue;
    const text = (node) => (node.outerHTML || node.textContent || "").slice(0, 120);
    const moved = each.sources.map((one) => one.node && text(one.node));
    window.shifts.push({ value: each.value, moved });
  }
}).observe({ type: "layout-shift", buffered: true });
"""
SHIFTS = (
    """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(window.shifts))))"""
)

CROWDED = """([nearest, lowest, primary]) => {
  const short = (each) => each.outerHTML.replace(/\\s+/g, " ").slice(0, 140);
  // A bar that stays at the edge of the window lies over what scrolls beneath it.
  const layer = (each) =>
    !each || ["fixed", "sticky"].includes(getComputedStyle(each).position) ? each : layer(each.parentElement);
  const buttons = [...document.querySelectorAll("button, .btn, .icon-button, [role=button], input[type=submit]")]
    .filter((each) => each.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }))
    .map((each) => ({ each, box: each.getBoundingClientRect(), layer: layer(each) }))
    .filter(({ box }) => box.width > 1 && box.height > 1 && box.right > 0 && box.left < innerWidth);
  const found = [];
  for (const { each, box } of buttons) {
    const wanted = each.classList.contains("btn-primary") ? primary : lowest;
    if (box.height < wanted - 0.5) found.push(`${box.height.toFixed(1)} of ${wanted} px high: ${short(each)}`);
  }
  buttons.forEach((one, number) => buttons.slice(number + 1).forEach((other) => {
    if (one.layer !== other.layer || one.each.contains(other.each) || other.each.contains(one.each)) return;
    const [a, b] = [one.box, other.box];
    const x = Math.max(a.left - b.right, b.left - a.right, 0);
    const y = Math.max(a.top - b.bottom, b.top - a.bottom, 0);
    const apart = Math.hypot(x, y);
    if (apart < nearest - 0.5) found.push(`${apart.toFixed(1)} px apart: ${short(one.each)} ${short(other.each)}`);
  }));
  return found;
}"""

UNPRINTED = """() => {
  const found = [];
  const short = (each) => each.outerHTML.replace(/\\s+/g, " ").slice(0, 140);
  const isShown = (each) =>
    each.checkVisibility({ contentVisibilityAuto: true }) && each.getBoundingClientRect().height > 0;
  for (const each of document.querySelectorAll(".topbar, .side, nav, .btn, .skip-link, .icon-button"))
    if (isShown(each)) found.push(`printed: ${short(each)}`);
  for (const each of document.querySelectorAll("main table")) {
    if (each.closest("dialog, [hidden], details:not(.chart-table):not([open])")) continue;
    if (!isShown(each)) { found.push(`not printed: ${short(each)}`); continue; }
    for (let around = each; around.id !== "main"; around = around.parentElement) {
      if (getComputedStyle(around).overflow === "visible") continue;
      const [wide, high] = [around.scrollWidth - around.clientWidth, around.scrollHeight - around.clientHeight];
      if (wide > 1 || high > 1) found.push(`${wide} x ${high} px of it cut off: ${short(around)}`);
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push(`${document.documentElement.scrollWidth} px wide`);
  if (document.querySelector(".side, .with-nav")) {
    const line = document.querySelector("[data-printed]");
    if (!line || !isShown(line)) found.push("no line about the print");
    else if (!line.textContent.includes(location.href)) found.push(`another address: ${line.textContent}`);
  }
  return found;
}"""


def crowded(page: Page) -> list[str]:
    """Buttons, and links that look like them, that a finger would miss. The page is shown on a phone already."""
    return [f"{page.url} {each}" for each in page.evaluate(CROWDED, [NEAREST_PX, LOWEST_PX, PRIMARY_PX])]


def jumps(page: Page) -> list[str]:
    """Shifts since the page began to load, of a page with COLLECT_SHIFTS, if they are too large together."""
    shifts = page.evaluate(SHIFTS)
    total = sum(each["value"] for each in shifts)
    return [f"{page.url} shifted by {total:.3f}: {shifts}"] if total > MOST_SHIFT else []


def unprinted(page: Page) -> list[str]:
    """The faults of the page on paper. The page is left as it was found."""
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": PAPER["width"], "height": PAPER["height"]})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    found = [f"{page.url} on paper {each}" for each in page.evaluate(UNPRINTED)]
    page.emulate_media(media="screen")
    page.set_viewport_size(size)
    return found
