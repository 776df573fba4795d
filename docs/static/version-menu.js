/* Fills the menu of versions from versions.js, and leads to the same page of another version. */
for (const menu of document.querySelectorAll(".version-menu select")) {
  const { root, page, version } = menu.dataset;
  const names = window.tailwiseVersions || [];
  menu.replaceChildren(...[...new Set([...names, version])].map((name) => new Option(name, name, false, name === version)));
  menu.addEventListener("change", () => {
    location.href = `${root}${menu.value}/${page}`;
  });
}
