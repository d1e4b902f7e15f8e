import { useEffect } from "preact/hooks";
import { go } from "../router.tsx";
import { shortcuts } from "./shortcuts.ts";

const searchInput = () => document.querySelector<HTMLInputElement>("#search");

/** `/` searches, `j` and `k` go along a table's rows, `g` and a letter go to a page. */
export function useShortcuts(): void {
  useEffect(() => {
    let isGoing = false;
    const hear = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
      const wasGoing = isGoing;
      isGoing = event.key === "g";
      const path = wasGoing ? shortcuts[event.key] : undefined;
      if (path !== undefined) return go(path);
      if (event.key === "/") {
        event.preventDefault();
        searchInput()?.select();
        searchInput()?.focus();
      }
      if (event.key === "j") moveFocus(1);
      if (event.key === "k") moveFocus(-1);
    };
    addEventListener("keydown", hear);
    return () => removeEventListener("keydown", hear);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.matches("input, select, textarea") || target.closest("dialog") !== null;
}

function moveFocus(step: number): void {
  const links = [...document.querySelectorAll<HTMLElement>("main tbody tr")].flatMap(
    (row) => row.querySelector<HTMLElement>("a") ?? [],
  );
  const { activeElement } = document;
  const at = activeElement instanceof HTMLElement ? links.indexOf(activeElement) : -1;
  const next = at === -1 ? (step > 0 ? 0 : links.length - 1) : at + step;
  links[next]?.focus();
}
