import type { Reads } from "../api/operations.ts";
import { readDays } from "../parts/read-days.ts";
import { go, Link, type Place, withQuery } from "../router.tsx";

/** Filters of the list, as the address has them. */
export type Filters = Omit<Reads["payments.list"]["argument"], "cursor" | "limit">;

const states = [
  "reserved",
  "queued",
  "submitted",
  "confirmed",
  "final",
  "failed",
  "expired",
  "released",
] as const;
const wires = ["x402v2", "x402v1", "mpp"] as const;
const texts = ["search", "route", "token", "network", "payer"] as const;

/** Filters that the address has. A value without a meaning is left to the API, which says so. */
export function readFilters(query: URLSearchParams): Filters {
  const given: Record<string, string> = {};
  for (const name of [...texts, "state", "wire"]) {
    const value = query.get(name)?.trim();
    if (value) given[name] = value;
  }
  return { ...given, ...readDays(query) };
}

/** Filters beside the search: a change is a new address. */
export function PaymentFilters({ place, filters }: { place: Place; filters: Filters }) {
  const change = (name: string) => (event: Event) => {
    const { currentTarget } = event;
    if (currentTarget instanceof HTMLInputElement || currentTarget instanceof HTMLSelectElement) {
      go(withQuery(place, { [name]: currentTarget.value, cursor: undefined }));
    }
  };
  const shown = (name: string) => place.query.get(name) ?? "";
  const count = Object.keys(filters).length;
  return (
    <details class="filter" open={count > 0}>
      <summary>{count > 0 ? `Filters: ${count}` : "Filters"}</summary>
      <form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
        <label for="filter-state">
          <span>State</span>
          <Choice
            id="filter-state"
            names={states}
            value={shown("state")}
            onChange={change("state")}
          />
        </label>
        <label for="filter-wire">
          <span>Wire</span>
          <Choice id="filter-wire" names={wires} value={shown("wire")} onChange={change("wire")} />
        </label>
        {texts.slice(1).map((name) => (
          <label key={name}>
            <span>{name === "payer" ? "Buyer" : `${name[0]?.toUpperCase()}${name.slice(1)}`}</span>
            <input
              value={shown(name)}
              maxLength={500}
              spellcheck={false}
              placeholder="Any"
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
          <Link to="/payments" class="clear">
            Clear
          </Link>
        )}
      </form>
    </details>
  );
}

interface ChoiceProps {
  id: string;
  names: readonly string[];
  value: string;
  onChange: (event: Event) => void;
}

function Choice({ id, names, value, onChange }: ChoiceProps) {
  return (
    <select id={id} value={value} onChange={onChange}>
      <option value="">Any</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}
