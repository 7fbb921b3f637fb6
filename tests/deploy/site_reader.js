// What is wrong with the page that is open, as somebody who looks at it would say: a list.
const wrong = [];
const seen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
const named = (e) => `<${e.tagName.toLowerCase()}> ${(e.textContent || e.src || "").trim().slice(0, 60)}`;
const article = document.querySelector("article") || document.body;
const wide = document.documentElement.scrollWidth, room = window.innerWidth;

if (wide > room) wrong.push(`it is ${wide} wide, the window ${room}`);

// What stands beyond the edge must be reached by scrolling something.
const scroller = (e) => {
  for (let p = e; p && p !== document.body; p = p.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(p).overflowX)) return p;
  return null;
};
for (const e of article.querySelectorAll("*")) {
  if (e.parentElement.closest("math") || !seen(e)) continue;
  const box = e.getBoundingClientRect();
  if (box.right > room + 1 && !scroller(e)) wrong.push(`beyond the edge: ${named(e)}`);
  const hidden = ["hidden", "clip"].includes(getComputedStyle(e).overflowX);
  if (hidden && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 20) wrong.push(`cut off: ${named(e)}`);
}

for (const e of document.querySelectorAll("img")) {
  if (!(e.getAttribute("alt") || "").trim()) wrong.push(`no words for ${e.src}`);
  if (!e.complete || !e.naturalWidth) wrong.push(`not shown: ${e.src}`);
}
for (const e of article.querySelectorAll("math")) {
  const box = e.getBoundingClientRect();
  if (seen(e) && (box.width < 2 || box.height < 2)) wrong.push(`a formula of no size: ${named(e)}`);
  if (e.querySelector("merror")) wrong.push(`a formula that is none: ${named(e)}`);
}
if (article.querySelector(".arithmatex")) wrong.push("a formula is left as it was typed");

for (const e of performance.getEntriesByType("resource"))
  if (!e.name.startsWith("file:") && !e.name.startsWith("data:") && !e.name.startsWith("blob:")) wrong.push(`asks the network for ${e.name}`);

// Words upon words. What is scrolled out of its frame is not seen.
const boxes = [];
const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode, parent = node.parentElement;
  if (!node.data.trim() || parent.closest("math, svg, script, style, .headerlink") || !seen(parent)) continue;
  const frame = scroller(parent)?.getBoundingClientRect();
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const r of range.getClientRects()) {
    const right = frame ? Math.min(r.right, frame.right) : r.right;
    const left = frame ? Math.max(r.left, frame.left) : r.left;
    if (right > left && r.height) boxes.push({ top: r.top, bottom: r.bottom, left, right, node });
  }
}
boxes.sort((a, b) => a.top - b.top);
for (let i = 0; i < boxes.length; i++)
  for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - 5; j++) {
    const a = boxes[i], b = boxes[j];
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (a.node !== b.node && across > 4 && down > 5)
      wrong.push(`one upon the other: ${a.node.data.trim().slice(0, 40)} / ${b.node.data.trim().slice(0, 40)}`);
  }

// Words that can hardly be told from what is behind them (WCAG: 4.5, of large ones 3).
const light = (c) => {
  const [r, g, b] = c.map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const over = (colours) => {
  paint.clearRect(0, 0, 1, 1);
  for (const colour of colours) { paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); }
  return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const pairs = new Map();
for (const { node } of boxes) {
  const e = node.parentElement, style = getComputedStyle(e), behind = [];
  for (let p = e; p; p = p.parentElement) behind.unshift(getComputedStyle(p).backgroundColor);
  const key = [...behind, style.color].join();
  if (!pairs.has(key)) {
    const [a, b] = [light(over(["white", ...behind])), light(over(["white", ...behind, style.color]))];
    pairs.set(key, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && +style.fontWeight >= 700);
  if (pairs.get(key) < (large ? 3 : 4.5)) wrong.push(`hardly seen (${pairs.get(key).toFixed(1)}): ${named(e)} in ${style.color}`);
}
return [...new Set(wrong)].slice(0, 20);
