// Bars per day out of the JSON that the page carries. The table beneath says the same to everybody else.

import { language, number, say } from "./page.js";

const DAY_S = 86_400;
const LABEL_PX = 72;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const token = (name) => style.getPropertyValue(name).trim();
  return { bar: token("--accent"), text: token("--muted"), line: token("--line"), font: `12px ${getComputedStyle(document.body).fontFamily}` };
}

function day(seconds) {
  return new Date(seconds * 1000).toLocaleDateString(language === "en" ? "en-GB" : language, { day: "numeric", month: "short", timeZone: "UTC" });
}

// Every so many days have a label, so that no two labels touch.
function step(days, width) {
  return Math.max(days > 7 ? 2 : 1, Math.ceil((days * LABEL_PX) / width));
}

function draw(box, data) {
  const { bar, text, line, font } = colours();
  const days = data.days.map((each) => Date.parse(`${each}T00:00:00Z`) / 1000);
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  const plot = new uPlot({
    width: box.clientWidth,
    height: box.clientHeight,
    legend: { show: false },
    cursor: { y: false, x: false, points: { show: false }, drag: { x: false, y: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    padding: [10, 18, 0, 0],
    scales: {
      x: { range: () => [days[0] - DAY_S * 0.6, days.at(-1) + DAY_S * 0.6] },
      y: { range: (_, __, high) => [0, Math.max(4, high * 1.1)] },
    },
    axes: [
      {
        stroke: text, font, size: 26, grid: { show: false }, ticks: { show: false }, gap: 6,
        splits: () => days.filter((_, index) => (days.length - 1 - index) % step(days.length, box.clientWidth) === 0),
        values: (_, ticks) => ticks.map(day),
      },
      {
        stroke: text, font, size: 44, gap: 6, ticks: { show: false }, grid: { stroke: line, width: 1 },
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7],
      },
    ],
    series: [{}, { fill: bar, stroke: bar, width: 0, paths: uPlot.paths.bars({ size: [0.62, 44], radius: 0.12 }), points: { show: false } }],
    hooks: {
      setCursor: [(self) => {
        const index = self.cursor.idx;
        tip.hidden = index === null || index === undefined || self.cursor.left < 0;
        if (tip.hidden) return;
        tip.textContent = say(data.calls[index] === 1 ? "callOfDay" : "callsOfDay", { day: day(days[index]), calls: number.format(data.calls[index]) });
        const left = self.valToPos(days[index], "x") - tip.offsetWidth / 2;
        tip.style.left = `${Math.min(Math.max(0, left), self.over.clientWidth - tip.offsetWidth)}px`;
        tip.style.top = `${Math.max(0, self.valToPos(data.calls[index], "y") - tip.offsetHeight - 5)}px`;
      }],
    },
  }, [days, data.calls], box);
  plot.over.append(tip);
  return plot;
}

for (const box of document.querySelectorAll(".chart[data-chart]")) {
  const data = JSON.parse(document.getElementById(box.dataset.chart).textContent);
  box.hidden = false;
  box.setAttribute("role", "img");
  const total = data.calls.reduce((sum, each) => sum + each, 0);
  box.setAttribute("aria-label", say("chart", { label: box.dataset.chartLabel, total, days: data.days.length }));
  if (total === 0) {
    const note = document.createElement("p");
    note.className = "chart-empty";
    note.textContent = say("noCall");
    box.append(note);
  }
  let plot = draw(box, data);
  const redraw = () => { plot.destroy(); plot = draw(box, data); };
  document.addEventListener("theme", redraw);
  let width = box.clientWidth;
  new ResizeObserver(() => {
    if (box.clientWidth === width || box.clientWidth === 0) return;
    width = box.clientWidth;
    redraw();
  }).observe(box);
}
