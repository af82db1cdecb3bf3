/* Saves a chart of the page as an SVG or a PNG file. A saved picture has no page around it, so its colours are written
   out. What is folded on the screen is open on paper. */
(() => {
  const styles = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight"];
  const size = (svg) => {
    const box = svg.viewBox.baseVal;
    return box && box.width ? [box.width, box.height] : [svg.clientWidth, svg.clientHeight];
  };
  const standalone = (svg) => {
    const copy = svg.cloneNode(true);
    const from = svg.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((one, at) => {
      const seen = getComputedStyle(from[at]);
      for (const name of styles) one.setAttribute(name, seen.getPropertyValue(name));
    });
    const [width, height] = size(svg);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  };
  const raster = async (text, [width, height]) => {
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await picture.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  };
  const save = async (figure, kind) => {
    const svg = figure.querySelector(".chart svg");
    if (!svg) return;
    const text = standalone(svg);
    const link = document.createElement("a");
    link.href = kind === "png" ? await raster(text, size(svg)) : `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    link.download = `${figure.dataset.name}.${kind}`;
    link.click();
  };
  for (const button of document.querySelectorAll("figure button[data-kind]")) {
    button.addEventListener("click", () => save(button.closest("figure"), button.dataset.kind));
  }
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.part:not([open])")];
    folded.forEach((one) => one.setAttribute("open", ""));
  });
  addEventListener("afterprint", () => folded.forEach((one) => one.removeAttribute("open")));
})();
