(() => {
  const fit = () => document.querySelectorAll('.sheet').forEach(sheet => {
    const scale = sheet.parentElement.clientWidth / 1280;
    sheet.style.transform = `scale(${scale})`;
    sheet.style.marginBottom = `${sheet.offsetHeight * (scale - 1)}px`;
  });
  const centre = element => {
    const pane = element.closest('.scroll');
    const box = element.getBoundingClientRect(), frame = pane.getBoundingClientRect();
    pane.scrollTop += box.top - frame.top - (frame.height - Math.min(box.height, frame.height)) / 2;
  };
  const show = op => {
    document.querySelectorAll('.hot').forEach(element => element.classList.remove('hot'));
    const places = document.querySelectorAll(`[data-op="${op}"]`);
    places.forEach(element => element.classList.add('hot'));
    ['before', 'after'].forEach(side => {
      const place = document.querySelector(`#${side} [data-op="${op}"]`);
      if (place) centre(place);
    });
    const entry = document.querySelector(`nav [data-op="${op}"]`);
    if (entry) entry.scrollIntoView({ block: 'nearest' });
  };
  addEventListener('resize', fit);
  addEventListener('click', event => {
    const target = event.target.closest('[data-op]');
    if (target) show(target.dataset.op);
  });
  addEventListener('keydown', event => {
    if (event.key === 'Enter' && event.target.dataset.op) show(event.target.dataset.op);
  });
  fit();
  if (location.hash.startsWith('#op')) show(location.hash.slice(3));
})();
