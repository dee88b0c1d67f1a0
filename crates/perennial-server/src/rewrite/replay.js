// Runs before the scripts of an archived page, and before those of its workers. URLs that scripts build become URLs of the
// archive; scripts see the page's own location and time. What a script can undo here holds nobody: the policy of the answers and
// the frame around the page are the walls, and this is the furniture (docs/replay.md).
(() => {
  'use strict';
  const global = globalThis;
  // An empty frame gets this script from the page that made it. If it becomes a page of its own, that page's settings hold.
  const given = global.__perennial_given;
  if (global.__perennial && !global.__perennial.isGiven) return;
  delete global.__perennial_given;
  const isPage = typeof document === 'object';
  const own = isPage && !given ? document.currentScript : null;
  const known = given ? given.known : JSON.parse(isPage ? own.dataset.perennial : decodeURIComponent(location.hash.slice(1)));
  const origin = given ? given.origin : new URL(isPage ? own.src : location.href).origin;
  const ownSource = given ? given.source : own && own.src;
  if (own) own.remove();

  // What the browser gives, before any page changes it.
  const RealURL = URL, RealDate = Date, realLocation = location, apply = Reflect.apply;
  const descriptor = (object, name) => object && Object.getOwnPropertyDescriptor(object, name);
  const realParent = isPage ? (descriptor(global, 'parent') || {}).get?.call(global) : null;
  const define = (object, name, value) => {
    try { Object.defineProperty(object, name, {configurable: true, enumerable: false, ...value}); } catch (error) { /* held fast */ }
  };
  // A worker has its functions on a prototype.
  const owner = (object, name) => {
    while (object && !descriptor(object, name)) object = Object.getPrototypeOf(object);
    return object;
  };
  const replaced = (object, name, make) => {
    const at = owner(object, name), found = at && descriptor(at, name);
    if (!found || typeof found.value !== 'function') return;
    const value = make(found.value);
    Object.defineProperty(value, 'name', {value: name, configurable: true});
    define(at, name, {...found, value});
  };
  const accessed = (object, name, get, set) => {
    const found = descriptor(object, name);
    if (!found || !found.get) return;
    define(object, name, {
      enumerable: found.enumerable,
      get() { return get ? get.call(this, apply(found.get, this, [])) : apply(found.get, this, []); },
      set: found.set && function (value) { apply(found.set, this, [set ? set.call(this, value) : value]); },
    });
  };
  const constructed = (name, construct) => {
    const Real = global[name];
    if (typeof Real !== 'function') return;
    const Made = new Proxy(Real, {construct: (target, given, as) => construct(target, given, as === Made ? target : as)});
    define(Real.prototype, 'constructor', {value: Made, writable: true});
    define(global, name, {value: Made, writable: true});
  };

  // ---- URLs ----
  const escapedRoot = known.root.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const shape = new RegExp(`^${escapedRoot}(\\d+)([a-z]{2}_)?/(.+)$`, 's');
  const everywhere = new RegExp(`(?:${origin.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')})?${escapedRoot}${known.time}[a-z]{2}_/([^"'\\s<>)]*)`, 'g');
  // How scripts spelled the URLs in their markup.
  const spellings = new Map();
  // A URL of this archive -> the archived URL; any other is unchanged.
  const original = (address) => {
    const text = String(address);
    if (!text.startsWith(origin)) return text;
    const found = shape.exec(text.slice(origin.length));
    return found ? found[3] : text;
  };
  const withoutArchive = (text) => typeof text === 'string' ? text.replace(everywhere, (all, url) => spellings.get(url) ?? url) : text;
  // The page's own URL, as scripts see it.
  const shown = () => {
    const found = isPage && original(realLocation.href);
    return found && /^https?:/.test(found) && !found.startsWith(origin) ? found : known.url;
  };
  const realBase = isPage && descriptor(Node.prototype, 'baseURI').get;
  const base = () => {
    const found = isPage ? original(apply(realBase, document, [])) : known.url;
    return /^https?:/.test(found) && !found.startsWith(origin) ? found : known.url;
  };
  const isOurs = (text) => {
    const path = text.startsWith(origin) ? text.slice(origin.length) : text;
    const found = path.startsWith(known.root) && shape.exec(path);
    return Boolean(found && found[2] && found[1] === known.time) || path.startsWith(known.own);
  };
  // A URL as a script gives it -> a URL of this archive.
  const archived = (address, modifier) => {
    const text = String(address), trimmed = text.trim();
    if (trimmed === '' || trimmed[0] === '#' || isOurs(trimmed)) return text;
    let url;
    try { url = new RealURL(trimmed, base()); } catch (error) { return 'about:invalid'; }
    if (url.protocol === 'ws:' || url.protocol === 'wss:' || url.protocol === 'file:') return 'about:invalid';
    if (!/^(https?|ftp):$/.test(url.protocol)) return text;
    const href = url.origin === origin ? new RealURL(url.pathname + url.search + url.hash, shown()).href : url.href;
    return `${origin}${known.root}${known.time}${modifier || 'mp_'}/${href}`;
  };
  const archivedSet = (text, modifier) => String(text).replace(/(^|,)(\s*)([^\s,]\S*[^\s,]|[^\s,])/g,
    (all, comma, space, address) => comma + space + archived(address, modifier));
  const css = (text) => typeof text !== 'string' || !/url\(|@import/i.test(text) ? text : text
    .replace(/url\(\s*(["']?)([^"')]+)\1\s*\)/gi, (all, quote, address) => `url("${archived(address.trim(), 'oe_')}")`)
    .replace(/@import\s+(["'])([^"']+)\1/gi, (all, quote, address) => `@import "${archived(address, 'cs_')}"`);

  // ---- time and chance ----
  const digits = known.time.padEnd(14, '0'), began = RealDate.now();
  const part = (from, to) => Number(digits.slice(from, to));
  const captured = RealDate.UTC(part(0, 4), Math.max(part(4, 6), 1) - 1, Math.max(part(6, 8), 1), part(8, 10), part(10, 12), part(12, 14));
  const now = () => captured + (RealDate.now() - began);
  const PageDate = new Proxy(RealDate, {
    construct: (target, given, as) => Reflect.construct(target, given.length ? given : [now()], as === PageDate ? target : as),
    apply: () => new RealDate(now()).toString(),
    get: (target, name) => name === 'now' ? now : target[name],
  });
  define(RealDate.prototype, 'constructor', {value: PageDate, writable: true});
  define(global, 'Date', {value: PageDate, writable: true});
  const realRandom = Math.random;
  let seed = 2166136261;
  for (const character of known.time + known.url) seed = Math.imul(seed ^ character.charCodeAt(0), 16777619);
  seed = seed || 1;
  Math.random = () => {
    seed ^= seed << 13; seed ^= seed >>> 17; seed ^= seed << 5;
    return (seed >>> 0) / 4294967296;
  };

  // ---- location ----
  const go = (address, isReplaced) => {
    const text = String(address);
    const to = /^\s*javascript:/i.test(text) ? text : archived(text, known.modifier);
    if (isReplaced) realLocation.replace(to); else realLocation.assign(to);
  };
  // A document that a page made has no URL of its own, but the base of that page.
  const address = () => isPage && /^about:(srcdoc|blank)/.test(realLocation.href) && !given ? realLocation.href : shown();
  const where = Object.create(Object.getPrototypeOf(realLocation));
  for (const name of ['href', 'protocol', 'host', 'hostname', 'port', 'pathname', 'search', 'hash', 'origin']) {
    define(where, name, {
      enumerable: true,
      get: () => new RealURL(address())[name],
      set: isPage && name !== 'origin' ? (value) => {
        if (name === 'href') return go(value);
        if (name === 'hash') { realLocation.hash = value; return; }
        const url = new RealURL(shown());
        url[name] = value;
        go(url.href);
      } : undefined,
    });
  }
  define(where, 'toString', {value: () => address()});
  if (isPage) {
    define(where, 'assign', {value: (address) => go(address)});
    define(where, 'replace', {value: (address) => go(address, true)});
    define(where, 'reload', {value: () => realLocation.reload()});
    define(where, 'ancestorOrigins', {value: {length: 0, item: () => null, contains: () => false}});
  }
  // The frame around the outermost page is ours, of another origin: for the page there is none.
  const isWithin = (() => { try { return Boolean(realParent && realParent !== global && realParent.__perennial); } catch (error) { return false; } })();
  const parentWindow = isWithin ? realParent : global;
  const topWindow = isWithin ? realParent.__perennial.top : global;
  if (isPage) define(global, 'parent', {get: () => parentWindow, set(value) { define(global, 'parent', {value, writable: true}); }});

  const isLocation = (value) => value !== null && typeof value === 'object' && Object.prototype.toString.call(value) === '[object Location]';
  define(Object.prototype, '__perennial_location', {
    get() {
      const found = this.location;
      if (found === realLocation) return where;
      if (!isLocation(found) || found === where) return found;
      const view = this.defaultView || this;
      return view.__perennial ? view.__perennial.location : found;
    },
    set(value) {
      const found = this.location;
      if (found === realLocation) go(value);
      else if (isLocation(found) && (this.defaultView || this).__perennial) (this.defaultView || this).__perennial.location.href = value;
      else this.location = value;
    },
  });
  if (isPage) define(global, '__perennial_top', {get: () => topWindow});
  define(global, '__perennial_import', {value: (address) => {
    const text = String(address);
    return /^(\/|[a-z][a-z0-9+.-]*:)/i.test(text) ? archived(text, 'js_') : text;
  }});

  // ---- code that scripts make: the server rewrites it as it rewrites theirs ----
  const RealRequest = global.XMLHttpRequest, rewrittenCode = new Map();
  const {open: openRequest, send: sendRequest} = RealRequest ? RealRequest.prototype : {};
  const code = (text, kind) => {
    if (typeof text !== 'string' || !RealRequest || !/location|top|postMessage|import|eval/.test(text)) return text;
    const key = `${kind} ${text}`;
    if (rewrittenCode.has(key)) return rewrittenCode.get(key);
    let found = text;
    try {
      const request = new RealRequest(), query = new URLSearchParams({root: known.root, time: known.time, url: base(), kind: kind || 'script'});
      apply(openRequest, request, ['POST', `${origin}${known.own}script?${query}`, false]);
      apply(sendRequest, request, [text]);
      if (request.status === 200) found = request.responseText;
    } catch (error) { /* it runs as it is */ }
    if (rewrittenCode.size > 200) rewrittenCode.clear();
    rewrittenCode.set(key, found);
    return found;
  };
  const withCode = (given) => {
    const names = given.slice(0, -1).join();
    return /location|top/.test(names) || !given.length ? given : [...given.slice(0, -1), code(String(given[given.length - 1]), 'body')];
  };
  for (const Kind of [function () {}, async function () {}, function* () {}, async function* () {}].map((each) => each.constructor)) {
    const Made = new Proxy(Kind, {
      construct: (target, given, as) => Reflect.construct(target, withCode(given), as === Made ? target : as),
      apply: (target, self, given) => apply(target, self, withCode(given)),
    });
    define(Kind.prototype, 'constructor', {value: Made, writable: Kind === Function});
    if (Kind === Function) define(global, 'Function', {value: Made, writable: true});
  }
  for (const name of ['setTimeout', 'setInterval']) {
    replaced(global, name, (real) => function (handler, ...rest) {
      return apply(real, this || global, [typeof handler === 'string' ? code(handler) : handler, ...rest]);
    });
  }
  define(global, '__perennial_original', {value: (address) => original(address)});
  define(global, '__perennial_code', {value: (text) => code(text)});
  define(global, '__perennial_key', {value: (name) => name === 'location' ? '__perennial_location' : name});

  // ---- messages: a page's messages name the page's own origin ----
  const wrappedMessages = new WeakMap(), senders = new Map();
  let nSent = 0;
  const deliver = (caller, message, target, transfer) => {
    const options = target !== null && typeof target === 'object' ? target : {targetOrigin: target, transfer};
    const to = options.targetOrigin === undefined ? '/' : String(options.targetOrigin);
    const ownOrigin = new RealURL(shown()).origin;
    if (to !== '*' && to !== '/' && to !== origin) {
      let named;
      try { named = new RealURL(to).origin; } catch (error) { throw new DOMException(`Invalid target origin '${to}'`, 'SyntaxError'); }
      if (named !== ownOrigin) return;
    }
    const id = ++nSent;
    let from = global;
    try { if (caller && caller.window === caller && caller.__perennial) from = caller; } catch (error) { /* another origin */ }
    senders.set(id, from);
    if (senders.size > 1000) senders.delete(senders.keys().next().value);
    apply(realPost, global, [{__perennial: id, message}, {targetOrigin: '*', transfer: options.transfer || []}]);
  };
  const realPost = isPage ? global.postMessage : null;
  if (isPage) {
    replaced(global, 'postMessage', () => function postMessage(message, target, transfer) { deliver(global, message, target, transfer); });
    const realData = descriptor(MessageEvent.prototype, 'data').get;
    const sender = (event) => {
      if (wrappedMessages.has(event)) return wrappedMessages.get(event);
      const data = apply(realData, event, []);
      const isWrapped = data !== null && typeof data === 'object' && senders.has(data.__perennial) && event.isTrusted;
      const found = isWrapped ? {from: senders.get(data.__perennial), message: data.message} : null;
      wrappedMessages.set(event, found);
      return found;
    };
    accessed(MessageEvent.prototype, 'data', function (value) { const found = sender(this); return found ? found.message : value; });
    accessed(MessageEvent.prototype, 'source', function (value) { const found = sender(this); return found ? found.from : value; });
    accessed(MessageEvent.prototype, 'origin', function (value) {
      const found = sender(this);
      return found ? new RealURL(found.from.__perennial.location.href).origin : value;
    });
  }
  define(Object.prototype, '__perennial_from', {value: function (caller) {
    try {
      if (isPage && this.window === this && this.__perennial) {
        return {postMessage: (message, target, transfer) => this.__perennial.deliver(caller, message, target, transfer)};
      }
    } catch (error) { /* a window of another origin */ }
    return this;
  }});

  const ours = {location: where, top: topWindow, go, deliver, archived, original, known, isGiven: Boolean(given)};
  define(global, '__perennial', {value: Object.freeze(ours), configurable: Boolean(given)});

  // ---- the network ----
  const refused = (name) => {
    if (global[name]) define(global, name, {value: undefined, writable: true});
  };
  replaced(global, 'fetch', (real) => function fetch(input, options) {
    const given = input instanceof Request ? input : archived(input, 'mp_');
    return real.call(global, given, options);
  });
  constructed('Request', (Real, given, as) => {
    const first = given[0] instanceof Real ? given[0] : archived(given[0], 'mp_');
    return Reflect.construct(Real, [first, ...given.slice(1)], as);
  });
  if (global.Request) accessed(Request.prototype, 'url', original);
  if (global.Response) accessed(Response.prototype, 'url', original);
  if (global.XMLHttpRequest) {
    replaced(XMLHttpRequest.prototype, 'open', (real) => function open(method, address, ...rest) {
      return apply(real, this, [method, archived(address, 'mp_'), ...rest]);
    });
    accessed(XMLHttpRequest.prototype, 'responseURL', original);
  }
  // Code for a worker or a module.
  constructed('Blob', (Real, given, as) => {
    const [parts, options] = given;
    const isScript = Array.isArray(parts) && options && /javascript|ecmascript/i.test(String(options.type)) && parts.every((part) => typeof part === 'string');
    return Reflect.construct(Real, isScript ? [[code(parts.join(''))], options] : given, as);
  });
  constructed('EventSource', (Real, given, as) => Reflect.construct(Real, [archived(given[0], 'oe_'), ...given.slice(1)], as));
  // A socket that was never answered: it closes as one does whose server is gone.
  if (global.WebSocket) {
    const states = {CONNECTING: 0, OPEN: 1, CLOSING: 2, CLOSED: 3};
    class ClosedSocket extends EventTarget {
      constructor(address) {
        super();
        Object.assign(this, {url: String(address), readyState: 0, bufferedAmount: 0, extensions: '', protocol: '', binaryType: 'blob'});
        setTimeout(() => {
          this.readyState = 3;
          for (const event of [new Event('error'), new CloseEvent('close', {code: 1006})]) {
            if (typeof this['on' + event.type] === 'function') this['on' + event.type](event);
            this.dispatchEvent(event);
          }
        }, 0);
      }
      send() { if (this.readyState === 0) throw new DOMException('Still in CONNECTING state.', 'InvalidStateError'); }
      close() { this.readyState = 3; }
    }
    Object.assign(ClosedSocket, states);
    Object.assign(ClosedSocket.prototype, states);
    define(ClosedSocket, 'name', {value: 'WebSocket'});
    define(global, 'WebSocket', {value: ClosedSocket, writable: true});
  }
  for (const name of ['WebTransport', 'RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCDataChannel', 'cookieStore']) refused(name);
  if (global.Navigator) replaced(Navigator.prototype, 'sendBeacon', () => () => true);
  const ourWorkers = isPage && navigator.serviceWorker;
  for (const kind of ['Navigator', 'WorkerNavigator']) {
    if (global[kind]) delete global[kind].prototype.serviceWorker;
  }
  // Pages often expect service workers to be there, but must work before one is installed.
  if (isPage && ourWorkers) {
    const none = Object.assign(new EventTarget(), {
      controller: null, ready: new Promise(() => {}), oncontrollerchange: null, onmessage: null, startMessages() {},
      register: () => Promise.reject(new DOMException('Service workers are not replayed.', 'SecurityError')),
      getRegistration: () => Promise.resolve(undefined), getRegistrations: () => Promise.resolve([]),
    });
    define(Navigator.prototype, 'serviceWorker', {get: () => none, enumerable: true});
  }
  const bootstrap = (address, options) => {
    const text = String(address), type = options && options.type;
    const url = /^(blob|data):/i.test(text.trim()) ? shown() : new RealURL(text, base()).href;
    const settings = {...known, url, target: archived(text, 'js_'), type};
    return `${origin}${known.script}#${encodeURIComponent(JSON.stringify(settings))}`;
  };
  for (const name of ['Worker', 'SharedWorker']) {
    constructed(name, (Real, given, as) => {
      const rest = typeof given[1] === 'object' && given[1] !== null ? [{...given[1], type: 'classic'}] : given.slice(1);
      return Reflect.construct(Real, [bootstrap(given[0], given[1]), ...rest], as);
    });
  }
  if (global.importScripts) {
    replaced(global, 'importScripts', (real) => (...addresses) => apply(real, global, addresses.map((address) => archived(address, 'js_'))));
  }

  // ---- storage: one archived site does not see that of another by accident ----
  const site = () => `${new RealURL(shown()).origin} `;
  const stored = (real) => {
    const keys = () => Object.keys(real).filter((key) => key.startsWith(site())).map((key) => key.slice(site().length));
    const methods = {
      getItem: (key) => real.getItem(site() + key),
      setItem: (key, value) => real.setItem(site() + key, value),
      removeItem: (key) => real.removeItem(site() + key),
      clear: () => keys().forEach((key) => real.removeItem(site() + key)),
      key: (index) => keys()[index] ?? null,
    };
    return new Proxy(Object.create(Storage.prototype), {
      get: (target, key) => key in methods ? methods[key] : key === 'length' ? keys().length
        : typeof key === 'symbol' ? target[key] : methods.getItem(key) ?? undefined,
      set: (target, key, value) => { methods.setItem(key, value); return true; },
      has: (target, key) => key in methods || (typeof key === 'string' && methods.getItem(key) !== null),
      deleteProperty: (target, key) => { methods.removeItem(key); return true; },
      ownKeys: keys,
      getOwnPropertyDescriptor: (target, key) => methods.getItem(key) === null ? undefined
        : {value: methods.getItem(key), writable: true, enumerable: true, configurable: true},
    });
  };
  let realSession = null;
  for (const name of isPage ? ['localStorage', 'sessionStorage'] : []) {
    let real;
    try { real = global[name]; } catch (error) { continue; }
    if (name === 'sessionStorage') realSession = real;
    if (real) { const made = stored(real); define(global, name, {get: () => made}); }
  }
  const namedBySite = (object, name) => replaced(object, name, (real) => function (given, ...rest) {
    return apply(real, this, [site() + given, ...rest]);
  });
  if (global.IDBFactory) ['open', 'deleteDatabase'].forEach((name) => namedBySite(IDBFactory.prototype, name));
  if (global.CacheStorage) ['open', 'has', 'delete'].forEach((name) => namedBySite(CacheStorage.prototype, name));
  constructed('BroadcastChannel', (Real, given, as) => Reflect.construct(Real, [site() + given[0]], as));

  if (!isPage) {
    // A worker: its own script comes now. What is said to a module before it has loaded waits.
    define(global, 'location', {get: () => where});
    define(global, 'origin', {get: () => new RealURL(shown()).origin});
    if (known.type !== 'module') return global.importScripts(known.target);
    const early = [];
    const keep = (event) => { event.stopImmediatePropagation(); early.push(event); };
    global.addEventListener('message', keep);
    import(known.target).then(() => {
      global.removeEventListener('message', keep);
      early.forEach((event) => global.dispatchEvent(new MessageEvent('message', {data: event.data, ports: [...event.ports]})));
    });
    return;
  }

  // ---- the document ----
  accessed(Document.prototype, 'URL', address);
  accessed(Document.prototype, 'documentURI', address);
  accessed(Document.prototype, 'referrer', (value) => { const found = original(value); return found.startsWith(origin) || found.startsWith(known.main) ? '' : found; });
  accessed(Node.prototype, 'baseURI', original);
  define(Document.prototype, 'domain', {get: () => new RealURL(shown()).hostname, set() {}});
  define(global, 'origin', {get: () => new RealURL(shown()).origin, set(value) { define(global, 'origin', {value, writable: true}); }});
  // Cookies that scripts set, for the pages and frames of a site in this tab.
  const jarKey = `cookies of ${site()}`;
  const readJar = () => {
    try { return new Map(JSON.parse(apply(Storage.prototype.getItem, realSession, [jarKey]) || '[]')); } catch (error) { return ownJar; }
  };
  const ownJar = new Map();
  const writeJar = (jar) => {
    try { apply(Storage.prototype.setItem, realSession, [jarKey, JSON.stringify([...jar])]); } catch (error) { /* kept by this page only */ }
  };
  define(Document.prototype, 'cookie', {
    get: () => [...readJar()].map(([name, value]) => name ? `${name}=${value}` : value).join('; '),
    set(text) {
      const jar = readJar();
      const [pair, ...rest] = String(text).split(';');
      const at = pair.indexOf('='), name = at < 0 ? '' : pair.slice(0, at).trim(), value = pair.slice(at + 1).trim();
      const isOver = rest.some((attribute) => {
        const [key, given] = attribute.split('=').map((word) => word.trim());
        return /^max-age$/i.test(key) ? Number(given) <= 0 : /^expires$/i.test(key) && RealDate.parse(given) <= now();
      });
      if (isOver) jar.delete(name); else if (jar.size < 200 && String(text).length < 4096) jar.set(name, value);
      writeJar(jar);
    },
  });
  for (const name of ['pushState', 'replaceState']) {
    replaced(History.prototype, name, (real) => function (state, title, address) {
      if (address === undefined || address === null) return apply(real, this, [state, title]);
      const url = new RealURL(String(address), base());
      if (url.origin !== new RealURL(shown()).origin) {
        throw new DOMException(`A history state object with URL '${url.href}' cannot be created`, 'SecurityError');
      }
      return apply(real, this, [state, title, archived(url.href, known.modifier)]);
    });
  }
  const targetOf = (name, isClick) => {
    const wanted = String(name || '').toLowerCase();
    if (wanted === '' || wanted === '_self') return global;
    if (wanted === '_parent') return parentWindow;
    if (wanted === '_top') return topWindow;
    const found = wanted !== '_blank' && frameNamed(topWindow, String(name), 0);
    if (found) return found;
    return isClick ? topWindow : null;
  };
  const frameNamed = (view, name, depth) => {
    try {
      if (view.name === name && view.__perennial) return view;
      for (let index = 0; index < Math.min(view.length, 50) && depth < 5; index++) {
        const found = frameNamed(view[index], name, depth + 1);
        if (found) return found;
      }
    } catch (error) { /* a frame of another origin */ }
    return null;
  };
  // A window that a script opens takes the page's place if a person has just clicked, and is not opened otherwise.
  replaced(global, 'open', () => function open(address, name) {
    const isClick = Boolean(navigator.userActivation && navigator.userActivation.isActive);
    const target = targetOf(name || '_blank', isClick);
    if (!target || !target.__perennial) return null;
    if (address !== undefined && address !== '') target.__perennial.go(new RealURL(String(address), base()).href);
    return target;
  });

  // ---- elements ----
  const MODIFIERS = {script: 'js_', img: 'im_', input: 'im_', image: 'im_', iframe: 'if_', frame: 'fr_'};
  const modifierOf = (tag, name, rel, as) => {
    switch (name) {
      case 'src': return MODIFIERS[tag] || 'oe_';
      case 'href': case 'xlink:href':
        if (tag === 'link') return /stylesheet/i.test(rel) || as === 'style' ? 'cs_' : /icon/i.test(rel) || as === 'image' ? 'im_'
          : /modulepreload/i.test(rel) || as === 'script' ? 'js_' : /preload|manifest|prefetch/i.test(rel) ? 'oe_' : 'mp_';
        return tag === 'image' || tag === 'feimage' || tag === 'use' ? 'im_' : 'mp_';
      case 'action': case 'formaction': case 'cite': case 'longdesc': return 'mp_';
      case 'poster': case 'background': return 'im_';
      case 'data': return tag === 'object' ? 'oe_' : null;
      case 'srcset': case 'imagesrcset': return 'im_';
      default: return null;
    }
  };
  // The parts of a frame without an origin would be requests of another website, which the server refuses.
  const sandboxed = (value) => /allow-same-origin/.test(value) ? value : `${value} allow-same-origin`;
  // The value of an attribute as it must stand in the document; `null`: not at all.
  const attribute = (tag, name, value, rel, as) => {
    if (/^(ping|integrity|referrerpolicy|csp)$/.test(name)) return null;
    if (name === 'style') return css(value);
    if (name === 'srcdoc') return markup(value);
    if (name === 'sandbox') return sandboxed(value);
    if (name === 'target' || name === 'formtarget') return /^_(blank|new|top)$/i.test(value) ? known.frame : value;
    const modifier = modifierOf(tag, name, rel || '', as);
    if (!modifier) return value;
    if (/srcset$/.test(name)) return archivedSet(value, modifier);
    const stored = archived(value, modifier), url = original(stored);
    if (url !== stored && url !== value) {
      if (spellings.size > 2000) spellings.clear();
      spellings.set(url, value);
    } else spellings.delete(url);
    return stored;
  };
  const realHtml = descriptor(Element.prototype, 'innerHTML');
  const inert = document.implementation.createHTMLDocument('').createElement('textarea');
  const decoded = (text) => {
    if (!text.includes('&')) return text;
    realHtml.set.call(inert, text);
    return inert.value;
  };
  const encoded = (text) => text.replace(/&/g, '&amp;').replace(/"/g, '&quot;');
  const isCode = (type) => !type || /^\s*(module|(text|application)\/(x-)?(java|ecma)script)/i.test(type);
  // Markup as scripts write it, perhaps in pieces: the attributes of whole tags are rewritten.
  const markup = (given) => {
    const text = String(given);
    if (!text.includes('<')) return text;
    return text.replace(/<([a-zA-Z][^\s\/>]*)((?:"[^"]*"|'[^']*'|[^'">])*)>/g, (all, tag, inside) => {
      const lower = tag.toLowerCase();
      const rel = (/\brel\s*=\s*["']?([^"'>]*)/i.exec(inside) || [])[1], as = (/\bas\s*=\s*["']?(\w+)/i.exec(inside) || [])[1];
      const changed = inside.replace(/([^\s"'<>\/=]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>`]+)/g, (pair, name, quoted) => {
        const value = decoded(/^["']/.test(quoted) ? quoted.slice(1, -1) : quoted);
        const becomes = attribute(lower, name.toLowerCase(), value, rel, as);
        return becomes === null ? '' : becomes === value ? pair : `${name}="${encoded(becomes)}"`;
      });
      return `<${tag}${changed}>`;
    }).replace(/(<style\b[^>]*>)([\s\S]*?)(<\/style)/gi, (all, open, text, close) => open + css(text) + close)
      .replace(/(<script\b([^>]*)>)([\s\S]*?)(<\/script)/gi, (all, open, inside, text, close) =>
        isCode((/\btype\s*=\s*["']?([^"'\s>]*)/i.exec(inside) || [])[1]) ? open + code(text) + close : all);
  };
  const markedUp = (object, name, at) => replaced(object, name, (real) => function (...given) {
    if (given.length > at) given[at] = markup(given[at]);
    return apply(real, this, given);
  });
  // The text of an element that is not markup.
  const raw = (element, value) => element instanceof HTMLStyleElement ? css(value)
    : element instanceof HTMLScriptElement && isCode(element.type) ? code(value) : value;
  for (const kind of ['Element', 'ShadowRoot']) {
    accessed(global[kind].prototype, 'innerHTML', withoutArchive, function (value) {
      return this instanceof HTMLStyleElement || this instanceof HTMLScriptElement ? raw(this, value) : value === null ? value : markup(value);
    });
  }
  accessed(HTMLScriptElement.prototype, 'text', null, function (value) { return raw(this, value); });
  accessed(Element.prototype, 'outerHTML', withoutArchive, markup);
  markedUp(Element.prototype, 'insertAdjacentHTML', 1);
  markedUp(Range.prototype, 'createContextualFragment', 0);
  markedUp(DOMParser.prototype, 'parseFromString', 0);
  for (const name of ['write', 'writeln']) {
    replaced(Document.prototype, name, (real) => function (...texts) {
      const isNew = this === document && document.readyState !== 'loading';
      const result = apply(real, this, [markup(texts.join(''))]);
      // The page replaced itself.
      if (isNew) { document_ = realRandom(); reportPage(); }
      return result;
    });
  }

  // What a script set, because it expects to read the same.
  const givenValues = new WeakMap();
  const remember = (element, name, value, stored) => {
    if (!givenValues.has(element)) givenValues.set(element, {});
    givenValues.get(element)[name] = {value: String(value), stored};
    return stored;
  };
  const reflect = (kind, property, modifier) => {
    const Kind = global[kind];
    if (!Kind) return;
    const give = typeof modifier === 'function' ? modifier : () => modifier;
    accessed(Kind.prototype, property, property === 'srcset' ? withoutArchive : original, function (value) {
      const stored = property === 'srcset' ? archivedSet(value, give(this)) : archived(value, give(this));
      return remember(this, property.toLowerCase(), value, stored);
    });
  };
  const linkModifier = (link) => modifierOf('link', 'href', link.rel, link.as);
  for (const [kind, property, modifier] of [
    ['HTMLAnchorElement', 'href', 'mp_'], ['HTMLAreaElement', 'href', 'mp_'], ['HTMLBaseElement', 'href', 'mp_'],
    ['HTMLLinkElement', 'href', linkModifier], ['HTMLImageElement', 'src', 'im_'], ['HTMLImageElement', 'srcset', 'im_'],
    ['HTMLImageElement', 'currentSrc', 'im_'], ['HTMLSourceElement', 'src', 'oe_'], ['HTMLSourceElement', 'srcset', 'im_'],
    ['HTMLMediaElement', 'src', 'oe_'], ['HTMLMediaElement', 'currentSrc', 'oe_'], ['HTMLVideoElement', 'poster', 'im_'],
    ['HTMLTrackElement', 'src', 'oe_'], ['HTMLScriptElement', 'src', 'js_'], ['HTMLIFrameElement', 'src', 'if_'],
    ['HTMLFrameElement', 'src', 'fr_'], ['HTMLEmbedElement', 'src', 'oe_'], ['HTMLObjectElement', 'data', 'oe_'],
    ['HTMLInputElement', 'src', 'im_'], ['HTMLInputElement', 'formAction', 'mp_'], ['HTMLButtonElement', 'formAction', 'mp_'],
    ['HTMLFormElement', 'action', 'mp_'], ['HTMLBodyElement', 'background', 'im_'],
  ]) reflect(kind, property, modifier);
  accessed(HTMLIFrameElement.prototype, 'srcdoc', withoutArchive, markup);
  accessed(HTMLIFrameElement.prototype, 'sandbox', null, sandboxed);
  accessed(StyleSheet.prototype, 'href', (value) => value && original(value));
  for (const kind of ['HTMLScriptElement', 'HTMLLinkElement']) accessed(global[kind].prototype, 'integrity', null, () => '');
  for (const kind of ['HTMLAnchorElement', 'HTMLAreaElement']) {
    const href = descriptor(global[kind].prototype, 'href');
    for (const name of ['protocol', 'host', 'hostname', 'port', 'pathname', 'search', 'hash', 'origin']) {
      const given = descriptor(global[kind].prototype, name);
      if (!given) continue;
      define(global[kind].prototype, name, {
        enumerable: true,
        get() { try { return new RealURL(this.href)[name]; } catch (error) { return ''; } },
        set(value) { try { const url = new RealURL(this.href); url[name] = value; href.set.call(this, url.href); } catch (error) { /* no address */ } },
      });
    }
    define(global[kind].prototype, 'toString', {value: function () { return this.href; }, writable: true});
  }
  const ADDRESSES = /^(src|href|xlink:href|action|formaction|cite|longdesc|poster|background|data|srcset|imagesrcset|style|target|srcdoc|sandbox)$/;
  const setting = (real, at) => function (...given) {
    const name = String(given[at]).toLowerCase(), tag = this.localName;
    if (ADDRESSES.test(name) || /^(ping|integrity|referrerpolicy|csp)$/.test(name)) {
      const value = attribute(tag, name, String(given[at + 1]), this.rel, this.as);
      if (value === null) return undefined;
      given[at + 1] = remember(this, name, given[at + 1], value);
    }
    return apply(real, this, given);
  };
  replaced(Element.prototype, 'setAttribute', (real) => setting(real, 0));
  replaced(Element.prototype, 'setAttributeNS', (real) => setting(real, 1));
  const realAttributeOf = Element.prototype.getAttribute;
  replaced(Element.prototype, 'getAttribute', (real) => function (name) {
    const value = apply(real, this, [name]), lower = String(name).toLowerCase();
    if (value === null || !ADDRESSES.test(lower)) return value;
    const given = (givenValues.get(this) || {})[lower];
    return given && given.stored === value ? given.value : withoutArchive(value);
  });

  const realNode = Element.prototype.getAttributeNode, realNodeValue = descriptor(Attr.prototype, 'value').get;
  accessed(Attr.prototype, 'value', function (value) {
    return this.ownerElement && ADDRESSES.test(this.localName) ? this.ownerElement.getAttribute(this.name) : value;
  }, function (value) {
    const element = this.ownerElement, name = this.name.toLowerCase();
    if (!element || !ADDRESSES.test(name)) return value;
    const stored = attribute(element.localName, name, String(value), element.rel, element.as);
    return stored === null ? '' : remember(element, name, value, stored);
  });
  if (global.SVGAnimatedString) accessed(SVGAnimatedString.prototype, 'baseVal', withoutArchive, null);
  if (global.XMLSerializer) replaced(XMLSerializer.prototype, 'serializeToString', (real) => function (...nodes) { return withoutArchive(apply(real, this, nodes)); });

  // ---- styles ----
  for (const name of ['insertRule', 'replace', 'replaceSync', 'addRule']) {
    replaced(CSSStyleSheet.prototype, name, (real) => function (...given) { return apply(real, this, given.map(css)); });
  }
  replaced(CSSStyleDeclaration.prototype, 'setProperty', (real) => function (name, value, ...rest) { return apply(real, this, [name, css(value), ...rest]); });
  // Where the browser has accessors of a style's properties, these are wrapped; Chromium has none, so they are defined.
  const realProperty = CSSStyleDeclaration.prototype.setProperty, readProperty = CSSStyleDeclaration.prototype.getPropertyValue;
  accessed(CSSStyleDeclaration.prototype, 'cssText', withoutArchive, css);
  for (const property of ['background', 'background-image', 'border-image', 'border-image-source', 'content', 'cursor', 'filter', 'list-style',
    'list-style-image', 'mask', 'mask-image', 'mask-border-source', 'offset-path', 'shape-outside', 'clip-path', '-webkit-mask-image', '-webkit-mask',
    '-webkit-border-image', '-webkit-mask-box-image', '-webkit-mask-box-image-source']) {
    const camel = property.replace(/-(.)/g, (all, letter) => letter.toUpperCase());
    for (const name of new Set([property, camel, camel.replace(/^Webkit/, 'webkit')])) {
      const at = [CSSStyleDeclaration, global.CSSStyleProperties].find((Kind) => Kind && descriptor(Kind.prototype, name));
      if (at) { accessed(at.prototype, name, withoutArchive, css); continue; }
      define(CSSStyleDeclaration.prototype, name, {
        enumerable: true,
        get() { return withoutArchive(apply(readProperty, this, [property])); },
        set(value) { apply(realProperty, this, [property, css(value === null ? '' : String(value))]); },
      });
    }
  }
  replaced(CSSStyleDeclaration.prototype, 'getPropertyValue', (real) => function (name) { return withoutArchive(apply(real, this, [name])); });
  accessed(HTMLElement.prototype, 'style', null, css);
  for (const Kind of [Node, HTMLScriptElement]) accessed(Kind.prototype, 'textContent', null, function (value) { return raw(this, value); });
  for (const Kind of [HTMLElement, HTMLScriptElement]) accessed(Kind.prototype, 'innerText', null, function (value) { return raw(this, value); });
  for (const name of ['appendChild', 'insertBefore']) {
    replaced(Node.prototype, name, (real) => function (node, ...rest) {
      if (node instanceof Text && this instanceof HTMLElement) {
        const text = raw(this, node.data);
        if (text !== node.data) node.data = text;
      }
      return apply(real, this, [node, ...rest]);
    });
  }
  for (const name of ['append', 'prepend']) {
    replaced(Element.prototype, name, (real) => function (...nodes) {
      return apply(real, this, nodes.map((node) => typeof node === 'string' ? raw(this, node) : node));
    });
  }
  constructed('FontFace', (Real, given, as) => Reflect.construct(Real, [given[0], css(given[1]), ...given.slice(2)], as));
  global.Image && constructed('Audio', (Real, given, as) => Reflect.construct(Real, given.length ? [archived(given[0], 'oe_')] : [], as));

  // ---- what the browser measured ----
  const realEntryName = descriptor(PerformanceEntry.prototype, 'name').get;
  accessed(PerformanceEntry.prototype, 'name', original);
  for (const kind of ['Performance', 'PerformanceObserverEntryList']) {
    if (global[kind]) replaced(global[kind].prototype, 'getEntriesByName', () => function (name, type) {
      return this.getEntries().filter((entry) => entry.name === String(name) && (type === undefined || entry.entryType === type));
    });
  }

  // ---- empty frames, which a page fills itself ----
  let source;
  const prepare = (frame, view) => {
    try {
      const address = apply(realAttributeOf, frame, ['src']);
      const isEmpty = (!address || /^\s*about:blank\s*$/i.test(address)) && apply(realAttributeOf, frame, ['srcdoc']) === null;
      if (!isEmpty || !view || view.__perennial || view.location.href !== 'about:blank') return;
      if (source === undefined) {
        const request = new RealRequest();
        apply(openRequest, request, ['GET', ownSource, false]);
        apply(sendRequest, request, []);
        source = request.status === 200 ? request.responseText : '';
      }
      view.__perennial_given = {known: {...known, url: shown()}, origin, source: ownSource};
      view.eval(source);
    } catch (error) { /* a frame of another origin */ }
  };
  if (ownSource) {
    accessed(HTMLIFrameElement.prototype, 'contentWindow', function (view) { prepare(this, view); return view; });
    accessed(HTMLIFrameElement.prototype, 'contentDocument', function (found) { prepare(this, found && found.defaultView); return found; });
  }

  // ---- clicks and forms ----
  const realAttribute = (element, name) => {
    const node = apply(realNode, element, [name]);
    return node ? apply(realNodeValue, node, []) : undefined;
  };
  const lead = (element, name) => {
    const value = realAttribute(element, name);
    if (value !== undefined) element.setAttribute(name, value);
  };
  const onClick = (event) => {
    const link = event.composedPath().find((node) => node instanceof Element && /^(a|area)$/i.test(node.localName));
    if (!link) return;
    lead(link, 'href');
    lead(link, 'xlink:href');
    const name = link.target && String(link.target);
    if (!name || event.defaultPrevented) return;
    const target = name === known.frame ? topWindow : targetOf(name, true);
    // A frame may not lead its neighbour, but the neighbour may lead itself.
    if (target && target !== global && target.__perennial) {
      const href = link.href;
      event.preventDefault();
      target.__perennial.go(href);
    } else if (target === global) link.target = '_self';
  };
  // Behind the page's own listeners, which may prevent it.
  global.addEventListener('click', onClick);
  global.addEventListener('submit', (event) => { lead(event.target, 'action'); if (event.submitter) lead(event.submitter, 'formaction'); });
  replaced(HTMLFormElement.prototype, 'submit', (real) => function () { lead(this, 'action'); return apply(real, this, []); });

  // What code that is made at run time gives to the browser's own location, where the browser lets us see it.
  if (global.navigation) navigation.addEventListener('navigate', (event) => {
    const address = event.destination.url;
    if (!event.cancelable || event.hashChange || event.formData || !/^https?:/.test(address)) return;
    const to = archived(address, known.modifier);
    if (to === address) return;
    event.preventDefault();
    realLocation.assign(to);
  });

  // ---- reports to the banner ----
  const isOutermost = !isWithin && realParent !== global;
  const say = (kind, what) => {
    if (isOutermost) realParent.postMessage({perennial: kind, ...what}, known.main);
  };
  // The document that was loaded, whatever its scripts make of its address; a number tells it from the next.
  let document_ = realRandom();
  const reportPage = () => say('page', {url: known.url, time: known.time, document: document_});
  const parts = () => {
    const found = new Map();
    const collect = (view, depth) => {
      for (const entry of view.performance.getEntriesByType('resource')) {
        const name = apply(realEntryName, entry, []), path = name.startsWith(origin) ? shape.exec(name.slice(origin.length)) : null;
        if (path && found.size < 500) found.set(path[3], entry.responseStatus ?? 0);
      }
      for (let index = 0; index < Math.min(view.length, 50) && depth < 4; index++) {
        try {
          const frame = view[index];
          if (!frame.__perennial) continue;
          found.set(frame.__perennial.location.href, 200);
          collect(frame, depth + 1);
        } catch (error) { /* a frame of another origin */ }
      }
    };
    collect(global, 0);
    say('parts', {url: shown(), parts: [...found].map(([url, status]) => ({url, status}))});
  };
  if (isOutermost) {
    // Before any script of the page.
    reportPage();
    document.addEventListener('DOMContentLoaded', () => say('viewport', {isGiven: Boolean(document.querySelector('meta[name=viewport i]'))}));
    global.addEventListener('load', () => { setTimeout(parts, 300); setTimeout(parts, 3000); });
    // The block that was clicked, as its words: the banner can say when they changed.
    global.addEventListener('click', (event) => {
      const block = event.composedPath().find((node) => node instanceof Element
        && /^(p|h[1-6]|li|td|th|dt|dd|blockquote|pre|figcaption|article|section|div)$/i.test(node.localName)
        && node.innerText && node.innerText.trim().length > 2);
      if (block) say('block', {text: block.innerText.trim().replace(/\s+/g, ' ').slice(0, 400)});
    }, true);
  }
  try {
    if (ourWorkers && global.isSecureContext) ourWorkers.register(known.own + 'worker.js', {scope: '/'}).catch(() => {});
  } catch (error) { /* not allowed here: then the server alone leads stray requests */ }
})();
