import { spawn } from "node:child_process";
import type { FaultPointName } from "../settle/context.ts";
import type { SignedTestPayment } from "./payments.ts";
import type { SettlingDevnet } from "./settling-devnet.ts";

/** The program of `spawnSettling`, for `useProgram`. */
export const settlingProgram = new URL("./settle-in-child.ts", import.meta.url);

/**
 * Starts a process that settles payments on the ledger, and may die or freeze at a fault point.
 *
 * @param program path of the compiled `settlingProgram`
 */
export function spawnSettling(
  program: string,
  { devnet, ledger }: Pick<SettlingDevnet, "devnet" | "ledger">,
  payments: readonly SignedTestPayment[],
  options: {
    dieAt?: FaultPointName | undefined;
    freezeAt?: FaultPointName | undefined;
    /** Gives payments back by this float instead, and waits for its end. */
    refunds?: { privateKey: string; payments: readonly string[] } | undefined;
    /** Claims channels instead, by this key of their authorizer. */
    channels?: { privateKey: string } | undefined;
    /** Presents a deposit, as it travels, until it is killed. */
    deposit?: { payload: unknown; price: string } | undefined;
    /** Serves this payload of a buyer, too. */
    channelRefund?: object | undefined;
    /** Asks for this body of a caller's `/settle`. */
    hosted?: { body: unknown; receiver: string; privateKey: string } | undefined;
    /** RPC endpoint of the chain, if not the devnet itself. */
    rpcUrl?: string | undefined;
  } = {},
) {
  const task = {
    network: devnet.network,
    rpcUrl: devnet.rpcUrl,
    privateKey: devnet.accounts.relayer.privateKey,
    ledger: ledger.url,
    payments: payments.map(({ paymentPayload, paymentRequirements }) => ({
      paymentPayload,
      paymentRequirements,
    })),
    ...options,
  };
  return spawn(process.execPath, [program, JSON.stringify(task)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}
