// The banner over an archived page. It hears from the frame where it is and what it has loaded, and asks the archive about it.
'use strict';
(() => {
  const {replay, base, archive, root} = document.body.dataset;
  const frame = document.getElementById('page'), banner = document.getElementById('ban');
  // The archived page that the banner is about; where the frame says it is, which a script may have made up.
  let page = {url: document.body.dataset.url, time: document.body.dataset.time}, said = page;
  let isKept = false, nAsked = 0, nShown = 0, known = '';
  try { isKept = sessionStorage.getItem('one instant') === 'yes'; } catch (error) { /* storage is off */ }

  const ask = (what, given, about = page) => fetch(`${root}${what}?${new URLSearchParams({archive, url: about.url, at: about.time, ...given})}`)
    .then((answer) => answer.ok ? answer.json() : null).catch(() => null);
  const place = (time, url) => `${base}/web/${time}/${url}`;

  // What was open stays open when the banner is written anew.
  const write = (html) => {
    const open = [...banner.querySelectorAll('details')].map((details) => details.open);
    banner.innerHTML = html;
    [...banner.querySelectorAll('details')].forEach((details, index) => { details.open = Boolean(open[index]); });
    connect();
  };
  const connect = () => {
    const keep = document.getElementById('keep');
    keep.checked = isKept;
    keep.addEventListener('change', () => {
      isKept = keep.checked;
      try { sessionStorage.setItem('one instant', isKept ? 'yes' : 'no'); } catch (error) { /* storage is off */ }
    });
  };

  const arrived = async (url, time) => {
    const isKnown = url.split('#')[0] === said.url.split('#')[0] && time === said.time;
    said = {url, time};
    if (isKnown) return;
    const n = ++nAsked;
    const told = await ask('banner', {}, said);
    // Of two answers the later question counts; a script may have made up the address, and then there is none.
    if (!told || n < nShown) return;
    nShown = n;
    // Without one instant for all pages, a page is shown at its own time.
    if (!isKept && told.time !== time) { location.assign(place(told.time, url)); return; }
    page = {url, time};
    known = '';
    write(told.html);
    document.title = told.title;
    history.replaceState(null, '', place(time, url));
  };
  const loaded = async (parts) => {
    const list = parts.map((part) => part.url).sort();
    let text = '';
    for (const url of list) { if (text.length + url.length < 8000) text += url + '\n'; }
    if (text === known || !text) return;
    known = text;
    const n = nShown, told = await ask('banner', {parts: text});
    if (told && n === nShown) write(told.html);
  };
  const clicked = async (text) => {
    const told = await ask('block', {text});
    const pop = document.getElementById('block');
    if (told && pop) { pop.innerHTML = told.html; pop.closest('details').classList.add('has'); }
  };

  const isTime = (value) => typeof value === 'string' && /^\d{1,14}$/.test(value);
  const isAddress = (value) => typeof value === 'string' && value.length < 4000 && /^https?:\/\//.test(value);
  addEventListener('message', (event) => {
    const told = event.data;
    if (event.origin !== replay || event.source !== frame.contentWindow || told === null || typeof told !== 'object') return;
    if (told.perennial === 'page' && isAddress(told.url) && isTime(told.time)) arrived(told.url, told.time);
    if (told.perennial === 'parts' && Array.isArray(told.parts)) {
      loaded(told.parts.filter((part) => part && isAddress(part.url)).slice(0, 200));
    }
    if (told.perennial === 'block' && typeof told.text === 'string') clicked(told.text.slice(0, 400));
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') banner.querySelectorAll('details[open]').forEach((details) => { details.open = false; });
  });
  connect();
})();
