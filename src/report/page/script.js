(() => {
'use strict';
// Tables are sorted by their headings; text and order of the file stay as they are until one is pressed.
const value = (row, at, numeric) => {
  const cell = row.cells[at];
  const text = cell.dataset.v ?? cell.textContent.trim();
  if (!numeric) return text.toLowerCase();
  const number = Number.parseFloat(text.replaceAll(',', ''));
  return Number.isNaN(number) ? -1 : number;
};
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const down = head.ariaSort === 'ascending';
      for (const other of heads) other.removeAttribute('aria-sort');
      head.ariaSort = down ? 'descending' : 'ascending';
      const body = table.tBodies[0];
      const numeric = head.classList.contains('n') || body.rows[0]?.cells[at].dataset.v !== undefined;
      const rows = [...body.rows].map((row) => [value(row, at, numeric), row]);
      rows.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
// Only rows that hold the words.
const field = document.getElementById('filter');
const rows = [...document.getElementById('table').tBodies[0].rows];
field.closest('p').hidden = false;
field.addEventListener('input', () => {
  const words = field.value.toLowerCase().split(' ').filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  document.getElementById('shown').textContent = words.length ? `${shown} of ${rows.length}` : '';
});
// A link to something folded unfolds it, where the browser does not.
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.localName === 'details') at.open = true;
  target.scrollIntoView();
};
addEventListener('hashchange', reveal);
if (location.hash) reveal();
// Paper shows what a screen folds, but for the lists.
let opened = [];
addEventListener('beforeprint', () => {
  opened = [...document.querySelectorAll('details.instance:not([open])')];
  for (const one of opened) one.open = true;
});
addEventListener('afterprint', () => {
  for (const one of opened) one.open = false;
});
})();
