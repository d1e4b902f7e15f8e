import type { ComponentChildren } from "preact";
import { base } from "./api/ask.ts";
import { createStore, useStore } from "./api/store.ts";

/** A page's path below the mount, and its query: filters and cursors are in the address. */
export interface Place {
  path: string;
  query: URLSearchParams;
}

const place = createStore<Place>(readPlace());
addEventListener("popstate", () => place.set(readPlace()));

function readPlace(): Place {
  const path = location.pathname.startsWith(base)
    ? location.pathname.slice(base.length)
    : location.pathname;
  return { path: path === "" ? "/" : path, query: new URLSearchParams(location.search) };
}

export const usePlace = (): Place => useStore(place);

/** Goes to a page. A replacement adds nothing to the history. */
export function go(to: string, { isReplacement = false } = {}): void {
  if (isReplacement) history.replaceState(null, "", base + to);
  else history.pushState(null, "", base + to);
  place.set(readPlace());
  if (!isReplacement) scrollTo(0, 0);
}

/** The place with other members of its query. Empty ones leave it. */
export function withQuery(from: Place, changes: Readonly<Record<string, string | undefined>>) {
  const query = new URLSearchParams(from.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? from.path : `${from.path}?${text}`;
}

interface LinkProps {
  to: string;
  class?: string;
  isCurrent?: boolean;
  title?: string;
  children: ComponentChildren;
}

/** A link within the console. With a modifier key the browser does its own. */
export function Link({ to, isCurrent = false, children, ...rest }: LinkProps) {
  return (
    <a
      href={base + to}
      {...rest}
      {...(isCurrent ? { "aria-current": "page" as const } : {})}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}
