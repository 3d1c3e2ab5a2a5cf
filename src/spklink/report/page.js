"use strict";
(() => {
  // Names come from files that others wrote: they are only ever put in as text, or copied as nodes.
  const long = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const dialog = document.getElementById("detail");
  const body = document.getElementById("detail-body");

  const make = (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  // A conversation is its entry in the appendix, by its number.
  const card = (number) => document.getElementById(`c${number}`);
  const name = (number) => make("bdi", card(number).querySelector("h3 bdi").textContent, "name");
  const chance = (seat) => (seat.querySelector("b") ? ` ${seat.querySelector("b").textContent}` : "");
  // Parts, not a text: each name keeps its direction to itself.
  const line = (number) => {
    const seats = [...card(number).querySelectorAll(".seat")];
    const told = seats.flatMap((seat, at) => [at ? ", " : "", seat.querySelector(".person").cloneNode(true), ` on ${seat.querySelector("dt").textContent}${chance(seat)}`]);
    return [name(number), ": ", ...told];
  };

  const open = (...parts) => {
    body.replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  const show = (number) => {
    const copy = card(number).cloneNode(true);
    copy.removeAttribute("id");
    open(copy);
  };
  const button = (number, ...parts) => {
    const made = make("button", undefined, "link wraps");
    made.append(...parts);
    made.addEventListener("click", () => show(number));
    return made;
  };
  const choose = (text, numbers) => {
    const list = make("ul");
    numbers.forEach((number) => {
      const item = make("li");
      item.append(button(number, ...line(number)));
      list.append(item);
    });
    const rest = numbers.length ? [make("p", "The least certain of them:"), list] : [make("p", "They are in appendix.csv, not on this page.")];
    open(make("h3", text), ...rest);
  };

  // --- pictures: by pointer, and by keyboard a mark at a time ---
  const numbersOf = (mark) => (mark.dataset.c ? mark.dataset.c.split(" ").map(Number) : []);
  const told = (mark) => (mark.dataset.t ? [mark.dataset.t] : line(numbersOf(mark)[0]));
  const point = (mark, x, y) => {
    tip.hidden = false;
    tip.replaceChildren(...told(mark));
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
  };
  const act = (mark) => {
    tip.hidden = true;
    if (mark.dataset.e !== undefined) choose(mark.dataset.t, numbersOf(mark));
    else show(numbersOf(mark)[0]);
  };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest && event.target.closest("[data-c],[data-t]");
    if (!mark || mark.tagName === "BUTTON") tip.hidden = true;
    else point(mark, event.clientX, event.clientY);
  });
  document.addEventListener("click", (event) => {
    const cut = event.target.closest("[data-long]");
    if (cut) return unfold(cut);
    const mark = event.target.closest("[data-c],[data-e]");
    if (mark) act(mark);
  });

  const middle = (mark) => {
    const box = mark.getBBox();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  // The nearest mark that way; what lies aside counts double.
  const next = (marks, from, [dx, dy]) => {
    const [x, y] = middle(from);
    let best = null;
    let least = Infinity;
    marks.forEach((mark) => {
      const [u, v] = middle(mark);
      const along = (u - x) * dx + (v - y) * dy;
      const far = along + 2 * Math.abs((u - x) * dy) + 2 * Math.abs((v - y) * dx);
      if (mark !== from && along > 0.5 && far < least) [best, least] = [mark, far];
    });
    return best;
  };
  document.querySelectorAll(".gallery svg").forEach((svg) => {
    const marks = [...svg.querySelectorAll("[data-c],[data-e]")];
    marks.forEach((mark, at) => {
      mark.setAttribute("role", "button");
      mark.setAttribute("tabindex", at ? "-1" : "0");
      mark.setAttribute("aria-label", told(mark).map((part) => part.textContent ?? part).join(""));
    });
    const go = (mark) => {
      if (!mark) return;
      marks.forEach((other) => other.setAttribute("tabindex", other === mark ? "0" : "-1"));
      mark.focus();
    };
    svg.addEventListener("keydown", (event) => {
      const mark = event.target;
      if (!marks.includes(mark)) return;
      if (WAYS[event.key]) go(next(marks, mark, WAYS[event.key]));
      else if (event.key === "Home") go(marks[0]);
      else if (event.key === "End") go(marks[marks.length - 1]);
      else if (event.key === "Enter" || event.key === " ") act(mark);
      else if (event.key === "Escape") tip.hidden = true;
      else return;
      event.preventDefault();
    });
    svg.addEventListener("focusin", (event) => {
      if (!event.target.matches(":focus-visible")) return;
      const box = event.target.getBoundingClientRect();
      point(event.target, box.left + box.width / 2, box.top + box.height / 2);
    });
    svg.addEventListener("focusout", () => { tip.hidden = true; });
  });

  // A name of thousands of letters is shown short; Enter or a click shows all of it.
  const unfold = (node) => {
    const short = node.dataset.short || (node.dataset.short = node.textContent);
    node.textContent = node.textContent === short ? long[Number(node.dataset.long)] : short;
  };
  document.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && event.target.matches("[data-long]")) {
      event.preventDefault();
      unfold(event.target);
    }
  });

  const search = document.getElementById("search");
  const hits = document.getElementById("hits");
  let haystack = null; // every entry as one lower-case text, made when first needed
  search.addEventListener("input", () => {
    haystack ??= [...document.querySelectorAll(".call")].map((one) => [Number(one.id.slice(1)), [...one.querySelectorAll("h3 bdi, dl bdi")].map((node) => (node.dataset.long === undefined ? node.textContent : long[Number(node.dataset.long)])).join("\n").toLowerCase()]);
    const wanted = search.value.trim().toLowerCase();
    hits.replaceChildren();
    if (!wanted) return;
    const found = haystack.filter(([, text]) => text.includes(wanted)).map(([number]) => number);
    hits.append(make("p", `${found.length} found${found.length > 30 ? ", the first 30:" : ""}`, "note"));
    found.slice(0, 30).forEach((number) => {
      const item = make("p");
      item.append(button(number, ...line(number)));
      hits.append(item);
    });
  });
  document.querySelector(".search").hidden = false;

  // Tables that can be filtered, and sorted by a click on a heading.
  document.querySelectorAll("[data-filter]").forEach((input) => {
    const rows = [...document.getElementById(input.dataset.filter).tBodies[0].rows];
    const box = input.closest(".filter");
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
      box.querySelector(".note").textContent = wanted ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
    });
    box.hidden = false;
  });
  const value = (row, at) => row.cells[at].dataset.v ?? row.cells[at].textContent;
  document.querySelectorAll("table.sorts").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      const sort = make("button", head.textContent, "sort");
      sort.addEventListener("click", () => {
        const down = head.ariaSort === "ascending" ? -1 : 1;
        [...table.tHead.rows[0].cells].forEach((other) => { other.ariaSort = null; });
        head.ariaSort = down === 1 ? "ascending" : "descending";
        const compare = (a, b) => down * value(a, at).localeCompare(value(b, at), undefined, { numeric: true });
        const byNumber = (a, b) => down * (value(a, at) - value(b, at));
        const rows = table.tBodies[0];
        rows.append(...[...rows.rows].sort(rows.rows[0].cells[at].dataset.v === undefined ? compare : byNumber));
      });
      head.replaceChildren(sort);
    });
  });

  // On paper there is nothing to open: the numbers behind figures are printed where they are few.
  addEventListener("beforeprint", () => { tip.hidden = true; if (dialog.open) dialog.close(); });
})();
