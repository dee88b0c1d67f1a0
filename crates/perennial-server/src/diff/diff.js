// Steps from change to change, sets the frames to the height of their pages, numbers the changes beside them, joins the two places
// of a move. The view can be read without it.
(() => {
  const root = document.querySelector('.pd');
  const frames = [...root.querySelectorAll('iframe')];
  const joins = root.querySelector('.joins');
  const at = id => root.querySelector('#pd-' + id);
  const documentOf = frame => { try { return frame.contentDocument; } catch { return null; } };
  const shown = element => element && element.getClientRects().length > 0;
  const MARGIN = 44;
  let current = 0;

  // A page that needs more room than its pane has is drawn smaller, as a whole; both versions alike. What is too wide even then, as a
  // table, stands out to the right and the pane scrolls to it, but no line of text becomes longer than the pane is wide.
  function fit() {
    const seen = frames.filter(frame => shown(frame) && documentOf(frame) && documentOf(frame).documentElement);
    const rooms = new Map();
    let scale = 1;
    for (const frame of seen) {
      const paper = frame.parentElement, page = documentOf(frame);
      rooms.set(frame, { paper, page, top: paper.scrollTop, room: paper.clientWidth - MARGIN });
      frame.style.transform = frame.style.margin = '';
      frame.style.width = paper.clientWidth - MARGIN + 'px';
      frame.style.height = '600px';
      page.documentElement.style.removeProperty('max-width');
      for (const element of page.querySelectorAll('[data-pd-narrow]')) {
        for (const name of NARROWED) element.style.removeProperty(name);
        element.removeAttribute('data-pd-narrow');
      }
      const wide = sizeOf(page, 'scrollWidth', 4000);
      rooms.get(frame).wide = wide;
      scale = Math.min(scale, (paper.clientWidth - MARGIN) / wide);
    }
    scale = scale > 0.98 ? 1 : Math.max(scale, 0.7);
    for (const [frame, { paper, page, top, room, wide: needed }] of rooms) {
      const column = room / scale, wide = scale < 1 ? Math.max(column, needed) : room;
      if (wide > column + 1) page.documentElement.style.setProperty('max-width', column + 'px', 'important');
      frame.style.width = wide + 'px';
      if (wide > column + 1) narrow(page, column);
      const tall = sizeOf(page, 'scrollHeight', 60000);
      frame.style.height = tall + 'px';
      if (scale < 1) {
        frame.style.transform = 'scale(' + scale + ')';
        frame.style.margin = '0 ' + wide * (scale - 1) + 'px ' + tall * (scale - 1) + 'px 0';
      }
      frame.dataset.scale = scale;
      quietly(paper, top);
    }
  }

  // Lines of a column whose width the page fixes break where the pane ends. Cells of tables and what is written as it stands keep
  // their width, and so does what begins beyond the pane: it is scrolled to.
  const NARROWED = ['max-width', 'min-width', 'overflow-wrap'];
  function narrow(page, column) {
    const view = page.defaultView, texts = page.createTreeWalker(page.body || page.documentElement, NodeFilter.SHOW_TEXT), wide = new Map();
    const judge = element => {
      while (element && view.getComputedStyle(element).display.startsWith('inline')) element = element.parentElement;
      if (!element || wide.has(element) || element.closest('td,th,pre,svg')) return;
      const box = element.getBoundingClientRect(), style = view.getComputedStyle(element);
      const around = style.boxSizing === 'border-box' ? [] : [style.paddingLeft, style.paddingRight, style.borderLeftWidth, style.borderRightWidth];
      const room = around.reduce((room, part) => room - (parseFloat(part) || 0), column - box.left - 4);
      wide.set(element, box.right > column + 1 && box.left < 0.7 * column ? Math.max(room, 40) : 0);
    };
    for (let n = 0; n < 20000 && texts.nextNode(); n++) if (texts.currentNode.data.trim()) judge(texts.currentNode.parentElement);
    for (const framed of page.querySelectorAll('[data-pd-frame]')) judge(framed);
    for (const [element, room] of wide) {
      if (!room) continue;
      element.setAttribute('data-pd-narrow', '');
      const values = [room + 'px', '0', 'anywhere'];
      NARROWED.forEach((name, n) => element.style.setProperty(name, values[n], 'important'));
    }
  }

  function sizeOf(page, side, most) {
    return Math.min(Math.max(page.documentElement[side], page.body ? page.body[side] : 0), most);
  }

  function filter() {
    for (const frame of frames) {
      const page = documentOf(frame);
      if (!page || !page.documentElement) continue;
      page.documentElement.classList.toggle('pd-noise', at('f-noise').checked);
      page.documentElement.classList.toggle('pd-ads', at('f-ads').checked);
      page.documentElement.classList.toggle('pd-no-moves', !at('f-moves').checked);
      page.documentElement.classList.toggle('pd-inline', Boolean(at('inline') && at('inline').checked));
    }
    number();
    draw();
  }

  // The numbers of the changes stand in the margin, where they cover no word of the page.
  function number() {
    for (const frame of frames) {
      const page = documentOf(frame), paper = frame.parentElement, scale = Number(frame.dataset.scale || 1);
      let tags = paper.querySelector('.tags');
      if (!tags) tags = paper.appendChild(Object.assign(document.createElement('div'), { className: 'tags' }));
      tags.replaceChildren();
      if (!page || !page.documentElement || !shown(frame)) continue;
      page.documentElement.classList.add('pd-beside');
      const places = [...page.querySelectorAll('pd-t')].filter(shown).map(mark => [mark.getBoundingClientRect().top * scale, mark]);
      places.sort((a, b) => a[0] - b[0]);
      let free = 0;
      for (const [top, mark] of places) {
        const tag = tags.appendChild(document.createElement('b'));
        tag.className = mark.dataset.pdOp;
        tag.dataset.pd = mark.dataset.pd;
        tag.textContent = mark.textContent;
        tag.style.top = Math.max(top, free) + 'px';
        free = Math.max(top, free) + 18;
      }
      tags.style.left = paper.scrollLeft + paper.clientWidth + 'px';
    }
  }

  const marksOf = (page, number) => [...page.querySelectorAll('[data-pd="' + number + '"],[data-pd-frame="' + number + '"]')];

  // The box of a change in a frame, in the pixels of its pane's content.
  function boxOf(frame, number) {
    const page = documentOf(frame);
    const marks = page ? marksOf(page, number).filter(shown) : [];
    const boxes = marks.filter(mark => mark.tagName !== 'PD-T').map(mark => mark.getBoundingClientRect());
    if (!boxes.length) boxes.push(...marks.map(mark => mark.getBoundingClientRect()));
    if (!boxes.some(box => box.width || box.height)) return null;
    const scale = Number(frame.dataset.scale || 1), top = Math.min(...boxes.map(box => box.top)), bottom = Math.max(...boxes.map(box => box.bottom));
    return { top: top * scale, bottom: bottom * scale, left: Math.min(...boxes.map(box => box.left)) * scale };
  }

  // Where a change that only the other version has was or would be.
  function placeOf(frame, number) {
    const page = documentOf(frame), place = page && page.querySelector('[data-pd-at="' + number + '"]');
    const box = place && place.parentElement.getBoundingClientRect(), scale = Number(frame.dataset.scale || 1);
    return box && (box.width || box.height) ? { top: box.top * scale, bottom: box.bottom * scale } : null;
  }

  function choose(chosen) {
    current = chosen;
    for (const link of root.querySelectorAll('.pd-list a')) {
      const is = Number(link.dataset.pd) === chosen;
      link.toggleAttribute('aria-current', is);
      if (is) reveal(link);
    }
    for (const line of root.querySelectorAll('.ln[aria-current]')) line.removeAttribute('aria-current');
    for (const tag of root.querySelectorAll('.tags b')) tag.classList.toggle('on', Number(tag.dataset.pd) === chosen);
    for (const frame of frames) {
      const page = documentOf(frame);
      if (!page) continue;
      for (const mark of page.querySelectorAll('[data-pd-on]')) mark.removeAttribute('data-pd-on');
      for (const mark of marksOf(page, chosen)) mark.setAttribute('data-pd-on', '');
      const box = boxOf(frame, chosen) || placeOf(frame, chosen);
      if (!box || !shown(frame)) continue;
      const paper = frame.parentElement;
      quietly(paper, box.top - paper.clientHeight / 4, box.left < paper.clientWidth * 0.8 ? 0 : box.left - 24);
    }
    const line = root.querySelector('#t' + chosen);
    if (shown(line)) { line.setAttribute('aria-current', 'true'); line.scrollIntoView({ block: 'center' }); }
    draw();
  }

  // Scrolls the list, and nothing around it.
  function reveal(link) {
    const list = root.querySelector('.pd-list'), box = link.getBoundingClientRect(), room = list.getBoundingClientRect();
    const bottom = Math.min(room.bottom, innerHeight);
    if (box.top < room.top) list.scrollTop -= room.top - box.top;
    else if (box.bottom > bottom) list.scrollTop += box.bottom - bottom;
  }

  function step(by) {
    const numbers = [...root.querySelectorAll('.pd-list li')].filter(shown).map(item => Number(item.querySelector('a').dataset.pd));
    if (!numbers.length) return;
    const place = numbers.indexOf(current);
    choose(numbers[place < 0 ? (by > 0 ? 0 : numbers.length - 1) : (place + by + numbers.length) % numbers.length]);
  }

  // Panes scroll together, except while a step sets each of them to its own place.
  const places = new Map();
  function quietly(paper, top, left = paper.scrollLeft) {
    paper.scrollTop = top;
    paper.scrollLeft = left;
    places.set(paper, [paper.scrollTop, paper.scrollLeft]);
  }
  function scrolled(paper) {
    const [top, left] = places.get(paper) || [0, 0], down = paper.scrollTop - top, right = paper.scrollLeft - left;
    if (down || right) for (const frame of frames) {
      const other = frame.parentElement;
      if (other !== paper) quietly(other, other.scrollTop + down, other.scrollLeft + right);
    }
    places.set(paper, [paper.scrollTop, paper.scrollLeft]);
    for (const tags of root.querySelectorAll('.paper .tags')) tags.style.left = tags.parentElement.scrollLeft + tags.parentElement.clientWidth + 'px';
    draw();
  }

  function draw() {
    if (!joins || frames.length < 2 || !shown(joins)) return;
    const origin = joins.getBoundingClientRect(), [left, right] = frames.map(frame => frame.parentElement.getBoundingClientRect());
    let paths = '';
    for (const item of root.querySelectorAll('.pd-list li.moves')) {
      const number = Number(item.querySelector('a').dataset.pd);
      const boxes = frames.map(frame => boxOf(frame, number));
      if (!boxes[0] || !boxes[1]) continue;
      const y = boxes.map((box, n) => (box.top + box.bottom) / 2 - frames[n].parentElement.scrollTop);
      const inside = y.map((y, n) => y >= 0 && y <= frames[n].parentElement.clientHeight);
      if (!(number === current ? inside[0] || inside[1] : inside[0] && inside[1])) continue;
      const [from, to] = y.map((y, n) => Math.min(Math.max(y, 0), frames[n].parentElement.clientHeight) + frames[n].parentElement.getBoundingClientRect().top - origin.top);
      const x1 = left.right - origin.left, x2 = right.left - origin.left, mid = (x1 + x2) / 2;
      paths += '<path d="M' + x1 + ' ' + from + 'C' + mid + ' ' + from + ' ' + mid + ' ' + to + ' ' + x2 + ' ' + to + '"/>';
    }
    joins.innerHTML = paths;
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const beside = { '[': 'prev', ']': 'next' }[event.key];
    if (event.target.type === 'search') return;
    if (event.key === 'n' || event.key === 'j') { step(1); updateUrl(); }
    else if (event.key === 'p' || event.key === 'k') { step(-1); updateUrl(); }
    else if (beside) { const link = root.querySelector('a[rel=' + beside + ']'); if (link) link.click(); }
    else {
      const box = { m: 'f-moves', a: 'f-ads', o: 'f-noise' }[event.key];
      if (box) at(box).click();
    }
  }

  function ready(frame) {
    const page = documentOf(frame);
    if (!page || !page.documentElement) return;
    page.addEventListener('keydown', key);
    page.addEventListener('click', event => {
      const mark = event.target.closest && event.target.closest('[data-pd],[data-pd-frame]');
      if (event.target.closest && event.target.closest('a')) event.preventDefault();
      if (mark) { choose(Number(mark.dataset.pd || mark.dataset.pdFrame)); updateUrl(); }
    });
    filter();
    fit();
    number();
    draw();
    if (current) choose(current);
  }

  for (const frame of frames) {
    frame.addEventListener('load', () => ready(frame));
    frame.parentElement.addEventListener('scroll', () => scrolled(frame.parentElement), { passive: true });
    if (documentOf(frame) && documentOf(frame).readyState === 'complete' && documentOf(frame).body && documentOf(frame).body.childNodes.length) ready(frame);
  }
  root.addEventListener('change', event => {
    if (event.target.closest('.pd-slider')) return;
    show();
  });
  function show() {
    filter();
    fit();
    number();
    draw();
    if (current) choose(current);
    updateUrl();
  }
  root.addEventListener('click', event => {
    const link = event.target.closest('.pd-list a[data-pd],.tags b');
    if (!link) return;
    event.preventDefault();
    choose(Number(link.dataset.pd));
    updateUrl();
  });

  // The URL's fragment contains all that is shown: the view, the switches, the change.
  const SWITCHES = ['moves', 'ads', 'noise'];
  const here = root.querySelector('.pd-here');
  function name() {
    const view = root.querySelector('.seg input:checked'), parts = [];
    if (view) parts.push('view=' + view.value);
    parts.push('show=' + SWITCHES.filter(name => at('f-' + name).checked).join(','));
    if (current) parts.push('change=' + current);
    here.hidden = false;
    return here.href = '#' + parts.join('&');
  }
  function updateUrl() {
    // Some browsers do not let a file change its URL; the link contains it too.
    try { history.replaceState(null, '', name()); } catch { return; }
  }
  function applyUrl() {
    const wanted = new URLSearchParams(location.hash.slice(1)), view = [...root.querySelectorAll('.seg input')].find(view => view.value === wanted.get('view'));
    if (view) view.checked = true;
    if (wanted.has('show')) for (const name of SWITCHES) at('f-' + name).checked = wanted.get('show').split(',').includes(name);
    const number = Number(wanted.get('change'));
    if (root.querySelector('.pd-list a[data-pd="' + number + '"]')) current = number;
    if (wanted.has('view') || wanted.has('show')) show();
  }
  applyUrl();
  name();
  addEventListener('hashchange', applyUrl);

  // The handles of the slider stop at versions only, and both show where they are before they go there.
  const slider = root.querySelector('.pd-slider');
  if (slider) {
    const times = slider.dataset.times.split(' ').map(Number), wait = { timer: 0 };
    const [before, after] = ['before', 'after'].map(name => slider.elements[name]);
    const nearest = time => times.reduce((best, at, n) => Math.abs(at - time) < Math.abs(times[best] - time) ? n : best, 0);
    const set = (handle, n) => {
      const least = handle === after ? nearest(Number(before.value)) + 1 : 0;
      const most = handle === before ? nearest(Number(after.value)) - 1 : times.length - 1;
      handle.value = times[Math.min(Math.max(n, least), most)];
      const time = new Date(handle.value * 1000).toUTCString().replace(/^(\w+), 0?(\d+ \w+) \d+ (\d+:\d+).*/, '$1 $2 $3');
      slider.querySelector('[data-of="' + handle.name + '"]').textContent = time;
      handle.setAttribute('aria-valuetext', time);
    };
    for (const handle of [before, after]) {
      handle.addEventListener('input', () => set(handle, nearest(Number(handle.value))));
      handle.addEventListener('change', () => slider.requestSubmit());
      handle.addEventListener('keydown', event => {
        const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
        if (!by) return;
        event.preventDefault();
        set(handle, nearest(Number(handle.value)) + by);
        clearTimeout(wait.timer);
        wait.timer = setTimeout(() => slider.requestSubmit(), 900);
      });
    }
    slider.querySelector('button').hidden = true;
  }
  document.addEventListener('keydown', key);
  addEventListener('resize', () => { fit(); number(); draw(); });
})();
