// The banner over an archived page. The frame reports its page and the parts it has loaded; the archive knows about them.
'use strict';
(() => {
  const {replay, base, archive, root} = document.body.dataset;
  const frame = document.getElementById('page'), banner = document.getElementById('ban');
  // The archived page that the banner describes, and the page that the frame reported, which a script may have invented.
  let page = {url: document.body.dataset.url, time: document.body.dataset.time}, reported = page;
  let isKept = false, nRequests = 0, nShown = 0, known = '';
  try { isKept = sessionStorage.getItem('one instant') === 'yes'; } catch (error) { /* storage is off */ }

  const request = (what, given, about = page) => fetch(`${root}${what}?${new URLSearchParams({archive, url: about.url, at: about.time, ...given})}`)
    .then((answer) => answer.ok ? answer.json() : null).catch(() => null);
  const place = (time, url) => `${base}/web/${time}/${url}`;

  // Open details remain open when the banner is replaced.
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
    const isKnown = url.split('#')[0] === reported.url.split('#')[0] && time === reported.time;
    reported = {url, time};
    if (isKnown) return;
    const n = ++nRequests;
    const response = await request('banner', {}, reported);
    // Responses may arrive out of order: only the latest request counts. There is no response for a URL that a script invented.
    if (!response || n < nShown) return;
    nShown = n;
    // Without one instant for all pages, a page is shown at its own time.
    if (!isKept && response.time !== time) { location.assign(place(response.time, url)); return; }
    page = {url, time};
    known = '';
    write(response.html);
    document.title = response.title;
    history.replaceState(null, '', place(time, url));
  };
  const loaded = async (parts) => {
    const list = parts.map((part) => part.url).sort();
    let text = '';
    for (const url of list) { if (text.length + url.length < 8000) text += url + '\n'; }
    if (text === known || !text) return;
    known = text;
    const n = nShown, response = await request('banner', {parts: text});
    if (response && n === nShown) write(response.html);
  };
  const clicked = async (text) => {
    const response = await request('block', {text});
    const pop = document.getElementById('block');
    if (response && pop) { pop.innerHTML = response.html; pop.closest('details').classList.add('has'); }
  };

  const isTime = (value) => typeof value === 'string' && /^\d{1,14}$/.test(value);
  const isUrl = (value) => typeof value === 'string' && value.length < 4000 && /^https?:\/\//.test(value);
  addEventListener('message', (event) => {
    const message = event.data;
    if (event.origin !== replay || event.source !== frame.contentWindow || message === null || typeof message !== 'object') return;
    if (message.perennial === 'page' && isUrl(message.url) && isTime(message.time)) arrived(message.url, message.time);
    if (message.perennial === 'parts' && Array.isArray(message.parts)) {
      loaded(message.parts.filter((part) => part && isUrl(part.url)).slice(0, 200));
    }
    if (message.perennial === 'block' && typeof message.text === 'string') clicked(message.text.slice(0, 400));
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') banner.querySelectorAll('details[open]').forEach((details) => { details.open = false; });
  });
  connect();
})();
