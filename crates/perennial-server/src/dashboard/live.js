// While a crawl runs, the margin of the home page is updated, except while it contains the focus.
(() => {
  const margin = document.querySelector('aside');
  setInterval(async () => {
    if (document.hidden || margin.contains(document.activeElement)) return;
    const response = await fetch(location.pathname + location.search).catch(() => null);
    if (!response || !response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), 'text/html'), fresh = page.querySelector('aside');
    if (fresh) margin.replaceChildren(...fresh.childNodes);
    const current = page.querySelector('h1'), heading = document.querySelector('h1');
    if (current && heading.textContent !== current.textContent) {
      const link = Object.assign(document.createElement('a'), { href: location.href, textContent: current.textContent });
      document.querySelector('.lead').replaceChildren('Now: ', link, '.');
    }
  }, 5000);
})();
