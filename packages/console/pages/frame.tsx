import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { liveness } from "./api/events.ts";
import { type SessionState, signOut } from "./api/session.ts";
import { useStore } from "./api/store.ts";
import { Time } from "./parts/format-parts.tsx";
import { useHasChannels } from "./parts/use-has-channels.ts";
import { useShortcuts } from "./parts/use-shortcuts.ts";
import { go, Link, usePlace } from "./router.tsx";
import { sections } from "./views.tsx";

interface FrameProps {
  state: SessionState;
  section: string;
  children: ComponentChildren;
}

/** Frame of every page: navigation, search, session. */
export function Frame({ state, section, children }: FrameProps) {
  useShortcuts();
  const nav = useRef<HTMLElement>(null);
  const hasChannels = useHasChannels(section);
  // On a phone the navigation is a strip, wider than the screen.
  useEffect(() => {
    nav.current
      ?.querySelector("[aria-current]")
      ?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [section]);
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="side">
        <p class="brand">
          <Link to="/">Coinslot</Link>
        </p>
        <nav ref={nav} aria-label="Pages">
          <ul>
            {sections
              .filter(({ path, isOfChannels }) => !isOfChannels || hasChannels || path === section)
              .map(({ title, path }) => (
                <li key={path}>
                  <Link to={path} isCurrent={path === section}>
                    {title}
                  </Link>
                </li>
              ))}
          </ul>
        </nav>
        <Account state={state} />
      </header>
      <div class="body">
        <div class="top">
          <Search />
          <Live />
        </div>
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}

/** The search takes anything: an address, hash, route, id or nonce. */
function Search() {
  const { path, query } = usePlace();
  const input = useRef<HTMLInputElement>(null);
  const shown = path === "/payments" ? (query.get("search") ?? "") : "";
  useEffect(() => {
    if (input.current !== null) input.current.value = shown;
  }, [shown]);
  return (
    <search class="search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const text = input.current?.value.trim() ?? "";
          go(text === "" ? "/payments" : `/payments?${new URLSearchParams({ search: text })}`);
        }}
      >
        <label for="search" class="aside">
          Search payments
        </label>
        <input
          id="search"
          dir="auto"
          ref={input}
          type="search"
          maxLength={500}
          autocomplete="off"
          spellcheck={false}
          placeholder="Address, hash, route, id or nonce"
        />
        <kbd title="Press / to search">/</kbd>
      </form>
    </search>
  );
}

/** Whether the page hears of changes. */
function Live() {
  const state = useStore(liveness);
  if (state.kind === "lost") {
    return (
      <p class="live lost" role="status">
        Not live since <Time at={state.since} />
      </p>
    );
  }
  return (
    <p class="live" role="status">
      {state.kind === "live" ? "Live" : "Connecting"}
    </p>
  );
}

function Account({ state }: { state: SessionState }) {
  return (
    <div class="account">
      <p>
        {state.role === "operator" ? "Operator" : "Reader"}
        {state.role === "reader" && <span class="soft"> · reads only</span>}
      </p>
      {state.session !== undefined && (
        <button type="button" class="plain" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </div>
  );
}
