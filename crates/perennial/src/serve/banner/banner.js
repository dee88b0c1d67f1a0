// The banner over an archived page. It hears from the frame where it is and what it has loaded, and asks the archive about it.
'use strict';
(() => {
  const {replay, base, archive, root} = document.body.dataset;
  const frame = document.getElementById('page'), banner = document.getElementById('ban');
  let page = {url: document.body.dataset.url, time: document.body.dataset.time};
  let isKept = false, nAsked = 0, known = '';
  try { isKept = sessionStorage.getItem('one instant') === 'yes'; } catch (error) { /* storage is off */ }

  const ask = (what, given) => fetch(`${root}${what}?${new URLSearchParams({archive, url: page.url, at: page.time, ...given})}`)
    .then((answer) => answer.ok ? answer.json() : null).catch(() => null);
  const place = (time, url) => `${base}/web/${time}/${url}`;

  // What was open stays open when the banner is written anew.
  const write = (html) => {
    const open = [...banner.querySelectorAll('details')].map((details) => details.open);
    const block = document.getElementById('block').innerHTML;
    banner.innerHTML = html;
    [...banner.querySelectorAll('details')].forEach((details, index) => { details.open = Boolean(open[index]); });
    document.getElementById('block').innerHTML = block;
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
    if (url === page.url && time === page.time) return;
    const isSamePage = url.split('#')[0] === page.url.split('#')[0] && time === page.time;
    page = {url, time};
    if (isSamePage) return;
    const n = ++nAsked;
    const told = await ask('banner', {});
    if (!told || n !== nAsked) return;
    // Without one instant for all pages, a page is shown at its own time.
    if (!isKept && told.time !== time) { location.assign(place(told.time, url)); return; }
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
    const n = nAsked, told = await ask('banner', {parts: text});
    if (told && n === nAsked) write(told.html);
  };
  const clicked = async (text) => {
    const told = await ask('block', {text});
    const pop = document.getElementById('block');
    if (told && pop) { pop.innerHTML = told.html; pop.closest('details').classList.add('has'); }
  };

  const isTime = (value) => typeof value === 'string' && /^\d{1,14}$/.test(value);
  const isAddress = (value) => typeof value === 'string' && value.length < 4000 && /^https?:\/\//.test(value);
  addEventListener('message', (event) => {
    const said = event.data;
    if (event.origin !== replay || event.source !== frame.contentWindow || said === null || typeof said !== 'object') return;
    if (said.perennial === 'page' && isAddress(said.url) && isTime(said.time)) arrived(said.url, said.time);
    if (said.perennial === 'parts' && Array.isArray(said.parts)) {
      loaded(said.parts.filter((part) => part && isAddress(part.url)).slice(0, 200));
    }
    if (said.perennial === 'block' && typeof said.text === 'string') clicked(said.text.slice(0, 400));
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') banner.querySelectorAll('details[open]').forEach((details) => { details.open = false; });
  });
  connect();
})();
