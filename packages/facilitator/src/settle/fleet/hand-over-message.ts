import type { Network } from "@coinslot/protocol";
import type { SharedSimulation } from "../../simulation/simulation-cache.ts";

/** A queued payment that another process is to settle. */
export interface HandedOver {
  id: string;
  /** Its simulation, where it is fresh: the other process need not ask a node again. */
  simulation?: SharedSimulation | undefined;
}

/** Payments that another process has handed over. */
export interface ReceivedPayments {
  ids: readonly string[];
  simulations: readonly SharedSimulation[];
}

/** Payments in one message. PostgreSQL takes 8,000 bytes: an id has 44, a simulation up to 38. */
export const maxHandedOver = 90;

const simulationForm = /^([\w-]{22})\.(\d{1,9})\.(\d{1,5})$/;

/**
 * Writes a message: the network, the ids, and their simulations, which a process of an older
 * release does not read. They settle nothing that the ledger has not queued. A wrong one costs the
 * gas of a call that reverts.
 */
export function encodeHandOver(
  network: Network,
  payments: readonly HandedOver[],
  now: number,
): string {
  const ids = payments.map(({ id }) => id).join();
  const simulations = payments.flatMap(({ simulation }) => {
    if (simulation === undefined) return [];
    const { digest, gasUsed, at } = simulation;
    return `${digest}.${gasUsed}.${Math.ceil(now - at)}`;
  });
  return [network, ids, ...(simulations.length > 0 ? [simulations.join()] : [])].join(" ");
}

/** Reads a message, and dates its simulations by the clock of this process. */
export function parseHandOver(
  payload: string,
  now: number,
): ReceivedPayments & { network: string } {
  const [network = "", ids = "", simulations = ""] = payload.split(" ");
  return {
    network,
    ids: ids === "" ? [] : ids.split(","),
    simulations: simulations.split(",").flatMap((text) => {
      const [, digest, gasUsed, ageMs] = simulationForm.exec(text) ?? [];
      if (digest === undefined || gasUsed === undefined) return [];
      return { digest, gasUsed: BigInt(gasUsed), at: now - Number(ageMs) };
    }),
  };
}
