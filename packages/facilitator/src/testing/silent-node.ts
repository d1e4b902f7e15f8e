import { setTimeout as pause } from "node:timers/promises";
import { type Clock, systemClock } from "@coinslot/chain";
import { byDay } from "@coinslot/devnet/effort";
import type { NodeAnswer, NodeCall } from "./node-proxy.ts";

/** Silence of a node about the state of contracts at a block. */
export type Fault = "limits" | "refuses" | "hangs";

/** Faults of a node, each with its words. The kind of fault is no subject by day. */
export const faults = byDay<[string, Fault]>(
  [["answers by an error", "refuses"]],
  [
    ["answers by an error", "refuses"],
    ["limits requests", "limits"],
    ["hangs", "hangs"],
  ],
);

/** A clock by which an endpoint has a second for its readings. */
export const hastyClock: Clock = {
  ...systemClock,
  setTimer: (run, ms) => systemClock.setTimer(run, ms === 15_000 ? 1_000 : ms),
};

/** The answer of a node with a fault. */
export async function fail(
  fault: Fault | undefined,
  { method, params }: NodeCall,
  ask: () => Promise<NodeAnswer>,
): Promise<NodeAnswer | undefined> {
  const isState = method === "eth_call" && typeof params[1] === "object";
  switch (isState ? fault : undefined) {
    case undefined:
      return ask();
    case "refuses":
      return { error: { code: -32_000, message: "header not found" } };
    case "limits":
      return { error: { code: 429, message: "Too Many Requests" } };
    case "hangs":
      await pause(3_000);
      return undefined;
  }
}
