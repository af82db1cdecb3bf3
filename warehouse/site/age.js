// Adds to each time how long ago it is, counted when the page is read; data of more than two days ago is coloured.
(() => {
  const units = [["day", 24], ["hour", 1]];
  const ago = (hours) => {
    const [name, size] = units.find(([, one]) => hours >= 2 * one) ?? units.at(-1);
    const count = Math.floor(hours / size);
    return `${count} ${name}${count === 1 ? "" : "s"} ago`;
  };
  for (const one of document.querySelectorAll("time")) {
    const hours = (Date.now() - Date.parse(one.dateTime)) / 3.6e6;
    if (!(hours >= 0)) continue;
    one.append(` (${ago(hours)})`);
    one.classList.toggle("suspect", hours > 48);
  }
})();
