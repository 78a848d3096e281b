"use strict";
(() => {
  const PERIOD = 2000;
  const PAGE = 100;
  const byId = (id) => document.getElementById(id);

  // ---- Numbers in words.
  const group = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const whole = (n) => group.format(n);
  const brief = (n) =>
    n >= 1e9 ? trim(n / 1e9) + "G" : n >= 1e6 ? trim(n / 1e6) + "M" : n >= 1e4 ? trim(n / 1e3) + "k" : whole(n);
  const trim = (n) => (n >= 100 ? n.toFixed(0) : n.toFixed(1).replace(/\.0$/, ""));
  const rate = (n) => (n === 0 ? "0" : n < 10 ? n.toFixed(1) : brief(n));
  const span = (us) =>
    us == null ? "–" : us < 1000 ? us + " µs" : us < 1e6 ? trim(us / 1e3) + " ms" : trim(us / 1e6) + " s";
  const bytes = (n) =>
    n < 1024 ? n + " B" : n >= 1 << 30 ? trim(n / (1 << 30)) + " GiB" : n >= 1 << 20 ? trim(n / (1 << 20)) + " MiB" : Math.round(n / 1024) + " KiB";
  const share = (part, all) => {
    const percent = all === 0 ? 0 : (100 * part) / all;
    return percent === 0 || percent >= 99.95 ? percent.toFixed(0) + "%" : percent < 0.1 ? "<0.1%" : percent.toFixed(1) + "%";
  };
  const many = (n, word) => `${brief(n)} ${word}${n === 1 ? "" : "s"}`;
  const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const ago = (ms) => {
    const s = Math.max(0, Math.round(ms / 1000));
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
    return Math.floor(s / 86400) + " d " + Math.floor((s % 86400) / 3600) + " h";
  };

  // ---- The page's elements. Texts go in as text, never as markup.
  const SVG = "http://www.w3.org/2000/svg";
  const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value == null || value === false) continue;
      node.setAttribute(name === "cls" ? "class" : name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child != null));
    return node;
  }
  const put = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
  };
  const mark = (node, name, value) => {
    if (value == null ? node.hasAttribute(name) : node.getAttribute(name) !== value) {
      if (value == null) node.removeAttribute(name);
      else node.setAttribute(name, value);
    }
  };
  const facts = (list, rows) => {
    while (list.children.length > rows.length) list.lastElementChild.remove();
    rows.forEach(([term, text, tone], index) => {
      const row = list.children[index] ?? list.appendChild(el("div", {}, el("dt"), el("dd")));
      put(row.firstChild, term);
      put(row.lastChild, text);
      mark(row.lastChild, "class", tone || null);
    });
  };

  // ---- Lines and areas. `y` of a value is counted from the top, in a box of `width` by `height`.
  function path(values, most, width, height, pad) {
    const step = values.length > 1 ? width / (values.length - 1) : 0;
    let line = "";
    let pen = "M";
    values.forEach((value, index) => {
      if (value == null) {
        pen = "M";
        return;
      }
      const y = height - pad - (Math.min(value, most) / most) * (height - 2 * pad);
      line += pen + (index * step).toFixed(1) + " " + y.toFixed(1);
      pen = "L";
    });
    return line;
  }
  /** Down to the ground, piece by piece: where there is no value there is no area. */
  function area(values, most, width, height, pad) {
    const step = values.length > 1 ? width / (values.length - 1) : 0;
    let shape = "";
    let start = null;
    values.forEach((value, index) => {
      if (value != null) start ??= index;
      const end = value == null ? index - 1 : index;
      if (start == null || (value != null && index < values.length - 1)) return;
      const line = path([...Array(start).fill(null), ...values.slice(start, end + 1)], most, step * end, height, pad);
      if (end > start) shape += `${line}L${(step * end).toFixed(1)} ${height}L${(step * start).toFixed(1)} ${height}Z`;
      start = null;
    });
    return shape;
  }
  /** What is short of a minute stands at the right, where now is. */
  const right = (values, least) => [...Array(Math.max(0, least - values.length)).fill(null), ...values];
  function spark(node, tone, list) {
    const values = right(list, 30);
    if (!node.firstChild) {
      node.append(svg("path", { cls: "area-" + tone }), svg("path", { cls: "line-" + tone }));
    }
    const [under, over] = node.children;
    const most = Math.max(1e-9, ...values.map((value) => value ?? 0));
    mark(under, "class", "area-" + tone);
    mark(over, "class", "line-" + tone);
    mark(under, "d", area(values, most, 100, 30, 2));
    mark(over, "d", path(values, most, 100, 30, 2));
  }
  function nice(most) {
    const power = Math.pow(10, Math.floor(Math.log10(most)));
    return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((lead) => most / power <= lead + 1e-9) * power;
  }

  /** Left of a chart, for the numbers of its levels. */
  const GUTTER = 44;
  /** A chart with a grid, and the values under the pointer or the arrow keys. */
  function chart(box, legend, series, label, none, format) {
    const node = svg("svg", { role: "img", tabindex: "0", preserveAspectRatio: "none" });
    const tip = el("div", { cls: "tip", hidden: true });
    const cursor = svg("line", { cls: "grid", y1: "0" });
    box.append(node, tip);
    for (const { name, tone } of series) legend.append(el("span", {}, el("i", { cls: "bg-" + tone }), name));
    let data = null;
    let at = null;
    const show = () => {
      tip.hidden = at == null || !data || data[0].length === 0;
      cursor.style.display = tip.hidden ? "none" : "";
      if (tip.hidden) return;
      const count = data[0].length;
      const index = Math.max(0, Math.min(count - 1, at));
      const seconds = (count - 1 - index) * (PERIOD / 1000);
      const told = series.map(({ name }, k) => name + "  " + (data[k][index] == null ? "–" : format(data[k][index])));
      put(tip, [seconds ? seconds + " s ago" : "now", ...told].join("\n"));
      const x = GUTTER + (count > 1 ? (index / (count - 1)) * (box.clientWidth - GUTTER) : 0);
      tip.style.left = Math.min(Math.max(0, x + 10), box.clientWidth - tip.offsetWidth) + "px";
      for (const name of ["x1", "x2"]) cursor.setAttribute(name, x);
    };
    box.addEventListener("pointermove", (event) => {
      if (!data) return;
      const place = (event.clientX - box.getBoundingClientRect().left - GUTTER) / (box.clientWidth - GUTTER);
      at = Math.round(place * (data[0].length - 1));
      show();
    });
    const leave = () => {
      at = null;
      show();
    };
    box.addEventListener("pointerleave", leave);
    node.addEventListener("blur", leave);
    node.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move || !data) return;
      event.preventDefault();
      at = Math.max(0, Math.min(data[0].length - 1, (at ?? data[0].length) + move));
      show();
    });
    return (lists) => {
      const values = lists.map((list) => right(list, 30));
      data = values;
      const [width, height] = [box.clientWidth || 600, box.clientHeight || 190];
      const peak = Math.max(0, ...values.flat().map((value) => value ?? 0));
      const most = peak ? nice(peak) : 1;
      node.setAttribute("viewBox", `0 0 ${width} ${height}`);
      const last = values.map((list, k) => series[k].name + " " + format(list[list.length - 1])).join(", ");
      node.setAttribute("aria-label", `${label}: ${last}. Arrow keys show earlier values.`);
      const levels = [0, 0.5, 1].map((level) => [level, height - 18 - level * (height - 30)]);
      const parts = (peak ? levels : levels.slice(0, 1)).map(([, y]) => svg("line", { cls: "grid", x1: GUTTER, x2: width, y1: y, y2: y }));
      const inner = height - 18;
      series.forEach(({ tone }, k) => {
        const shape = svg("g", {});
        const long = width - GUTTER;
        if (series[k].filled) shape.append(svg("path", { cls: "area-" + tone, d: area(values[k], most, long, inner, 0) }));
        shape.append(svg("path", { cls: "line-" + tone, d: path(values[k], most, long, inner, 0) }));
        shape.setAttribute("transform", `translate(${GUTTER} 12) scale(1 ${(inner - 12) / inner})`);
        parts.push(shape);
      });
      for (const [level, y] of peak ? levels : levels.slice(0, 1)) {
        parts.push(svg("text", { x: GUTTER - 8, y: y + 4, "text-anchor": "end" }, level ? format(level * most) : "0"));
      }
      if (!peak) parts.push(svg("text", { cls: "none", x: (GUTTER + width) / 2, y: height / 2, "text-anchor": "middle" }, none));
      const minutes = ((values[0].length - 1) * PERIOD) / 60000;
      if (minutes >= 0.5) parts.push(svg("text", { x: GUTTER, y: height - 3 }, `${trim(minutes)} min ago`));
      parts.push(svg("text", { x: width, y: height - 3, "text-anchor": "end" }, "now"));
      cursor.setAttribute("y2", height - 18);
      node.replaceChildren(...parts, cursor);
      show();
    };
  }
  const drawRate = chart(
    byId("chart-rate"), byId("legend-rate"),
    [{ name: "delivered", tone: "good", filled: true }, { name: "not delivered", tone: "bad", filled: true }, { name: "retries", tone: "warn" }],
    "Notifications per second", "No notification has ended yet.", (value) => rate(value ?? 0));
  const drawLatency = chart(
    byId("chart-latency"), byId("legend-latency"),
    [{ name: "p99", tone: "second", filled: true }, { name: "p50", tone: "accent", filled: true }],
    "From the request's record to its result, end to end", "Nothing to time yet.", (value) => span(value == null ? null : Math.round(value)));

  // ---- Tiles.
  const tiles = {};
  function tile(id, title, value, unit, note, values, tone, state) {
    const box = (tiles[id] ??= (() => {
      const made = el("div", { cls: "card tile" }, el("h2", {}, title), el("p", { cls: "value" }, "", el("small")), el("p", { cls: "note" }),
        svg("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" }));
      made.querySelector(".value").prepend(document.createTextNode(""));
      byId("tiles").append(made);
      return made;
    })());
    const number = box.children[1];
    if (number.firstChild.data !== value) number.firstChild.data = value;
    put(number.lastChild, unit);
    put(box.children[2], note);
    mark(box, "class", "card tile " + (state ?? ""));
    spark(box.lastChild, tone, values);
  }
  const last = (list) => list[list.length - 1] ?? 0;

  function showTiles(data) {
    const { history: h, totals: t, connections: c } = data;
    const [good, bad] = [last(h.delivered), last(h.not_delivered)];
    tile("good", "Delivered", rate(good), "/s", brief(t.delivered) + " since the start", h.delivered, "good");
    const part = good + bad > 0 ? bad / (good + bad) : 0;
    tile("bad", "Not delivered", rate(bad), "/s", share(bad, good + bad) + " of what ends now", h.not_delivered, "bad",
      part >= 0.5 && bad > 0 ? "bad" : part >= 0.1 && bad > 0 ? "warn" : null);
    const [slow, unit] = span(last(h.p99_us) || null).split(" ");
    tile("time", "End to end p99", slow, unit ?? "", "p50 " + span(last(h.p50_us) || null), h.p99_us, "second");
    tile("flight", "In flight", brief(t.in_flight), "", t.held ? "held by a cap" : bytes(t.in_flight_bytes) + ", " + (t.waiting ? brief(t.waiting) + " to retry" : "none to retry"),
      h.in_flight, "accent", t.held ? "warn" : null);
    tile("lag", "Lag", brief(last(h.lag)), last(h.lag) === 1 ? "record" : "records", "on " + many(data.partitions.length + data.partitions_left_out, "partition"), h.lag, "warn");
    tile("links", "Connections", brief(c.open), "open", many(c.streams, "stream") + (c.connecting ? ", " + c.connecting + " connecting" : ""), h.connections, "accent");
  }

  const parked = (one) => whole(one.parked) + (one.parked ? `, ${whole(one.unparked)} taken up again` : "");

  // ---- Problems.
  function showProblems(data) {
    const list = byId("problem-list");
    // What is wrong now comes before the charts.
    mark(byId("problems"), "class", data.problems.some((one) => one.now) ? "card first" : data.problems.length ? "card" : "card none");
    if (data.problems.length === 0) {
      delete list.dataset.key;
      list.replaceChildren(el("li", {}, el("span", { cls: "dot good" }), el("div", { cls: "text" }, "None, now or since the start.")));
      return;
    }
    const key = JSON.stringify(data.problems);
    if (list.dataset.key === key) {
      list.querySelectorAll(".when").forEach((node, index) => put(node, when(data.problems[index], data.time)));
      return;
    }
    list.dataset.key = key;
    const held = document.activeElement.dataset.problem;
    list.replaceChildren(...data.problems.map((one) => {
      const title = el("strong", {}, one.message);
      const head = el("div", {}, one.now ? el("span", { cls: "now" }, "now ") : null, title,
        one.app ? el("span", { cls: "tag" }, one.app) : null, el("code", {}, one.code));
      const told = [one.cause ? el("p", {}, "Cause: " + one.cause) : null, one.meaning ? el("p", {}, one.meaning) : null,
        one.mend ? el("p", { cls: "mend" }, "→ " + one.mend) : null];
      const text = el("div", { cls: "text" }, ...(one.now ? [head, ...told] : [past(`${one.code} ${one.app}`, head, told)]));
      const tone = one.level === "error" ? "bad" : "warn";
      return el("li", {}, el("span", { cls: "dot " + tone, role: "img", "aria-label": one.level }), text,
        el("span", { cls: "when quiet" }, when(one, data.time)));
    }));
    if (held) [...list.querySelectorAll("summary")].find((node) => node.dataset.problem === held)?.focus({ preventScroll: true });
  }
  /** What is over is one line, until somebody opens it. */
  const unfolded = new Set();
  function past(key, head, told) {
    const node = el("details", { open: unfolded.has(key) }, el("summary", { "data-problem": key }, head), ...told);
    node.addEventListener("toggle", () => (node.open ? unfolded.add(key) : unfolded.delete(key)));
    return node;
  }
  const when = (one, now) =>
    one.now ? "" : (one.count > 1 ? whole(one.count) + " times, last " : "") + ago(now - one.last) + " ago";

  // ---- Apps.
  const bad = (app) => app.rejected + app.expired + app.failed + app.invalid;
  const ended = (app) => app.delivered + bad(app);
  const trouble = (app) => (app.why ? 3 : 0) + (app.note ? 2 : 0) + (recentBad(app) ? 1 : 0);
  const recentBad = (app) => {
    const [good, wrong] = [sum(app.good.slice(-6)), sum(app.bad.slice(-6))];
    return wrong > 0 && wrong / (good + wrong) >= 0.2;
  };
  const sum = (list) => list.reduce((all, one) => all + one, 0);
  const natural = new Intl.Collator("en", { numeric: true }).compare;
  const COLUMNS = [
    { id: "app", title: "App", down: false },
    { id: "trend", title: "Last 5 min", of: (app) => sum(app.good) + sum(app.bad) },
    { id: "rate", title: "Per second", of: (app) => app.per_second },
    { id: "delivered", title: "Delivered", of: (app) => app.delivered },
    { id: "bad", title: "Not delivered", of: bad },
    { id: "flight", title: "In flight", of: (app) => app.in_flight },
    { id: "p50", title: "APNs p50", of: (app) => app.p50_us ?? -1 },
    { id: "p99", title: "APNs p99", of: (app) => app.p99_us ?? -1 },
    { id: "links", title: "Connections", of: (app) => app.open },
  ];
  const view = { sort: "trouble", down: true, filter: "", which: "all", most: PAGE, opened: new Set() };
  const rows = new Map();
  let latest = null;

  const headRow = document.querySelector("#app-table thead tr");
  for (const column of COLUMNS) {
    const button = el("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      view.down = view.sort === column.id ? !view.down : column.down ?? true;
      view.sort = column.id;
      showApps();
    });
    headRow.append(el("th", { scope: "col", "data-id": column.id }, button));
  }
  byId("order").append(el("option", { value: "trouble" }, "trouble first"), ...COLUMNS.map((column) => el("option", { value: column.id }, column.title)));
  byId("order").addEventListener("change", (event) => {
    view.sort = event.target.value;
    view.down = view.sort !== "app";
    showApps();
  });
  byId("filter").addEventListener("input", (event) => {
    view.filter = event.target.value.trim().toLowerCase();
    view.most = PAGE;
    showApps();
  });
  byId("which").addEventListener("change", (event) => {
    view.which = event.target.value;
    view.most = PAGE;
    showApps();
  });
  byId("more").addEventListener("click", () => {
    view.most += 5 * PAGE;
    showApps();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
    event.preventDefault();
    byId("filter").focus();
  });

  function makeRow(name) {
    const button = el("button", { type: "button", cls: "name", "aria-expanded": "false" }, el("span", { cls: "dot" }), el("span", {}, name));
    const why = el("span", { cls: "why", hidden: true });
    const cells = COLUMNS.map((column, index) =>
      index === 0 ? el("td", {}, button, why) : el("td", column.id === "trend" ? { cls: "trend" } : { "data-label": column.title }));
    const good = svg("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img" });
    cells[1].append(good);
    const meter = el("span", { cls: "meter" }, el("i"));
    const [flight, wrong] = [el("span"), el("span", {}, el("span"), el("small"))];
    cells[5].append(flight, meter);
    cells[4].append(wrong);
    const row = { tr: el("tr", { cls: "app" }, ...cells), cells, button, why, good, meter, flight, wrong, detail: null };
    button.addEventListener("click", () => {
      if (!view.opened.delete(name)) view.opened.add(name);
      showApps();
    });
    return row;
  }

  function trend(node, app) {
    if (!node.firstChild) node.append(svg("path", { cls: "area-good" }), svg("path", { cls: "line-good" }), svg("path", { cls: "area-bad" }));
    const all = app.good.map((value, index) => value + app.bad[index]);
    const most = Math.max(1, ...all);
    // One slot alone is as wide as two, so that it can be seen.
    const [upper, lower] = [all, app.bad].map((list) => right(list.length === 1 ? [list[0], list[0]] : list, 7));
    mark(node.children[0], "d", area(upper, most, 100, 30, 2));
    mark(node.children[1], "d", path(upper, most, 100, 30, 2));
    mark(node.children[2], "d", sum(app.bad) ? area(lower, most, 100, 30, 2) : "");
    mark(node, "aria-label", `${whole(sum(app.good))} delivered, ${whole(sum(app.bad))} not, in the last ${Math.round((all.length * 10) / 60)} minutes`);
  }

  function fillRow(row, app) {
    const tone = app.why ? "bad" : app.note || recentBad(app) ? "warn" : ended(app) || app.open ? "good" : "";
    mark(row.button.firstChild, "class", "dot " + tone);
    const state = { bad: "cannot be served", warn: "needs a look", good: "well", "": "idle" }[tone];
    mark(row.button, "aria-label", `${app.app}, ${state}`);
    mark(row.button, "aria-expanded", String(view.opened.has(app.app)));
    row.why.hidden = !(app.why || app.note);
    put(row.why, app.why || app.note || "");
    mark(row.why, "class", app.why ? "why" : "why warn");
    trend(row.good, app);
    put(row.cells[2], rate(app.per_second));
    put(row.cells[3], whole(app.delivered));
    put(row.wrong.firstChild, whole(bad(app)));
    put(row.wrong.lastChild, bad(app) ? share(bad(app), ended(app)) : "");
    mark(row.wrong, "class", bad(app) ? (recentBad(app) ? "bad" : null) : "zero");
    put(row.flight, whole(app.in_flight));
    const part = app.cap ? Math.min(1, app.in_flight / app.cap) : 0;
    row.meter.firstChild.style.width = Math.round(part * 100) + "%";
    mark(row.meter, "class", part >= 0.9 ? "meter full" : "meter");
    mark(row.meter, "title", app.cap ? `of at most ${whole(app.cap)}` : null);
    put(row.cells[6], span(app.p50_us));
    put(row.cells[7], span(app.p99_us));
    put(row.cells[8], String(app.open) + (app.connecting ? ` +${app.connecting}` : ""));
  }

  function fillDetail(row, app, now) {
    row.detail ??= el("tr", { cls: "detail" }, el("td", { colspan: String(COLUMNS.length) }, el("div", { cls: "facts" })));
    const lines = [
      ["Rejected", whole(app.rejected)], ["Expired", whole(app.expired)], ["Failed", whole(app.failed)], ["Invalid", whole(app.invalid)],
      ["Retries", whole(app.retries)], ["Parked", parked(app)],
      ["In flight", whole(app.in_flight) + (app.cap == null ? ", the app was removed" : ` of ${whole(app.cap)}`)], ["Open streams", whole(app.streams)],
      ["Connections open", whole(app.open)], ["Connecting", whole(app.connecting)], ["Draining", whole(app.draining)],
      ...app.reasons.map(([reason, count]) => [reason, whole(count)]),
    ];
    if (app.token_issued) lines.push(["Provider token signed", ago(now - app.token_issued) + " ago"]);
    if (app.certificate_until) lines.push(["Certificate", app.certificate_until < now ? "has expired" : "for " + ago(app.certificate_until - now)]);
    const box = row.detail.firstChild.firstChild;
    while (box.children.length > lines.length) box.lastElementChild.remove();
    lines.forEach(([term, text], index) => {
      const line = box.children[index] ?? box.appendChild(el("div", {}, el("span", { cls: "quiet" }), el("b")));
      put(line.firstChild, term);
      put(line.lastChild, text);
    });
    return row.detail;
  }

  function showApps() {
    if (!latest) return;
    const { apps, time } = latest;
    const column = COLUMNS.find((one) => one.id === view.sort);
    const chosen = apps.filter((app) =>
      (!view.filter || app.app.toLowerCase().includes(view.filter)) &&
      (view.which === "all" || (view.which === "busy" ? app.per_second > 0 || app.in_flight > 0 : trouble(app) > 0)));
    const compare = (a, b) => {
      const [x, y] = column?.of ? [column.of(a), column.of(b)] : column ? [0, 0] : [trouble(a), trouble(b)];
      return ((x - y) * (view.down ? -1 : 1)) || natural(a.app, b.app) * (view.sort === "app" && view.down ? -1 : 1);
    };
    const shown = chosen.sort(compare).slice(0, view.most);
    const wanted = [];
    for (const app of shown) {
      let row = rows.get(app.app);
      if (!row) rows.set(app.app, (row = makeRow(app.app)));
      fillRow(row, app);
      wanted.push(row.tr);
      if (view.opened.has(app.app)) wanted.push(fillDetail(row, app, time));
    }
    arrange(document.querySelector("#app-table tbody"), wanted);
    for (const cell of headRow.children) {
      mark(cell, "aria-sort", cell.dataset.id === view.sort ? (view.down ? "descending" : "ascending") : null);
    }
    byId("order").value = view.sort;
    const left = latest.apps_left_out ? `, ${whole(latest.apps_left_out)} more are not shown` : "";
    const sick = apps.filter((app) => app.why).length;
    put(byId("app-count"), (chosen.length === apps.length ? whole(apps.length) : `${whole(chosen.length)} of ${whole(apps.length)}`) + left + (sick ? `; ${whole(sick)} cannot be served` : ""));
    byId("no-apps").hidden = chosen.length > 0;
    byId("more").hidden = chosen.length <= shown.length;
    put(byId("more"), `Show ${whole(Math.min(5 * PAGE, chosen.length - shown.length))} more of ${whole(chosen.length)}`);
    if (rows.size > apps.length) {
      const names = new Set(apps.map((app) => app.app));
      for (const name of rows.keys()) if (!names.has(name)) rows.delete(name);
    }
  }
  /** Brings a table body's rows into order, touching only what is out of place, so that the focus stays. */
  function arrange(body, wanted) {
    const kept = new Set(wanted);
    for (const child of [...body.children]) if (!kept.has(child)) child.remove();
    wanted.forEach((node, index) => {
      if (body.children[index] !== node) {
        const held = node.contains(document.activeElement) ? document.activeElement : null;
        body.insertBefore(node, body.children[index] ?? null);
        if (held) held.focus({ preventScroll: true });
      }
    });
  }

  // ---- The rest.
  const STAGES = [
    ["record_to_send", "Record to send", "accent"], ["send_to_answer", "Send to APNs' answer", "good"],
    ["answer_to_settled", "Answer to result stored", "second"], ["end_to_end", "End to end", "warn"],
  ];
  function showStages(data) {
    const box = byId("stages");
    const most = Math.max(1, ...STAGES.map(([id]) => data.latency_us[id][1] ?? 0));
    STAGES.forEach(([id, title, tone], index) => {
      const [half, tail] = data.latency_us[id];
      const row = box.children[index] ?? box.appendChild(el("div", { cls: "stage" },
        el("p", { cls: "head" }, el("span", {}, title), el("b"), el("b")), el("div", { cls: "track" }, el("i", { cls: "p99 bg-" + tone }), el("i", { cls: "bg-" + tone }))));
      put(row.firstChild.children[1], span(half));
      put(row.firstChild.children[2], span(tail));
      row.lastChild.firstChild.style.width = (100 * (tail ?? 0)) / most + "%";
      row.lastChild.lastChild.style.width = (100 * (half ?? 0)) / most + "%";
    });
    facts(byId("ping"), [["PING to APNs, p50", span(data.latency_us.ping[0])]]);
  }
  const ENDS = {
    unreachable: "Could not be made", tls: "TLS failed", goaway: "Ended by GOAWAY", lost: "Broke", unresponsive: "Answered no PING",
    idle: "Closed while idle", shutdown: "Drained", replaced: "Replaced",
  };
  function showFacts(data) {
    const { connections: c, totals: t } = data;
    const closed = Object.entries(c.closed).filter(([, count]) => count > 0);
    facts(byId("connections"), [
      ["Open", whole(c.open)], ["Connecting", whole(c.connecting)], ["Draining", whole(c.draining)], ["Streams open", whole(c.streams)],
      ["Opened since the start", whole(c.opened)], ["GOAWAYs", whole(c.goaways)],
      ...closed.map(([cause, count]) => [ENDS[cause] ?? cause, whole(count), ["unreachable", "tls"].includes(cause) ? "bad" : null]),
    ]);
    facts(byId("kafka"), [
      ["Records read", whole(t.consumed)], ["Invalid requests", whole(t.invalid_requests), t.invalid_requests ? "warn" : null],
      ["Dead letters", whole(t.dead_letters)], ["Results under way", whole(t.producer_queue)],
      ["Not stored at first", whole(t.publication_failures), t.publication_failures ? "warn" : null],
      ["Commits", whole(t.commits) + (t.commit_failures ? `, ${whole(t.commit_failures)} failed` : ""), t.commit_failures ? "warn" : null],
      ["Parked", parked(t)], ["Changes of the assignment", whole(t.rebalances)],
      ["Client's errors", whole(t.kafka_errors), t.kafka_errors ? "warn" : null],
    ]);
  }
  function showPartitions(data) {
    // In an order that stays, so that each can be followed.
    data.partitions.sort((a, b) => natural(a.topic, b.topic) || a.partition - b.partition);
    const most = Math.max(1, ...data.partitions.map((one) => one.lag ?? 0));
    const box = byId("partitions");
    while (box.children.length > data.partitions.length) box.lastElementChild.remove();
    data.partitions.forEach((one, index) => {
      const node = box.children[index] ?? box.appendChild(el("div", { role: "listitem" }, el("span", { cls: "topic" }), el("b"), el("i")));
      mark(node, "class", one.paused ? "partition paused" : "partition");
      put(node.firstChild, `${one.topic} ${one.partition}` + (one.paused ? " · waits" : ""));
      put(node.children[1], one.lag == null ? "–" : brief(one.lag));
      node.lastChild.style.width = (100 * (one.lag ?? 0)) / most + "%";
    });
    const count = data.partitions.length + data.partitions_left_out;
    put(byId("partition-count"), count === 0 ? "none are assigned to this replica" : `${count}; ${many(last(data.history.lag), "record")} behind` + (data.partitions_left_out ? `; the ${data.partitions.length} that are furthest behind` : ""));
  }
  function showService(data) {
    const { service: s } = data;
    put(byId("replica"), `${s.version} on ${s.host}, up ${ago(data.time - s.started)}`);
    document.title = (data.problems.some((one) => one.now) ? "⚠ " : "") + "Martlet – " + s.host;
    const state = byId("state");
    put(state, s.state + (s.why.length ? ": " + s.why.join("; ") : ""));
    mark(state, "class", "pill " + (s.state === "ready" ? "good" : s.state === "draining" || s.state === "starting" ? "warn" : "bad"));
    const parts = [
      `${trim(s.cpu)}% of one core`, `${bytes(s.memory)} resident`, `${whole(s.descriptors)} of ${whole(s.most_descriptors)} descriptors`, `${s.threads} threads`,
      `configuration of ${moment.format(s.configured)}` + (s.reload_ok ? "" : " (the last reload was refused)"),
    ];
    byId("process").replaceChildren(...parts.map((text) => el("span", {}, text)), el("a", { href: "/metrics" }, "metrics"), el("a", { href: "/readyz" }, "readyz"));
  }
  function show(data) {
    latest = data;
    for (const part of [showService, showTiles, showProblems, showApps, showStages, showFacts, showPartitions]) part(data);
    const h = data.history;
    drawRate([h.delivered, h.not_delivered, h.retries]);
    drawLatency([h.p99_us, h.p50_us]);
  }

  // ---- Asking.
  let paused = false;
  let heard = 0;
  let failures = 0;
  async function ask() {
    try {
      const answer = await fetch("/status.json", { cache: "no-store", signal: AbortSignal.timeout(8000) });
      if (!answer.ok) throw new Error("it answered " + answer.status);
      show(await answer.json());
      heard = Date.now();
      failures = 0;
      byId("offline").hidden = true;
    } catch (error) {
      failures += 1;
      if (failures > 1) {
        put(byId("offline"), `No word from the service${heard ? ` for ${ago(Date.now() - heard)}` : ""} (${error.message}). What is below is old.`);
        byId("offline").hidden = false;
        mark(byId("state"), "class", "pill bad");
        put(byId("state"), "not answering");
      }
    }
  }
  async function turn() {
    if (!paused && !document.hidden) await ask();
    setTimeout(turn, PERIOD);
  }
  setInterval(() => put(byId("age"), paused ? "paused" : heard ? `updated ${ago(Date.now() - heard)} ago` : ""), 1000);
  byId("pause").addEventListener("click", (event) => {
    paused = !paused;
    event.target.setAttribute("aria-pressed", String(paused));
    put(event.target, paused ? "Go on" : "Pause");
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !paused) ask();
  });
  let width = 0;
  new ResizeObserver(() => {
    if (latest && document.body.clientWidth !== width) {
      width = document.body.clientWidth;
      show(latest);
    }
  }).observe(document.body);

  // ---- Colours.
  const store = {
    get: () => {
      try { return localStorage.getItem("theme"); } catch { return null; }
    },
    set: (value) => {
      try { localStorage.setItem("theme", value); } catch { /* a private window: the choice lasts as long as the page */ }
    },
  };
  const THEMES = ["system", "light", "dark"];
  let theme = store.get() ?? "system";
  function dress() {
    if (!THEMES.includes(theme)) theme = "system";
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    put(byId("theme"), "Theme: " + theme);
  }
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    store.set(theme);
    dress();
  });
  dress();
  turn();
})();
