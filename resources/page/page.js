// Sort, filter, transpose and open the matrix. The page is whole without it; what a view shows stands in the address.
(() => {
  "use strict";
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, text = "", attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  // What the page holds is packed: base64 of gzip.
  const unpack = async (content) => {
    const bytes = Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const libraries = new Map();
  const library = (name) => {
    if (!libraries.has(name)) {
      libraries.set(name, unpack(find(`#library-${name}`).textContent).then((code) => {
        document.head.append(make("script", code));
      }));
    }
    return libraries.get(name);
  };
  const save = (name, type, content) => {
    const link = make("a", "", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const csv = (rows) => rows.map((row) => row.map((value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }).join(",")).join("\n") + "\n";

  // ---------------------------------------------------------------- the matrix as it came
  const source = find("#squares");
  if (source) {
    const tools = find("#tools");
    const columns = all("thead tr:first-child th[data-key]", source).map((head, i) => ({
      ...head.dataset, head, state: find("tr.states", source).cells[i + 1],
    }));
    const rows = all("tbody tr", source).map((line) => ({
      method: line.dataset.method, label: line.cells[0].textContent, reference: line.classList.contains("reference"),
      head: line.cells[0], squares: new Map([...line.cells].slice(1).map((cell) => [cell.dataset.key, cell])),
    }));
    const scenarios = [...new Set(columns.map((column) => column.scenario))];
    const ROOMY = 8; // columns beside which bars may be long
    const ALL = { sort: "", order: "asc", verdict: "", system: "", method: "", hide: [], steps: false, transpose: false, open: "" };
    let state = { ...ALL };

    // ---------------------------------------------------------------- state and address
    const fromAddress = () => {
      const hash = location.hash.slice(1);
      const given = new URLSearchParams(hash.includes("=") ? hash : "");
      return {
        ...ALL, sort: given.get("sort") || "", order: given.get("order") === "desc" ? "desc" : "asc",
        verdict: given.get("verdict") || "", system: given.get("system") || "", method: given.get("method") || "",
        hide: given.getAll("hide"), steps: given.has("steps"), transpose: given.has("transpose"), open: given.get("open") || "",
      };
    };
    const toAddress = () => {
      const given = new URLSearchParams();
      for (const name of ["sort", "verdict", "system", "method", "open"]) if (state[name]) given.set(name, state[name]);
      if (state.sort && state.order === "desc") given.set("order", "desc");
      for (const scenario of state.hide) given.append("hide", scenario);
      for (const name of ["steps", "transpose"]) if (state[name]) given.set(name, "1");
      history.replaceState(null, "", `#${given}`);
    };
    const fillTools = () => {
      for (const name of ["verdict", "system", "method"]) tools.elements[name].value = state[name];
      if (tools.elements.steps) tools.elements.steps.checked = state.steps;
      tools.elements.transpose.checked = state.transpose;
      for (const box of all('[name="scenario"]', tools)) box.checked = !state.hide.includes(box.value);
    };

    // ---------------------------------------------------------------- a view: groups of columns and rows that are shown
    const matches = (cell) => !state.verdict || cell?.dataset.verdict === state.verdict;
    const view = () => {
      let shown = columns.filter((column) => !state.hide.includes(column.scenario) && (!state.system || column.system === state.system));
      const wanted = state.method.toLowerCase();
      let lines = rows.filter((row) => row.label.toLowerCase().includes(wanted) && shown.some((column) => row.squares.get(column.key)?.dataset.verdict));
      if (state.verdict) {
        lines = lines.filter((row) => !row.reference && shown.some((column) => matches(row.squares.get(column.key))));
        shown = shown.filter((column) => lines.some((row) => matches(row.squares.get(column.key))));
      }
      const groups = [];
      for (const column of shown) {
        const last = groups.at(-1);
        if (!state.steps && last && last[0].scenario === column.scenario) last.push(column);
        else groups.push([column]);
      }
      return { groups, lines };
    };

    // A scenario whose steps are not shown: a mark for each step, the verdicts with their counts, the range of shares.
    const gathered = (cells) => {
      const known = cells.filter((cell) => cell?.dataset.verdict);
      const cell = make("td", "", { class: "square none", "data-order": "999" });
      if (!known.length) return cell;
      const order = Math.max(...known.map((one) => Number(one.dataset.order)));
      const worst = known.find((one) => Number(one.dataset.order) === order);
      cell.className = `${worst.className} gathered`;
      cell.dataset.order = order;
      const marks = make("span", "", { class: "marks" });
      for (const one of known) {
        const link = find("a", one).cloneNode(false);
        const column = columns.find((other) => other.key === one.dataset.key);
        link.dataset.open = `${one.parentNode.dataset.method}|${one.dataset.key}`;
        link.setAttribute("aria-label", `${column.step}: ${one.dataset.verdict}`);
        link.className = [...one.classList].find((name) => ["like", "traces", "over", "damaged", "unknown"].includes(name)) + (matches(one) ? "" : " dim");
        link.title = `${column.step}: ${one.dataset.verdict}`;
        link.append(make("span", find(".mark", one).textContent, { "aria-hidden": "true" }));
        marks.append(link);
      }
      const alike = known.filter((one) => one.dataset.verdict === worst.dataset.verdict).length;
      const shares = known.map((one) => find(".share", one)).filter(Boolean).map((share) => parseInt(share.textContent.replace("−", "-"), 10));
      cell.append(marks);
      if (shares.length) {
        const [low, high] = [Math.min(...shares), Math.max(...shares)];
        const sign = (value) => String(value).replace("-", "−");
        const share = make("span", low === high ? `${sign(low)} %` : `${sign(low)}–${sign(high)} %`, { class: "share" });
        share.append(make("span", " removed, ", { class: "hidden" }));
        cell.append(share);
      }
      if (known.some((one) => find(".loss", one))) cell.append(make("span", "▼", { class: "loss", title: "lost accuracy at some steps" }));
      cell.append(make("span", alike === known.length ? worst.dataset.verdict : `${worst.dataset.verdict} ${alike}/${known.length}`, { class: "word" }));
      return cell;
    };
    const squareOf = (row, group) => {
      if (group.length > 1) return gathered(group.map((column) => row.squares.get(column.key)));
      const cell = row.squares.get(group[0].key).cloneNode(true);
      const link = find("a", cell);
      if (link) {
        link.dataset.open = `${row.method}|${group[0].key}`;
        link.setAttribute("aria-label", `${row.label.trim()}, ${group[0].key.replace("|", " ").trim()}: ${link.textContent.trim()}`);
      }
      cell.classList.toggle("dim", !matches(cell));
      return cell;
    };
    const headOf = (group) => {
      const head = group[0].head.cloneNode(true);
      head.dataset.sort = group.length > 1 ? group[0].scenario : group[0].key;
      if (group.length > 1) find(".step", head).textContent = `${group.length} steps`;
      return head;
    };
    const stateOf = (group) => {
      const cell = group[0].state.cloneNode(true);
      const doubtful = group.filter((column) => !column.state.classList.contains("good"));
      if (group.length > 1 && doubtful.length && new Set(group.map((column) => column.state.textContent)).size > 1) {
        const counts = new Map();
        for (const column of group) {
          const words = column.state.textContent.trim();
          counts.set(words, [...(counts.get(words) || []), column]);
        }
        cell.replaceChildren();
        for (const [words, members] of counts) {
          const link = make("a", `${words}${members.length < group.length ? ` ${members.length}/${group.length}` : ""}`, { href: "#controls", "data-column": members[0].key });
          cell.append(link);
        }
        cell.className = `state ${doubtful.some((column) => column.state.classList.contains("bad")) ? "bad" : "open"}`;
      }
      return cell;
    };

    // ---------------------------------------------------------------- drawing a view
    const table = (groups, lines) => {
      const across = state.transpose ? lines.length : groups.length;
      const drawn = make("table", "", { class: `matrix${across <= ROOMY ? " roomy" : ""}`, id: "squares" });
      const [top, body] = [make("thead"), make("tbody")];
      const upper = make("tr");
      if (state.transpose) {
        upper.append(make("th", "scenario", { scope: "col", class: "corner" }), make("th", "checks", { scope: "col", "data-sort": "controls" }));
        for (const row of lines) upper.append(make("th", row.label, { scope: "col", "data-sort": row.method }));
        for (const [i, group] of groups.entries()) {
          const line = make("tr");
          const head = make("th", "", { scope: "row", "data-order": i });
          head.append(...headOf(group).childNodes);
          line.append(head, stateOf(group), ...lines.map((row) => squareOf(row, group)));
          body.append(line);
        }
      } else {
        const lower = make("tr", "", { class: "states" });
        upper.append(make("th", "method", { scope: "col", class: "corner" }), ...groups.map(headOf));
        lower.append(make("th", "checks", { scope: "row", class: "corner", "data-dt-order": "disable" }), ...groups.map(stateOf));
        top.append(upper, lower);
        for (const row of lines) {
          const line = make("tr", "", { class: row.reference ? "reference" : "" });
          line.append(row.head.cloneNode(true), ...groups.map((group) => squareOf(row, group)));
          body.append(line);
        }
      }
      if (!top.children.length) top.append(upper);
      drawn.append(top, body);
      return drawn;
    };
    let sorted = null;
    const draw = () => {
      const { groups, lines } = view();
      const drawn = table(groups, lines);
      const focus = document.activeElement?.dataset?.sort;
      sorted?.destroy();
      document.documentElement.classList.add("drawn");
      find("#stage").replaceChildren(drawn);
      find("#count").textContent = `${lines.length} methods in ${groups.length} columns are shown`;
      if (!lines.length || !groups.length) {
        find("#stage").replaceChildren(make("p", "No verdict is like this.", { class: "frame" }));
        sorted = null;
        return;
      }
      const heads = all("thead tr:first-child th", drawn);
      const at = heads.findIndex((head) => head.dataset.sort === state.sort);
      sorted = new DataTable(drawn, {
        paging: false, info: false, searching: false, autoWidth: false, titleRow: 0, orderMulti: false, layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null },
        order: state.sort && at > 0 ? [[at, state.order]] : [],
        columnDefs: [{ targets: "_all", type: "num", orderSequence: ["asc", "desc", ""] }],
      });
      sorted.on("order", () => {
        const [first] = sorted.order();
        const column = first && first.length && first[1] ? heads[first[0]] : null;
        if (!column || (column.dataset.sort || "") !== state.sort || first[1] !== state.order) {
          state.sort = column?.dataset.sort || "";
          state.order = first?.[1] === "desc" ? "desc" : "asc";
          toAddress();
        }
      });
      if (focus) heads.find((head) => head.dataset.sort === focus)?.focus();
      rove(drawn);
    };

    // One stop of the tab key for all squares; arrows go from one to the next.
    const rove = (drawn) => {
      const links = all("tbody a", drawn);
      links.forEach((link, i) => { link.tabIndex = i ? -1 : 0; });
      drawn.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        const link = event.target.closest("tbody a");
        if (!step || !link) return;
        event.preventDefault();
        const inside = all("a", link.closest("td"));
        let next = step[1] ? inside[inside.indexOf(link) + step[1]] : null;
        let [cell, line] = [link.closest("td"), link.closest("tr")];
        while (!next && cell) {
          const index = cell.cellIndex;
          if (step[0]) line = step[0] > 0 ? line.nextElementSibling : line.previousElementSibling;
          cell = step[0] ? line?.cells[index] : step[1] > 0 ? cell.nextElementSibling : cell.previousElementSibling;
          next = cell && find("a", cell);
        }
        if (!next) return;
        link.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      });
    };

    // ---------------------------------------------------------------- what lies behind a square
    let details = null;
    const behind = find("#behind");
    const facts = async () => {
      details ??= JSON.parse(await unpack(find("#details").textContent));
      return details;
    };
    const listed = (heads, lines) => {
      const list = make("table");
      const top = make("tr");
      for (const head of heads) top.append(make("th", head, { scope: "col" }));
      list.append(make("thead"), make("tbody"));
      list.tHead.append(top);
      for (const line of lines) {
        const row = make("tr");
        line.forEach((text, i) => row.append(make(i ? "td" : "th", text, i ? {} : { scope: "row" })));
        list.tBodies[0].append(row);
      }
      const box = make("div", "", { class: "scroll", tabindex: "0", role: "group", "aria-label": heads[0] });
      box.append(list);
      return box;
    };
    const show = async () => {
      if (!state.open) {
        if (behind.open) behind.close();
        return;
      }
      const { squares, columns: places } = await facts();
      const content = find("#behind-content");
      content.replaceChildren();
      const [method, ...rest] = state.open.split("|");
      const key = rest.join("|");
      const square = squares[state.open];
      const place = places[key] || places[state.open];
      const close = make("button", "close", { type: "button", class: "close" });
      close.addEventListener("click", () => behind.close());
      content.append(close);
      if (!place) {
        content.append(make("h2", "Nothing is known of this address", { id: "behind-title" }));
      } else if (!square) {
        content.append(make("h2", place.label, { id: "behind-title" }), make("p", `${place.state}: ${place.sentence}`));
        if (place.nearest) content.append(make("p", place.nearest));
      } else {
        content.append(make("h2", `${square.method} in ${place.label}`, { id: "behind-title" }));
        const verdict = make("p", "", { class: `verdict ${square.tone || "unknown"}` });
        const rest = square.sentence.startsWith(square.word) ? square.sentence.slice(square.word.length) : `: ${square.sentence}`;
        verdict.append(make("span", square.mark, { class: "mark", "aria-hidden": "true" }), " ", make("strong", square.word), `${rest}.`);
        content.append(verdict);
        if (!place.state.startsWith("✓")) content.append(make("p", `The column's checks say “${place.state}”: ${place.sentence}`, { class: "frame" }));
        content.append(atAGlance(square, place));
      }
      if (!behind.open) behind.showModal();
      if (!square) return;
      evidence(content, square, method, key);
    };
    // What most people open a square for, before what it rests on.
    const atAGlance = (square, place) => {
      const list = make("dl", "", { class: "glance" });
      const say = (name, text, more = []) => {
        if (!text) return;
        const said = make("dd", text);
        said.append(...more);
        list.append(make("dt", name), said);
      };
      say("nearest", place.nearest);
      say("ranks", square.ranks && `${square.ranks}; at 95 % for all at once, references included`);
      const records = document.getElementById(`records-${square.number}`);
      const jump = make("button", "see them", { type: "button" });
      jump.addEventListener("click", () => find(".records", behind).scrollIntoView());
      say("records", records && find("p", records).firstChild.textContent.trim(), records && find("ul", records) ? [" ", jump] : []);
      say("decides", square.why);
      say("cost", square.cost);
      return list;
    };
    const evidence = (content, square, method, key) => {
      if (square.distances.length) {
        content.append(listed(["distance from retraining by", "distance", "margin", "traces removed", "p"], square.distances.map((row) => [row.label, row.text, row.margin, row.closed, row.p])));
        if (square.distances.some((row) => row.closed === "undefined")) content.append(make("p", "The share of traces removed is undefined by a metric that cannot tell doing nothing from retraining.", { class: "frame" }));
      }
      if (square.worth.length) content.append(listed(["below retraining", "difference"], square.worth.map((row) => [row.label, row.text])));
      const recognised = document.getElementById(`records-${square.number}`)?.cloneNode(true);
      if (recognised && find("ul", recognised)) {
        recognised.removeAttribute("id");
        content.append(recognised);
      }
      const more = make("section");
      if (square.command) {
        const copy = make("button", "copy", { type: "button" });
        const line = Object.assign(make("pre", square.command), { tabIndex: 0 });
        copy.addEventListener("click", async () => {
          getSelection().selectAllChildren(line);
          await navigator.clipboard?.writeText(square.command).catch(() => {});
          copy.textContent = "copied";
        });
        const words = make("p", "To compute its numbers again: ");
        words.append(copy);
        more.append(words, line);
      }
      const button = make("button", "csv of these distances", { type: "button" });
      button.addEventListener("click", () => {
        const names = Object.keys(square.rows[0] || {});
        const [scenario, setting] = key.split(/\|(.*)/s);
        save(`${method}-${key.replace(/\W+/g, "-")}.csv`, "text/csv", csv([["scenario", "setting", "method", ...names], ...square.rows.map((row) => [scenario, setting, method, ...names.map((name) => row[name])])]));
      });
      more.append(button);
      content.append(more);
    };

    // ---------------------------------------------------------------- events
    const change = (next, redraw = true) => {
      state = { ...state, ...next };
      toAddress();
      if (redraw) draw();
    };
    tools.addEventListener("input", () => {
      const { verdict, system, method, steps, transpose } = tools.elements;
      const hide = all('[name="scenario"]', tools).filter((box) => !box.checked).map((box) => box.value);
      change({ verdict: verdict.value, system: system.value, method: method.value, steps: Boolean(steps?.checked), transpose: transpose.checked, hide });
    });
    tools.addEventListener("submit", (event) => event.preventDefault());
    tools.addEventListener("reset", (event) => {
      event.preventDefault();
      state = { ...ALL };
      fillTools();
      change({});
    });
    tools.elements.csv.addEventListener("click", () => {
      const { groups, lines } = view();
      const shown = groups.flat();
      const heads = ["method", "scenario", "step", "verdict", "traces removed", "may be the nearest", "lost use"];
      const body = lines.flatMap((row) => shown.map((column) => [row, column, row.squares.get(column.key)]))
        .filter(([, , cell]) => cell?.dataset.verdict && matches(cell))
        .map(([row, column, cell]) => [row.method, column.scenario, column.step, cell.dataset.verdict, find(".share", cell)?.firstChild.textContent, find(".near", cell) ? "yes" : "", find(".loss", cell)?.title]);
      save("verdicts-of-this-view.csv", "text/csv", csv([heads, ...body]));
    });
    find("#stage").addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      change({ open: link.dataset.open || link.dataset.column }, false);
      show();
    });
    behind.addEventListener("close", () => {
      if (state.open) change({ open: "" }, false);
      find("#pointer")?.remove();
    });
    behind.addEventListener("click", (event) => { if (event.target === behind) behind.close(); });
    addEventListener("hashchange", () => {
      if (location.hash && !location.hash.includes("=")) return;
      state = fromAddress();
      fillTools();
      draw();
      show();
    });

    library("datatables").then(() => {
      tools.hidden = false;
      state = fromAddress();
      fillTools();
      draw();
      document.documentElement.dataset.ready = "true";
      return show();
    }).catch(() => { document.documentElement.classList.add("drawn"); });
    addEventListener("beforeprint", () => { if (behind.open) behind.close(); });
  }

  // ---------------------------------------------------------------- files and long tables
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-content]");
    if (!link) return;
    event.preventDefault();
    save(link.download, link.dataset.type, await unpack(link.dataset.content));
  });
  // A table is sorted once its part of the page is opened. Sections become a column, because lines leave them.
  const flatten = (table) => {
    const bodies = [...table.tBodies].filter((body) => !body.classList.contains("footer"));
    if (bodies.length < 2 && !find("tr.section", table)) return;
    const rows = all("thead tr", table);
    rows.forEach((row, i) => row.prepend(make(i === rows.length - 1 ? "th" : "td", i === rows.length - 1 ? "scenario" : "", i === rows.length - 1 ? { scope: "col" } : {})));
    const body = make("tbody");
    for (const part of bodies) {
      const name = find("tr.section", part)?.textContent.trim() || "";
      for (const row of all("tr:not(.section)", part)) {
        row.prepend(make("td", name));
        body.append(row);
      }
      part.remove();
    }
    table.append(body);
  };
  const sortable = async (part) => {
    await library("datatables");
    for (const table of all("table:not(.words):not(.dataTable):not(.matrix)", part)) {
      if (find("tbody.footer", table)) continue;
      flatten(table);
      new DataTable(table, {
        paging: false, info: false, searching: false, autoWidth: false, order: [],
        layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null },
      });
    }
  };
  for (const part of all("details.table")) part.addEventListener("toggle", () => { if (part.open) sortable(part); });
})();
