// Draws each chart of the page when it comes into view, and all of them before the page is printed.
(() => {
  const templates = JSON.parse(document.getElementById("templates").textContent);
  const spec = (figure) => ({
    ...templates[figure.dataset.chart],
    datasets: JSON.parse(figure.querySelector("script").textContent),
  });
  const draw = (figure) => {
    if (figure.dataset.drawn) return;
    figure.dataset.drawn = "yes";
    vegaEmbed(figure.querySelector(".chart"), spec(figure), { renderer: "svg", actions: false, logLevel: 1 });
  };
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  const seen = new IntersectionObserver(
    (entries) => entries.filter((one) => one.isIntersecting).forEach((one) => draw(one.target)),
    { rootMargin: "400px" },
  );
  figures.forEach((figure) => seen.observe(figure));
  addEventListener("beforeprint", () => figures.forEach(draw));
})();
