import { useState } from "preact/hooks";
import { act } from "../api/act.ts";
import type { StopTarget } from "../api/operations.ts";
import { useOperation } from "../api/use-operation.ts";
import { ActDialog } from "../parts/act-dialog.tsx";
import { networkName } from "../parts/format-parts.tsx";

const kinds = { network: "A network", route: "A route", float: "Refunds of a float" } as const;
const hints = { network: "eip155:9745", route: "GET /weather", float: "0x…" } as const;

/** Stops new payments on a network or of a route, or the refunds of a float. Open ones end. */
export function StopDialog({ onClose }: { onClose: () => void }) {
  const [kind, setKind] = useState<StopTarget["kind"]>("network");
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const chains = useOperation("chains.list", {});
  const routes = useOperation("routes.list", {});
  const known = {
    network: (chains.data?.chains ?? []).map(({ network }) => network),
    route: (routes.data?.routes ?? []).flatMap(({ route }) => route ?? []),
    float: [],
  }[kind];

  async function run(): Promise<string> {
    const target = { kind, name: name.trim() };
    const argument = { operation: "set", target, reason: reason.trim() } as const;
    const { isKnown } = await act("stops", argument, { subject: JSON.stringify(argument) });
    return isKnown
      ? "It is stopped. Open payments end, and the page of today has the button to resume."
      : "It is stopped, and the ledger has never met it: compare its name.";
  }

  return (
    <ActDialog
      title="Stop new payments"
      verb="Stop"
      isReady={name.trim() !== "" && reason.trim() !== ""}
      run={run}
      onClose={onClose}
    >
      <label>
        <span>What</span>
        <select
          value={kind}
          onChange={({ currentTarget }) => {
            setKind(parseKind(currentTarget.value));
            setName("");
          }}
        >
          {Object.entries(kinds).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>Name</span>
        <input
          name="name"
          dir="auto"
          list="stoppable"
          autocomplete="off"
          placeholder={hints[kind]}
          required
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
        <datalist id="stoppable">
          {known.map((each) => (
            <option key={each} value={each}>
              {kind === "network" ? networkName(each) : each}
            </option>
          ))}
        </datalist>
      </label>
      <label>
        <span>Reason, which buyers read</span>
        <input
          name="reason"
          dir="auto"
          maxLength={200}
          required
          value={reason}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </label>
      <p class="soft">New payments get 503 with this reason. Payments and refunds under way end.</p>
    </ActDialog>
  );
}

interface ResumeProps {
  target: StopTarget;
  onClose: () => void;
}

/** Clears a stop switch. */
export function ResumeDialog({ target, onClose }: ResumeProps) {
  async function run(): Promise<string> {
    const argument = { operation: "clear", target } as const;
    await act("stops", argument, { subject: JSON.stringify(argument) });
    return "It goes on.";
  }
  return (
    <ActDialog title="Resume" verb="Resume" run={run} onClose={onClose}>
      <p>
        Take new {target.kind === "float" ? "refunds" : "payments"} again:{" "}
        <strong>
          <bdi>{target.kind === "network" ? networkName(target.name) : target.name}</bdi>
        </strong>
        ?
      </p>
    </ActDialog>
  );
}

/** A switch by its item among those that need a person. */
export function targetOf(item: {
  code: string;
  network: string | null;
  subject: string | null;
}): StopTarget | undefined {
  const { code, network, subject } = item;
  if (subject === null) return undefined;
  if (code === "refunds_stopped") return { kind: "float", name: subject };
  if (code !== "payments_stopped") return undefined;
  return { kind: network === null ? "route" : "network", name: subject };
}

function parseKind(text: string): StopTarget["kind"] {
  return text === "route" || text === "float" ? text : "network";
}
