// One step of a reader in a page: dismisses dialogs, plays media, opens more content, scrolls. It runs in a world of its own, so the
// page's scripts cannot change what it does. Returns what it did, and the classes and ids of the page.
(given) => {
  'use strict';
  const state = globalThis.__perennial ??= {tried: new Map(), played: new WeakSet(), opened: new WeakMap(), n_opened: 0};
  const actions = [];
  const note = (words) => actions.push(words);
  const has = (kind) => given.kinds.includes(kind);
  const text = (element) => (element.innerText || element.value || element.getAttribute('aria-label') || '').trim().replace(/\s+/g, ' ');
  const visible = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && (!element.checkVisibility || element.checkVisibility({visibilityProperty: true}));
  };
  const BUTTONS = 'button, [role=button], input[type=button], input[type=submit], a';
  // Refusing comes first: it is what most readers want, and it loads less.
  const ANSWERS = [
    /^(reject|refuse|decline|deny|disagree)\b|only (the )?(necessary|essential)|necessary only|continue without|nur (notwendige|erforderliche)|ablehnen|refuser|continuer sans|rechazar|rifiuta|weiger|recusar|odrzu|avvisa/i,
    /^(accept|agree|allow|ok|okay|got it|i understand|i agree|continue|yes)\b|akzeptier|zustimmen|einverstanden|accepter|tout accepter|aceptar|accetta|akkoord|aceitar|zgadzam|godkänn/i,
    /^(close|dismiss|no,? thanks|not now|schlie(ß|ss)en|fermer|cerrar|chiudi|sluiten|×|✕|x)$/i,
  ];
  const MORE = /^(load|show|view|see|read) (more|all)\b|^more\b.{0,20}$|mehr (laden|anzeigen|lesen)|weitere .{0,20}(laden|anzeigen)|(voir|afficher|charger) plus|(cargar|mostrar|ver) más|(carregar|mostrar|ver) mais|(carica|mostra) altr|meer (laden|tonen|weergeven)|visa fler|pokaż więcej|もっと見る|加载更多|ещё|загрузить/i;

  const dismiss = (selector) => {
    let found = [];
    try { found = [...document.querySelectorAll(selector)].filter(visible).slice(0, 5); } catch { return; }
    for (const element of found) {
      const n_tries = state.tried.get(element) || 0;
      state.tried.set(element, n_tries + 1);
      const root = element.shadowRoot || element;
      const buttons = [...root.querySelectorAll(BUTTONS)].filter(visible).slice(0, 50);
      const button = n_tries ? null : ANSWERS.map((words) => buttons.find((one) => words.test(text(one)))).find(Boolean);
      if (button) {
        note(`dismiss: clicked "${text(button).slice(0, 40)}" in ${selector}`);
        button.click();
      } else {
        note(`dismiss: removed ${selector}`);
        element.remove();
      }
      for (const page of [document.documentElement, document.body]) {
        if (page && getComputedStyle(page).overflowY === 'hidden') page.style.setProperty('overflow', 'auto', 'important');
      }
    }
  };
  if (has('dismiss')) given.selectors.forEach(dismiss);

  if (has('autoplay')) {
    for (const media of document.querySelectorAll('video, audio')) {
      if (state.played.has(media)) continue;
      state.played.add(media);
      media.muted = true;
      media.preload = 'auto';
      const playing = media.play();
      if (playing) playing.catch(() => {});
      note(`autoplay: ${media.localName} ${media.currentSrc || media.src || ''}`);
    }
  }

  if (has('load-more') && state.n_opened < given.max_opened) {
    const candidates = 'button, [role=button], input[type=button], a:not([href]), a[href^="#"], a[href^="javascript:"]';
    const button = [...document.querySelectorAll(candidates)].find((one) => {
      const words = text(one);
      const is_submit = one.form && one.type === 'submit';
      return words.length <= 40 && MORE.test(words) && !is_submit && !one.disabled && visible(one) && (state.opened.get(one) || 0) < 5;
    });
    if (button) {
      state.opened.set(button, (state.opened.get(button) || 0) + 1);
      state.n_opened += 1;
      note(`load-more: clicked "${text(button)}"`);
      button.click();
    }
  }

  let has_scrolled = false;
  if (has('autoscroll')) {
    const page = document.scrollingElement || document.documentElement;
    const before = page.scrollTop;
    page.scrollBy({top: Math.max(200, innerHeight * 0.8), behavior: 'instant'});
    has_scrolled = page.scrollTop > before + 1;
    if (has_scrolled) document.dispatchEvent(new Event('scroll', {bubbles: true}));
  }

  const classes = new Set(), ids = new Set();
  if (has('dismiss')) {
    for (const element of document.querySelectorAll('[class], [id]')) {
      if (classes.size + ids.size > 5000) break;
      element.classList.forEach((one) => classes.add(one));
      if (element.id) ids.add(element.id);
    }
  }
  return {actions, has_scrolled, classes: [...classes], ids: [...ids]};
}
