import type { TransferService } from "@coinslot/indexer";
import type { RequestHandler } from "express";

/** The API that is sold. */
export interface Upstream {
  /** Answers paid requests. An answer of 400 or more is not charged. */
  handle: RequestHandler;
  /** The free operations, and the maximum age of a shared answer about health. */
  free: Pick<TransferService, "getHealth" | "listChains">;
  healthFreshMs: number;
  /** @throws ConfigurationError that names the obstacle and the remedy */
  start(): Promise<void>;
  isReady(): Promise<boolean>;
  /** Its metrics, in the text form of Prometheus. */
  readMetrics(): Promise<string>;
  close(): Promise<void>;
}
