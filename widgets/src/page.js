// The plan explorer as a page of its own: a menu of programs, a place to write one, and the widget.

import explorer from "./explorer.js";
import { button, element } from "./parts.js";

/** What a notebook's front end gives a widget, over HTTP: state, changes, messages. */
export class RemoteModel {
  constructor(key, state, post) {
    this.state = state;
    this.changed = {};
    this.handlers = new Map();
    this.post = (what, data) => post(`/${what}/${key}`, data);
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    this.changed[name] = value;
    this.receive({ [name]: value });
  }

  save_changes() {
    const changed = this.changed;
    this.changed = {};
    return this.post("set", changed);
  }

  send(content) {
    return this.post("ask", content);
  }

  on(event, handler) {
    this.handlers.set(event, [...(this.handlers.get(event) ?? []), handler]);
  }

  off(event, handler) {
    this.handlers.set(
      event,
      (this.handlers.get(event) ?? []).filter((h) => h !== handler),
    );
  }

  /** Takes over new state, all of it before anybody hears of it. */
  receive(state) {
    Object.assign(this.state, state);
    for (const name of Object.keys(state)) this.tell(`change:${name}`);
  }

  tell(event, ...data) {
    for (const handler of this.handlers.get(event) ?? []) handler(...data);
  }

  /** Takes what the server says happened, in order. */
  hear(news) {
    const state = Object.assign({}, ...news.map((one) => one.state ?? {}));
    this.receive(state);
    for (const one of news) if (one.message) this.tell("msg:custom", one.message);
  }
}

async function post(path, data) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(data),
  });
  return answer.json();
}

/** Fills the page; `programs` are texts by name. */
export function open(body, programs) {
  const bar = element("header", "ein-page-bar");
  const menu = element("select");
  menu.setAttribute("aria-label", "program");
  for (const name of Object.keys(programs)) menu.append(new Option(name));
  menu.append(new Option("write your own …", ""));
  const own = element("form", "ein-page-own");
  const text = element("textarea", "ein-mono");
  text.setAttribute("aria-label", "formulas");
  text.rows = 8;
  text.spellcheck = false;
  const error = element("pre", "ein-error");
  error.setAttribute("role", "alert");
  own.append(
    text,
    button("Explore", () => start(text.value), { label: "Explore these formulas" }),
    error,
  );
  own.hidden = true;
  own.addEventListener("submit", (event) => event.preventDefault());
  const main = element("main");
  bar.append(element("h1", "", "Einsummable"), element("span", "", "how would this be cut?"), menu);
  body.append(bar, own, main);
  let close = () => {};

  async function start(source) {
    error.textContent = "";
    main.classList.add("ein-page-waiting");
    const answer = await post("/open", { text: source });
    main.classList.remove("ein-page-waiting");
    if (answer.error) {
      own.hidden = false;
      error.textContent = answer.error;
      return;
    }
    close();
    main.replaceChildren();
    const model = new RemoteModel(answer.key, answer.state, post);
    const news = new EventSource(`/news/${answer.key}`);
    news.onmessage = (event) => model.hear(JSON.parse(event.data));
    const ended = explorer.render({ model, el: main });
    close = () => {
      news.close();
      ended();
    };
  }

  menu.addEventListener("change", () => {
    own.hidden = menu.value !== "";
    if (menu.value) {
      text.value = programs[menu.value];
      start(programs[menu.value]);
    }
  });
  text.value = Object.values(programs)[0];
  start(text.value);
}
