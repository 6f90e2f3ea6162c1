// The blocks of every tensor, a card each; a card is made anew only if its picture changed.

import { element } from "./parts.js";

/** What padding and border add to a card. */
const FRAME = 6;

/** Which of `next` (pictures by id) differ from `before`, and which are gone. */
export function changed(before, next) {
  return {
    fresh: Object.keys(next).filter((id) => next[id] !== before[id]),
    gone: Object.keys(before).filter((id) => !(id in next)),
  };
}

/** Shows cards in `target`; call `show(pictures, nodes)` whenever they may have changed. */
export function cardDeck(target) {
  const cards = new Map();
  let before = {};

  function show(pictures, nodes) {
    const { fresh, gone } = changed(before, pictures);
    for (const id of gone) {
      cards.get(id)?.remove();
      cards.delete(id);
    }
    for (const id of fresh) {
      if (!cards.has(id)) {
        const made = element("div", "ein-tensor");
        made.dataset.node = id;
        cards.set(id, made);
      }
      const card = cards.get(id);
      card.innerHTML = pictures[id];
      const svg = card.firstElementChild;
      svg.style.cssText = "";
      card.style.width = `${svg.viewBox.baseVal.width + FRAME}px`;
    }
    for (const node of nodes) {
      const card = cards.get(String(node.id));
      card?.classList.toggle("ein-pinned", node.pinned);
      card?.classList.toggle("ein-edited", node.edited);
    }
    if (fresh.length + gone.length && cards.size !== target.children.length) {
      target.replaceChildren(...nodes.map((n) => cards.get(String(n.id))).filter(Boolean));
    }
    before = pictures;
  }

  /** Scrolls the card of a node into sight, within the deck only. */
  function reveal(id) {
    for (const card of cards.values()) card.classList.remove("ein-chosen");
    const card = cards.get(String(id));
    if (!card) return;
    card.classList.add("ein-chosen");
    const [box, frame] = [card.getBoundingClientRect(), target.getBoundingClientRect()];
    if (box.top < frame.top || box.bottom > frame.bottom) {
      target.scrollTop += box.top - frame.top - Math.max((frame.height - box.height) / 2, 8);
    }
  }
  return { show, reveal };
}
