// While a crawl runs, the margin of home is what the server says now. It stays as it is while somebody is in it.
(() => {
  const margin = document.querySelector('aside');
  setInterval(async () => {
    if (document.hidden || margin.contains(document.activeElement)) return;
    const answer = await fetch(location.pathname + location.search).catch(() => null);
    if (!answer || !answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html'), fresh = page.querySelector('aside');
    if (fresh) margin.replaceChildren(...fresh.childNodes);
    const said = page.querySelector('h1'), heading = document.querySelector('h1');
    if (said && heading.textContent !== said.textContent) {
      const link = Object.assign(document.createElement('a'), { href: location.href, textContent: said.textContent });
      document.querySelector('.lead').replaceChildren('Now: ', link, '.');
    }
  }, 5000);
})();
