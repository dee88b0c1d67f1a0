// The service worker of the origin of replays. A page that asks for an absolute path of its own host, such as /api/x, asks our
// origin: here the request gets the host of the page that asked. Nothing of another origin is asked for.
'use strict';
const own = new URL('./', self.location.href).pathname;
const shape = /^(.*\/web\/|\/web\/)(\d+)([a-z]{2}_)?\/(https?:\/\/.+)$/s;

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));

// The archived URL for a path that a page requested; `null` if the page is not one of the archive's.
function archived(asker, path) {
  const url = new URL(asker);
  const found = shape.exec(url.pathname + url.search);
  if (!found) return null;
  return `${found[1]}${found[2]}mp_/${new URL(path, found[4]).href}`;
}

async function lead(event, url) {
  const client = event.clientId ? await self.clients.get(event.clientId) : null;
  const to = archived(client && client.url.startsWith('http') ? client.url : event.request.referrer || url.href, url.pathname + url.search);
  if (!to) return fetch(event.request);
  const {method, headers, credentials, cache, signal} = event.request;
  const body = method === 'GET' || method === 'HEAD' ? undefined : await event.request.blob();
  return fetch(to, {method, headers, body, credentials, cache, signal});
}

self.addEventListener('fetch', (event) => {
  const url = new URL(event.request.url);
  if (url.origin !== self.location.origin) {
    if (/^https?:$/.test(url.protocol)) event.respondWith(Response.error());
    return;
  }
  // Requests for the archive's own files pass unchanged; the server redirects navigation.
  if (url.pathname.startsWith(own) || shape.test(url.pathname + url.search) || event.request.mode === 'navigate') return;
  event.respondWith(lead(event, url));
});
