// What the pages do by themselves, without a request: the theme, times in the reader's zone, the keyboard, copying,
// steps of a session, and when to ask for fresh figures.
(() => {
  'use strict';
  const root = document.documentElement, $ = (s, at = document) => at.querySelector(s), $$ = (s, at = document) => [...at.querySelectorAll(s)];

  const themed = () => $$('[data-theme-to]').forEach(b => b.setAttribute('aria-pressed', root.dataset.theme === b.dataset.themeTo));
  try { if (localStorage.theme) root.dataset.theme = localStorage.theme; } catch { /* without storage: by preference */ }

  const zone = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'long'});
  const dress = at => {
    $$('time[datetime]', at).forEach(t => { t.title = zone.format(new Date(t.dateTime)); if (t.dataset.clock !== undefined) t.textContent = zone.format(new Date(t.dateTime)); });
    themed();
  };

  // Fresh figures: when the server tells of a change, at least every 15 s, and never while the pointer or the focus is in a
  // table or a form: then a button says so. Nothing is asked for while the page is out of sight.
  const least = 2000, most = 15000;
  let seen = Date.now(), asked = seen, dirty = false, before = null, forced = false;
  const main = () => $('#main[hx-get]');
  const busy = () => !forced && main() && 
    ($('details.act[open], .result:not(:empty), tbody:hover, tbody input:checked, [data-hold]:hover', main()) || document.activeElement?.closest('#main tbody, #main form'));
  const fresh = () => {
    const m = main();
    if (!m || document.hidden || Date.now() - asked < least) return;
    const again = $('.again');
    if (busy()) { if (again && dirty) again.hidden = false; return; }
    if (again) again.hidden = true;
    asked = Date.now(); dirty = forced = false;
    before = new Map($$('#main td, #main dd').map((e, i) => [i, e.textContent]));
    htmx.trigger(m, 'fresh');
  };
  const concerns = e => {
    const of = main()?.dataset.session;
    if (!of) return true;
    try { const d = JSON.parse(e.detail.data); return d.session === undefined || d.session === of; } catch { return true; }
  };
  for (const name of ['run', 'session', 'sweep']) document.addEventListener(name, e => { if (concerns(e)) { dirty = true; fresh(); } });
  document.addEventListener('changed', () => { dirty = true; setTimeout(fresh, 400); });
  document.addEventListener('visibilitychange', fresh);
  setInterval(() => {
    const age = Math.round((Date.now() - seen) / 1000), live = $('.live');
    if (live && main()) {
      const stale = age * 1000 > most + 5000 && !busy();
      live.classList.toggle('stale', stale);
      const text = stale ? `Figures are ${age} s old` : 'Live';
      if (live.firstChild.textContent !== text) live.firstChild.textContent = text;
    }
    if (dirty || Date.now() - asked > most && !main()?.dataset.still) fresh();
  }, 1000);
  document.addEventListener('htmx:after:swap', () => {
    dress(document);
    if (!before) return;
    seen = Date.now();
    $$('#main td, #main dd').forEach((e, i) => { if (before.has(i) && before.get(i) !== e.textContent && !$('time', e)) { e.classList.add('chg'); setTimeout(() => e.classList.remove('chg'), 1000); } });
    before = null;
  });

  document.addEventListener('click', e => {
    const t = e.target.closest('[data-theme-to], [data-copy], [data-fresh], [data-close], [data-help], [data-all]');
    if (!t) { $$('details.act[open]').forEach(d => { if (!d.contains(e.target)) d.open = false; }); return; }
    if (t.dataset.themeTo) {
      root.dataset.theme = root.dataset.theme === t.dataset.themeTo ? '' : t.dataset.themeTo;
      if (!root.dataset.theme) delete root.dataset.theme;
      try { localStorage.theme = root.dataset.theme || ''; } catch { /* it lasts for the page */ }
      themed();
    } else if (t.dataset.copy !== undefined) {
      navigator.clipboard?.writeText(t.previousElementSibling.textContent).then(() => { t.textContent = 'copied'; setTimeout(() => t.textContent = 'copy', 1500); });
    } else if (t.dataset.fresh !== undefined) { dirty = forced = true; asked = 0; fresh(); }
    else if (t.dataset.close !== undefined) { const d = t.closest('details.act'); if (d) { d.open = false; $('summary', d).focus(); } }
    else if (t.dataset.help !== undefined) $('#keys').showModal();
    else if (t.dataset.all !== undefined) $$('input[name="' + t.dataset.all + '"]').forEach(i => { i.checked = t.checked; i.dispatchEvent(new Event('change', {bubbles: true})); });
  });

  // Two clicks of a button send its form once.
  document.addEventListener('submit', e => {
    const by = (e.submitter || e.target).dataset;
    if (Date.now() - (by.sent || 0) < 1000) { e.preventDefault(); e.stopImmediatePropagation(); } else by.sent = Date.now();
  }, true);

  // A text that may be changed: only then it is sent, and the button says so.
  document.addEventListener('input', e => {
    const t = e.target, b = t.dataset?.own && $('[data-own-button]', t.form);
    if (!b) return;
    b.dataset.was ??= b.textContent;
    const own = t.value !== t.defaultValue;
    if (own) t.name = t.dataset.own; else t.removeAttribute('name');
    b.textContent = own ? b.dataset.ownButton : b.dataset.was;
  });

  // Steps of a session: the moments are in the page, data-step says which one is shown.
  const step = by => { const to = $(by > 0 ? '[data-step-next]' : '[data-step-back]'); if (to?.href) to.click(); };
  document.addEventListener('keydown', e => {
    if (e.key === 'Escape') { const d = $('details.act[open]'); if (d) { d.open = false; $('summary', d).focus(); } return; }
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.('input, textarea, select, [contenteditable]')) return;
    const rows = $$('tbody tr'), at = rows.findIndex(r => r.contains(document.activeElement));
    if (e.key === '/') { e.preventDefault(); $('.find input')?.focus(); }
    else if (e.key === '?') $('#keys')?.showModal();
    else if (e.key === 'j' || e.key === 'k') { const r = rows[at < 0 ? 0 : at + (e.key === 'j' ? 1 : -1)]; $('a, button, input', r || document.createElement('i'))?.focus(); }
    else if (e.key === 'ArrowRight') step(1); else if (e.key === 'ArrowLeft') step(-1);
    else if (e.key === 'r') { dirty = forced = true; asked = 0; fresh(); }
  });

  // A line of a summary and the messages that it rests on mark each other: data-rests has their numbers.
  const mark = (e, on) => { const l = e.target.closest?.('[data-rests]'); if (l) l.dataset.rests.split(' ').forEach(n => $$(`[data-seq="${CSS.escape(n)}"]`).forEach(x => x.classList.toggle('on', on))); };
  for (const [type, on] of [['mouseover', true], ['focusin', true], ['mouseout', false], ['focusout', false]]) document.addEventListener(type, e => mark(e, on));

  // On a phone the names of the pages scroll: the one that is shown is in sight.
  const ready = () => { dress(document); const here = $('.nav [aria-current]'); if (here) here.closest('ul').scrollLeft = here.offsetLeft - (innerWidth - here.offsetWidth) / 2; };
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', ready); else ready();
})();
