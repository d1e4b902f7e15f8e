import type { OperatorPlace } from "@coinslot/facilitator";
import { UsageError } from "./exit-code.ts";
import type { Io } from "./io.ts";
import { requireLedgerUrl } from "./ledger-url.ts";
import { readServiceKey } from "./read-secret.ts";
import type { Terminal } from "./terminal.ts";

/**
 * Place where an operator's command is carried out: `--ledger`, else the seller that
 * `COINSLOT_OPERATOR_URL` names, else the ledger of the environment.
 *
 * @throws UsageError where there is no such ledger, or no key of that seller
 */
export function readOperatorPlace(
  terminal: Terminal,
  io: Io,
  ledger: string | undefined,
): OperatorPlace {
  const { COINSLOT_OPERATOR_URL: url } = terminal.env;
  if (ledger === undefined && url) return { url: readUrl(url), key: readKey(terminal) };
  return requireLedgerUrl(terminal, io, ledger);
}

const loopback = ["localhost", "127.0.0.1", "[::1]"];

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPrivate = url?.protocol === "http:" && loopback.includes(url.hostname);
  if (url?.protocol === "https:" || isPrivate) return text;
  throw new UsageError(
    "COINSLOT_OPERATOR_URL must begin with https://, or with http:// for a port of this machine: the key goes there.",
  );
}

function readKey(terminal: Terminal): string {
  const url = "COINSLOT_OPERATOR_URL";
  const key = readServiceKey(terminal, "COINSLOT_OPERATOR_KEY", { url });
  if (key !== undefined) return key;
  throw new UsageError("Set COINSLOT_OPERATOR_KEY, too: COINSLOT_OPERATOR_URL needs its key.");
}
