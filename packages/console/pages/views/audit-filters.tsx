import type { Reads } from "../api/operations.ts";
import { readDays } from "../parts/read-days.ts";
import { go, Link, type Place, withQuery } from "../router.tsx";

type AuditFilter = Omit<Reads["audit.list"]["argument"], "cursor" | "limit">;

const texts = {
  operation: { title: "Operation", maxLength: 100, example: "refunds.create" },
  account: { title: "Account", maxLength: 500, example: "Any" },
  subject: { title: "Payment or refund", maxLength: 100, example: "Id" },
} as const;
const names = ["operation", "account", "subject"] as const;

/** Filters that the address has. A value without a meaning is left to the API, which says so. */
export function readAuditFilters(query: URLSearchParams): AuditFilter {
  const given: AuditFilter = readDays(query);
  for (const name of names) {
    const value = query.get(name)?.trim();
    if (value) given[name] = value;
  }
  return given;
}

/** Filters of the audit log: a change is a new address. */
export function AuditFilters({ place, filters }: { place: Place; filters: AuditFilter }) {
  const change = (name: string) => (event: Event) => {
    const { currentTarget } = event;
    if (currentTarget instanceof HTMLInputElement) {
      go(withQuery(place, { [name]: currentTarget.value, cursor: undefined }));
    }
  };
  const shown = (name: string) => place.query.get(name) ?? "";
  const count = Object.keys(filters).length;
  return (
    <details class="filter" open={count > 0}>
      <summary>{count > 0 ? `Filters: ${count}` : "Filters"}</summary>
      <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        {names.map((name) => (
          <label key={name}>
            <span>{texts[name].title}</span>
            <input
              value={shown(name)}
              maxLength={texts[name].maxLength}
              spellcheck={false}
              placeholder={texts[name].example}
              onChange={change(name)}
            />
          </label>
        ))}
        <label>
          <span>From</span>
          <input type="date" value={shown("from")} onChange={change("from")} />
        </label>
        <label>
          <span>Before</span>
          <input type="date" value={shown("to")} onChange={change("to")} />
        </label>
        {count > 0 && (
          <Link to="/audit" class="clear">
            Clear
          </Link>
        )}
      </form>
    </details>
  );
}
