import { createRpcPool } from "@coinslot/chain";
import type { RelayerStanding } from "@coinslot/facilitator";
import { type ConfiguredNetwork, findNetworks } from "@coinslot/hosting/environment";
import { formatMoney } from "@coinslot/protocol";
import { Command } from "commander";
import * as z from "zod";
import type { Io } from "../io.ts";
import { ledgerOption } from "../ledger-url.ts";
import { readLedger } from "../payments/read-ledger.ts";
import { formatJson, formatTable, paint, type Terminal } from "../terminal.ts";

interface RelayersOptions {
  ledger?: string;
  json?: true;
}

/** A relayer with its gas money, where its chain has answered. */
interface FundedRelayer extends RelayerStanding {
  /** In wei. */
  balance?: bigint;
  symbol?: string;
}

const nativeDecimals = 18;
const balanceSchema = z
  .string()
  .regex(/^0x[0-9a-f]{1,64}$/i)
  .transform(BigInt);

/**
 * `coinslot relayers`: every relayer of the ledger, what is in flight from it, and what it holds.
 */
export function relayersCommand(terminal: Terminal, io: Io): Command {
  return new Command("relayers")
    .addOption(ledgerOption())
    .option("--json", "print JSON, balances in wei")
    .addHelpText(
      "after",
      `
active    a running process sends payments with it
retiring  a running process has its key, and none sends new payments with it
keyless   no running process has its key; what it has sent is followed
retired   no running process has its key, and nothing is in flight

A process counts as running for 30 s after its last heartbeat. Balances come from COINSLOT_NETWORK
with COINSLOT_RPC_URL, and COINSLOT_RPC_URL_<chain id> for more networks.

Examples:
  coinslot relayers
  coinslot relayers --json`,
    )
    .action(async ({ ledger, json }: RelayersOptions): Promise<void> => {
      const known = await readLedger({ terminal, io, ledger }, (_, reader) => reader.relayers());
      if (known.length === 0) return terminal.err("No relayer has used this ledger yet.");
      const networks = findNetworks(terminal.env, (problem) => terminal.err(problem));
      const stopWaiting = io.showWaiting("asking the chains");
      const relayers = await Promise.all(known.map((each) => readBalance(each, networks))).finally(
        stopWaiting,
      );
      if (json) return terminal.out(formatJson({ relayers }));
      terminal.out(
        formatTable(terminal, [
          ["relayer", "network", "state", "in flight", "holds"],
          ...relayers.map((each) => toRow(terminal, each)),
        ]),
      );
      for (const each of relayers) advise(terminal, each);
    });
}

async function readBalance(
  relayer: RelayerStanding,
  networks: readonly ConfiguredNetwork[],
): Promise<FundedRelayer> {
  const configured = networks.find(({ network }) => network === relayer.network);
  if (configured === undefined) return relayer;
  const { chainId, rpcUrls, symbol } = configured;
  const pool = createRpcPool({ chainId, rpcUrls });
  try {
    const call = { method: "eth_getBalance", params: [relayer.relayer, "latest"] };
    return { ...relayer, symbol, balance: balanceSchema.parse(await pool.request(call)) };
  } catch {
    return relayer;
  } finally {
    pool.close();
  }
}

function toRow(terminal: Terminal, { relayer, network, state, inFlight, ...each }: FundedRelayer) {
  return [
    relayer,
    network,
    state === "keyless" ? paint(terminal, "yellow", state) : state,
    String(inFlight),
    each.balance === undefined
      ? paint(terminal, "dim", "not known")
      : `${formatMoney(each.balance, nativeDecimals)} ${each.symbol}`,
  ];
}

function advise(terminal: Terminal, { relayer, state, balance = 0n }: FundedRelayer): void {
  if (state === "keyless") {
    terminal.err(
      `${relayer}: leave its gas money until nothing is in flight. With its key in retiringRelayers, what is stuck could be replaced.`,
    );
  }
  if (state === "retired" && balance > 0n) {
    terminal.err(
      `${relayer}: its coins are not used any more. Move them with its key, by a wallet.`,
    );
  }
}
