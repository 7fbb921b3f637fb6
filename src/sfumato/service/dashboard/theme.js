// Before anything is painted: a chosen theme must not flash in the other one first.
(function () {
  const chosen = sessionStorage.getItem("sfumato.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
