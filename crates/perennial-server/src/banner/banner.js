// The banner over an archived page. It is about one capture for as long as it exists. The frame says which page it shows, but a page's
// script may lie, so the words of the frame never change what the banner claims: the window goes to the page that the frame names.
'use strict';
(() => {
  const {replay, base, archive, root, url, time, captured} = document.body.dataset;
  const banner = document.getElementById('ban');
  let isKept = false, isLeaving = false, known = '';
  try { isKept = sessionStorage.getItem('one instant') === 'yes'; } catch (error) { /* storage is off */ }

  const request = (what, given, about = {url, time}) => fetch(`${root}${what}?${new URLSearchParams({archive, url: about.url, at: about.time, ...given})}`)
    .then((answer) => answer.ok ? answer.json() : null).catch(() => null);

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

  // The frame shows something that the archive does not know under the name it gave, or that gave none.
  const lose = () => {
    const back = document.createElement('a');
    back.href = location.href;
    back.textContent = 'Back to the archived page';
    banner.replaceChildren('Nothing is known about what the frame shows now. ', back);
  };
  const arrived = async (said) => {
    if (isLeaving || said.url === url && said.time === time) return;
    const facts = await request('banner', {}, said);
    if (isLeaving || facts && facts.url === url && facts.time === captured) return;
    if (!facts) { lose(); return; }
    // With one instant for all pages, a page is shown at that instant; otherwise at its own time.
    const to = isKept ? `${base}/web/${said.time}mp_/${said.url}` : `${base}/web/${facts.time}/${facts.url}`;
    isLeaving = true;
    location.replace(to);
  };
  const loaded = async (parts) => {
    const list = parts.map((part) => part.url).sort();
    let text = '';
    for (const part of list) { if (text.length + part.length < 8000) text += part + '\n'; }
    if (text === known || !text) return;
    known = text;
    const facts = await request('banner', {parts: text});
    if (facts && text === known) write(facts.html);
  };
  const clicked = async (text) => {
    const response = await request('block', {text});
    const pop = document.getElementById('block');
    if (response && pop) { pop.innerHTML = response.html; pop.closest('details').classList.add('has'); }
  };

  // On a phone, browsers lay out a page without a viewport at this width, and shrink it; not so in a frame.
  const WIDE = 980;
  const widen = () => {
    const frame = document.getElementById('page'), zoom = innerWidth / WIDE;
    const isWide = zoom < 1 && matchMedia('(pointer: coarse)').matches;
    const height = `${(innerHeight - banner.offsetHeight) / zoom}px`;
    Object.assign(frame.style, isWide ? {flex: 'none', width: `${WIDE}px`, height, transform: `scale(${zoom})`, transformOrigin: '0 0'}
      : {flex: '', width: '', height: '', transform: '', transformOrigin: ''});
  };
  const isTime = (value) => typeof value === 'string' && /^\d{1,14}$/.test(value);
  const isUrl = (value) => typeof value === 'string' && value.length < 4000 && /^https?:\/\//.test(value);
  // Messages about pages are handled in order: the first is sent by our own script, before any of the page.
  let queue = Promise.resolve(), last = '', document_ = null, atLoad = null, nLoads = 0;
  addEventListener('message', (event) => {
    const message = event.data, frame = document.getElementById('page');
    if (!frame || event.origin !== replay || event.source !== frame.contentWindow || message === null || typeof message !== 'object') return;
    if (message.perennial === 'page' && isUrl(message.url) && isTime(message.time)) {
      document_ = message.document;
      const said = {url: message.url, time: message.time}, text = `${message.time} ${message.url}`;
      if (text === last) return;
      last = text;
      queue = queue.then(() => arrived(said));
    }
    if (message.perennial === 'parts' && Array.isArray(message.parts)) {
      loaded(message.parts.filter((part) => part && isUrl(part.url)).slice(0, 200));
    }
    if (message.perennial === 'viewport' && message.isGiven === false) { widen(); addEventListener('resize', widen); }
    if (message.perennial === 'block' && typeof message.text === 'string') clicked(message.text.slice(0, 400));
  });
  // A document that replaced the page and says nothing, such as an image, is not what the banner is about.
  document.addEventListener('load', (event) => {
    if (event.target.id !== 'page') return;
    if (nLoads++ > 0 && document_ === atLoad) lose();
    atLoad = document_;
  }, true);
  addEventListener('keydown', (event) => {
    if (event.key === 'Escape') banner.querySelectorAll('details[open]').forEach((details) => { details.open = false; });
  });
  connect();
})();
