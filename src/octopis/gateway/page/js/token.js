/** Asks the person for a token where the overlay is secured. It is kept in memory only. */
import { onTokenNeeded, setToken } from "./api.js";
import { byId } from "./dom.js";

export function startToken(forgotten) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("token-dialog"));
  const field = /** @type {HTMLInputElement} */ (byId("token"));
  let answers = [];
  let wasRefused = false;
  onTokenNeeded(() => {
    byId("token-refused").hidden = !wasRefused;
    if (!dialog.open) dialog.showModal();
    return new Promise((resolve) => answers.push(resolve));
  });
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = field.value.trim();
    if (!given) return;
    field.value = "";
    wasRefused = true; // should the gateway ask again
    dialog.close();
    const waiting = answers;
    answers = [];
    for (const answer of waiting) answer(given);
  });
  byId("forget-token").addEventListener("click", () => {
    wasRefused = false;
    setToken("");
    forgotten();
  });
}
