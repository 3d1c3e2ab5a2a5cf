"use strict";
(() => {
  // Names come from files that others wrote: they are only ever put in as text.
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const dialog = document.getElementById("detail");
  const body = document.getElementById("detail-body");

  const make = (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const cut = (text) => {
    const letters = [...text];
    return letters.length > 80 ? letters.slice(0, 80).join("") + "…" : text;
  };
  const name = (at) => make("bdi", cut(data.names[at]), "name");
  // -1 is someone else, -2 nobody: a track that cannot be used.
  const who = (at) => (at >= 0 ? name(at) : at === -1 ? make("i", "someone else", "else") : "–");
  const track = (label) => (typeof label === "string" ? [`channel ${label}`] : ["track ", name(label)]);
  const percent = (p) => {
    for (let digits = 1; digits < 8; digits += 2) {
      const text = (100 * p).toFixed(digits);
      if (text.slice(0, 3) !== "100" || p === 1) return text + " %";
    }
    return "over 99.99999 %";
  };
  const signed = (bits) => (bits < 0 ? "−" : "+") + Math.abs(bits).toPrecision(3);

  const facts = (row) => {
    const list = make("dl", undefined, "facts");
    const say = (title, ...parts) => {
      const value = make("dd");
      value.append(...parts);
      const term = make("dt");
      term.append(title);
      list.append(term, value);
    };
    const sound = (at) => {
      const parts = row[8] ? [`, ${row[8][at]} s of speech`] : [];
      if (row[9] && row[9][at]) parts.push(`, not used: ${row[9][at]}`);
      return parts;
    };
    const sure = (p, low, high) => percent(p) + (low === high ? "" : ` (between ${percent(low)} and ${percent(high)})`);
    if (row[11]) {
      row[11].forEach(([label, person, p, low, high, decision], at) => {
        const title = make("span");
        title.append(...track(label));
        say(title, who(person), person === -2 ? "" : ` ${sure(p, low, high)}`, `, ${decision}`, ...sound(at));
      });
      row[12].forEach(([person, status, p, low, high]) => {
        say(status === "possible" ? "listed as possible" : "listed", name(person), ` there: ${sure(p, low, high)}`);
      });
    } else {
      row[1].forEach((speaker, at) => say(`channel ${at + 1}`, name(speaker), ...sound(at)));
      say("probability", sure(row[2], row[3], row[4]));
    }
    say("clique", String(row[5]));
    if (row[6] === "unresolvable") say("note", "No voice can tell these channels apart; a known channel in this clique would.");
    if (row[7]) say(row[11] ? "list" : "claim", "contradicted by the voices");
    return list;
  };

  const evidence = (row) => {
    if (!row[10].length) return make("p", "It shares no speaker with another conversation: there is no evidence.", "note");
    const table = make("table");
    const head = table.createTHead().insertRow();
    ["conversation", "shared speaker", row[11] ? "bits for one voice" : "bits for this order"].forEach((text, at) => head.append(make("th", text, at < 2 ? "t" : "")));
    const rows = table.createTBody();
    row[10].forEach(([other, speaker, bits]) => {
      const line = rows.insertRow();
      [name(other), name(speaker), signed(bits)].forEach((part, at) => {
        const cell = line.insertCell();
        if (at < 2) cell.className = "t";
        cell.append(part);
      });
    });
    return table;
  };

  const kinds = (row) => {
    if (!row[13].length) return [];
    const table = make("table");
    const head = table.createTHead().insertRow();
    ["evidence", "bits for what is claimed"].forEach((text, at) => head.append(make("th", text, at ? "" : "t")));
    const rows = table.createTBody();
    const total = row[13].reduce((sum, [, bits]) => sum + bits, 0);
    const put = (first, bits) => {
      const line = rows.insertRow();
      const cell = line.insertCell();
      cell.className = "t";
      cell.append(first);
      line.insertCell().append(signed(bits));
    };
    row[13].forEach(([kind, bits]) => put(name(kind), bits));
    put("together", total);
    return [make("h3", "By evidence"), table];
  };

  const show = (index) => {
    const row = data.rows[index];
    const title = make("h3", "Conversation ");
    title.append(name(row[0]));
    const full = cut(data.names[row[0]]) === data.names[row[0]] ? [] : [make("p", undefined, "note")];
    full.forEach((part) => part.append(make("bdi", data.names[row[0]])));
    body.replaceChildren(title, facts(row), ...kinds(row), make("h3", "Strongest evidence"), evidence(row), ...full);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };

  const choose = (text, rows) => {
    const list = make("ul");
    rows.forEach((index) => {
      const button = make("button", undefined, "link");
      button.append(name(data.rows[index][0]), ` ${percent(data.rows[index][2])}`);
      button.addEventListener("click", () => show(index));
      const item = make("li");
      item.append(button);
      list.append(item);
    });
    body.replaceChildren(make("h3", text), make("p", rows.length ? "The least certain of them:" : "All of them are settled."), list);
    if (!dialog.open) dialog.showModal();
  };

  // Parts, not a text: each name keeps its direction to itself.
  const line = (index) => {
    const row = data.rows[index];
    if (row[11]) {
      const seats = row[11].flatMap(([label, person, p], at) => [at ? ", " : "", who(person), " on ", ...track(label), person === -2 ? "" : ` ${percent(p)}`]);
      return [name(row[0]), ": ", ...seats];
    }
    const where = row[1].flatMap((speaker, at) => [name(speaker), ` on channel ${at + 1}, `]);
    return [name(row[0]), ": ", ...where, percent(row[2])];
  };
  const rowsOf = (mark) => (mark.dataset.c ? mark.dataset.c.split(" ").map(Number) : []);
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest && event.target.closest("[data-c],[data-t]");
    tip.hidden = !mark || mark.tagName === "BUTTON";
    if (tip.hidden) return;
    tip.replaceChildren(...(mark.dataset.t ? [mark.dataset.t] : line(rowsOf(mark)[0])));
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
  });
  document.addEventListener("click", (event) => {
    const long = event.target.closest("[data-long]");
    if (long) return unfold(long);
    const mark = event.target.closest("[data-c],[data-e]");
    if (!mark) return;
    tip.hidden = true;
    if (mark.dataset.e !== undefined) choose(mark.dataset.t, rowsOf(mark));
    else show(rowsOf(mark)[0]);
  });

  // A name of thousands of letters is shown short; Enter or a click shows all of it.
  const unfold = (node) => {
    const short = node.dataset.short || (node.dataset.short = node.textContent);
    node.textContent = node.textContent === short ? data.long[Number(node.dataset.long)] : short;
  };
  document.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && event.target.matches("[data-long]")) {
      event.preventDefault();
      unfold(event.target);
    }
  });

  const people = (row) => [row[0], ...row[1], ...(row[11] || []).map((one) => one[1]).filter((at) => at >= 0), ...row[12].map((one) => one[0])];
  const search = document.getElementById("search");
  const hits = document.getElementById("hits");
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    hits.replaceChildren();
    if (!wanted) return;
    const found = data.rows.map((_, k) => k).filter((k) => people(data.rows[k]).some((at) => data.names[at].toLowerCase().includes(wanted)));
    hits.append(make("p", `${found.length} found${found.length > 30 ? ", the 30 least certain:" : ""}`, "note"));
    found.slice(0, 30).forEach((k) => {
      const button = make("button", undefined, "link");
      button.append(...line(k));
      button.addEventListener("click", () => show(k));
      const item = make("p");
      item.append(button);
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
      const button = make("button", head.textContent, "sort");
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending" ? -1 : 1;
        [...table.tHead.rows[0].cells].forEach((other) => { other.ariaSort = null; });
        head.ariaSort = down === 1 ? "ascending" : "descending";
        const compare = (a, b) => down * value(a, at).localeCompare(value(b, at), undefined, { numeric: true });
        const byNumber = (a, b) => down * (value(a, at) - value(b, at));
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort(body.rows[0].cells[at].dataset.v === undefined ? compare : byNumber));
      });
      head.replaceChildren(button);
    });
  });
})();
