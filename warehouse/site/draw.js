// Draws each chart of the page when it comes into view, and all of them before the page is printed.
(() => {
  const templates = JSON.parse(document.getElementById("templates").textContent);
  const colour = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const spec = (figure) => ({
    ...templates[figure.dataset.chart],
    datasets: JSON.parse(figure.querySelector("script").textContent),
  });
  const options = { renderer: "svg", actions: false, logLevel: 1 };
  const draw = (figure) => {
    if (figure.dataset.drawn) return;
    figure.dataset.drawn = "yes";
    vegaEmbed(figure.querySelector(".chart"), spec(figure), options);
  };
  // A saved picture has no page around it, so its colours are written out.
  const save = async (figure, kind) => {
    const text = JSON.stringify({ ...spec(figure), width: 760 });
    const plain = JSON.parse(text.replace(/var\((--\w+)\)/g, (_, name) => colour(name)));
    const made = await vegaEmbed(document.createElement("div"), plain, { ...options, renderer: "none" });
    const link = document.createElement("a");
    link.href = await made.view.toImageURL(kind, 2);
    link.download = `${figure.dataset.name}.${kind}`;
    link.click();
  };
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const seen = new IntersectionObserver(
    (entries) => entries.filter((one) => one.isIntersecting).forEach((one) => draw(one.target)),
    { rootMargin: "400px" },
  );
  for (const figure of figures) {
    seen.observe(figure);
    for (const button of figure.querySelectorAll("button")) {
      button.addEventListener("click", () => save(figure, button.dataset.kind));
    }
  }
  addEventListener("beforeprint", () => figures.forEach(draw));
})();
