import { type ChainsList, listChainsOperation } from "@coinslot/facilitator";
import type { Command } from "commander";
import type { Io } from "../io.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";
import { type ReadOptions, readCommand, runRead, safeText } from "./run-read.ts";

type Chain = ChainsList["chains"][number];

/** `coinslot chains`: heads, endpoints and reorganisations, as the running seller has them. */
export function chainsCommand(terminal: Terminal, io: Io): Command {
  return readCommand("chains")
    .addHelpText(
      "after",
      `
Heads and endpoints are known to a running seller: its socket is asked, or its HTTP port, by
COINSLOT_OPERATOR_URL. Of an endpoint's URL the last two labels of its host are shown.

Examples:
  coinslot chains
  coinslot chains --json`,
    )
    .action(async ({ ledger, json }: ReadOptions): Promise<void> => {
      const { source, chains } = await runRead({ terminal, io, ledger }, listChainsOperation, {});
      if (json) return terminal.out(formatJson({ source, chains }));
      if (chains.length === 0) return terminal.err("No seller has used this ledger yet.");
      terminal.out(
        formatTable(terminal, [
          ["network", "head", "lag", "not final", "reverted, 1 h", "endpoint", "state", "errors"],
          ...chains.flatMap((chain) => rowsOf(terminal, chain)),
        ]),
      );
      if (source === "ledger") {
        terminal.err("No running seller was asked: heads and endpoints are not known.");
      }
    });
}

function rowsOf(terminal: Terminal, chain: Chain): string[][] {
  const { network, head, lagSeconds, notFinal, reverted, endpoints } = chain;
  const first = [
    network,
    head === null ? "-" : String(head.number),
    lagSeconds === null ? "-" : `${lagSeconds} s`,
    String(notFinal),
    String(reverted),
  ];
  if (endpoints.length === 0) return [[...first, "-", "-", "-"]];
  return endpoints.map(({ endpoint, host, state, failures, requests }, index) => [
    ...(index === 0 ? first : first.map(() => "")),
    `${endpoint}: ${safeText(host)}`,
    state === "ready" ? paint(terminal, "green", state) : paint(terminal, "yellow", state),
    `${failures} of ${requests}`,
  ]);
}
