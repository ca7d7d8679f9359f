"use strict";
// Adds optional features to a page: a slider over models, tooltips, tables that can be sorted and
// transposed, dark mode.
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const one = (selector, within = document) => within.querySelector(selector);
  root.classList.add("live");

  one("#theme").addEventListener("click", () => {
    const dark = root.classList.contains("dark") ||
      (!root.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    root.classList.toggle("dark", !dark);
    root.classList.toggle("light", dark);
  });

  // Tooltips.
  const tip = one("#tip");
  for (const title of all("svg :not(svg) > title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  const heatTip = cell => {
    const table = cell.closest("table"), across = table.classList.contains("across");
    const row = cell.parentNode.cells[0], head = table.tHead.rows[0].cells[cell.cellIndex];
    const [column, cluster] = across ? [head, row] : [row, head];
    const full = one("[title]", column);
    const z = Number(cell.dataset.z);
    return `${full ? full.title : column.textContent}\ncluster ${cluster.dataset.label}: ${cell.textContent}\n` +
      `${z > 0 ? "+" : ""}${z} standard deviations from the mean of all rows`;
  };
  const words = target => target.dataset?.tip ?? (target.matches?.(".heat td[data-z]") ? heatTip(target) : null);
  const show = (target, x, y) => {
    const text = words(target);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
  };
  document.addEventListener("pointermove", event => show(event.target, event.clientX, event.clientY));
  document.addEventListener("keydown", event => {
    if (event.key === "Escape") tip.hidden = true;
  });

  // Arrow keys move between the marks of a picture.
  for (const svg of all("svg.picture")) {
    const marks = all("[data-tip]", svg);
    if (!marks.length) continue;
    let at = -1;
    svg.tabIndex = 0;
    const leave = () => {
      marks[at]?.classList.remove("now");
      tip.hidden = true;
    };
    svg.addEventListener("blur", () => {
      if (!svg.classList.contains("choice")) leave();
    });
    svg.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Enter" && marks[at]) marks[at].dispatchEvent(new Event("click"));
      if (!step) return;
      event.preventDefault();
      leave();
      at = (at + step + marks.length) % marks.length;
      if (!svg.classList.contains("choice")) marks[at].classList.add("now");
      const box = marks[at].getBoundingClientRect();
      show(marks[at], box.right, box.bottom);
    });
  }

  // The selection of the model.
  const models = all(".model"), slider = one("#model"), map = one("svg.map");
  const dots = map ? all("[data-dot]", map) : [];
  const signs = map ? JSON.parse(one(".map-data").dataset.signs) : [];
  const colours = map ? Number(one(".map-data").dataset.colours) : 0;
  const points = all(".curve .k");
  const choose = index => {
    const model = models[index];
    models.forEach((m, i) => {
      m.hidden = i !== index;
      m.open = i === index;
    });
    if (slider) {
      slider.value = index;
      slider.setAttribute("aria-valuetext", model.dataset.name);
      one("#chosen").textContent = model.dataset.name;
    }
    for (const point of points) point.classList.toggle("now", modelOf(point) === index);
    if (!map) return;
    const labels = model.dataset.labels.split(" ");
    for (const dot of dots) {
      const label = Number(labels[dot.dataset.dot]);
      const outside = dot.classList.contains("outside") ? " outside" : "";
      dot.setAttribute("class", `dot${outside} c${label % colours}`);
      dot.setAttribute("d", signs[Math.floor(label / colours) % signs.length]);
      dot.dataset.label = label;
      dot.dataset.tip = dot.dataset.tip.replace(/^cluster \d+/, `cluster ${label}`);
    }
    for (const centre of all(".centre", map)) centre.classList.toggle("off", Number(centre.dataset.model) !== index);
    fit(model);
  };
  const modelOf = point => models.findIndex(
    m => m.dataset.task === point.closest(".curve").dataset.task && m.dataset.k === point.dataset.k);
  for (const point of points) {
    const index = modelOf(point);
    if (index < 0) continue;
    point.classList.add("can");
    point.addEventListener("click", () => choose(index));
  }
  slider?.addEventListener("input", () => choose(Number(slider.value)));
  // Pointing at a cluster's card highlights its cells.
  for (const card of all(".card")) {
    const light = on => {
      map?.classList.toggle("dim", on);
      for (const dot of dots) dot.classList.toggle("lit", on && dot.dataset.label === card.dataset.label);
    };
    card.addEventListener("pointerenter", () => light(true));
    card.addEventListener("pointerleave", () => light(false));
  }

  // Tables that can be sorted by a column and transposed.
  const number = cell => {
    const text = (cell?.textContent ?? "").replaceAll(",", "").replace("−", "-");
    return text.trim() === "" ? NaN : parseFloat(text);
  };
  const compare = index => (a, b) => {
    const [x, y] = [a, b].map(row => number(row.cells[index]));
    if (Number.isNaN(x) || Number.isNaN(y)) {
      return a.cells[index].textContent.localeCompare(b.cells[index].textContent, undefined, { numeric: true });
    }
    return x - y;
  };
  const sortable = table => {
    for (const head of table.tHead.rows[0].cells) {
      if (!head.textContent.trim() || one("button", head)) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
    }
  };
  document.addEventListener("click", event => {
    const head = event.target.closest?.("thead th"), table = head?.closest("table");
    if (!table || !event.target.closest("button")) return;
    const down = head.ariaSort !== "descending";
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].sort(compare(head.cellIndex));
    table.tBodies[0].append(...(down ? rows.reverse() : rows));
  });
  all("table.sortable").forEach(sortable);

  const transpose = table => {
    for (const head of table.tHead.rows[0].cells) {
      const button = one("button", head);
      if (button) button.replaceWith(...button.childNodes);
      head.removeAttribute("aria-sort");
    }
    const cells = [...table.rows].map(row => [...row.cells]);
    const lines = cells[0].map((_, i) => {
      const row = document.createElement("tr");
      row.append(...cells.map(line => line[i]));
      row.cells[0].scope = "row";
      return row;
    });
    for (const head of lines[0].cells) head.scope = "col";
    table.tHead.replaceChildren(lines[0]);
    table.tBodies[0].replaceChildren(...lines.slice(1));
    table.classList.toggle("across");
    sortable(table);
  };
  // Hides the numbers of a heat map that is too wide for the page.
  const fit = model => {
    const frame = one(".tall", model);
    if (!frame || frame.dataset.fitted) return;
    frame.dataset.fitted = true;
    frame.classList.toggle("compact", frame.scrollWidth > frame.clientWidth + 4);
  };
  for (const model of models) {
    const frame = one(".tall", model), table = frame && one("table", frame);
    if (!table) continue;
    one(".transpose", model)?.addEventListener("click", () => transpose(table));
    one(".numbers", model)?.addEventListener("click", () => frame.classList.toggle("compact"));
  }
  const first = models.findIndex(m => m.open);
  if (models.length) choose(Math.max(0, first));
})();
