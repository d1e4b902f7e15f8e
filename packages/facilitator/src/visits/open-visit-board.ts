import { createVisitBoard, type Network, type VisitBoard } from "@coinslot/protocol";
import type { Registry } from "prom-client";
import { registerVisitMetrics } from "./visit-metrics.ts";

/** The board of a facilitator for its networks, with its metrics. */
export function openVisitBoard(
  { networks }: { networks: readonly { network: Network }[] },
  registry: Registry,
): VisitBoard {
  const board = createVisitBoard({ networks: new Set(networks.map(({ network }) => network)) });
  registerVisitMetrics(registry, board);
  return board;
}
