import type { TransferService } from "@coinslot/indexer";
import type { RequestHandler } from "express";

/** The API that is sold. */
export interface Upstream {
  /** Answers requests that are paid for. What it answers with 400 or more is not charged. */
  handle: RequestHandler;
  /** What is free, and for how long an answer about health is good enough for everybody who asks. */
  free: Pick<TransferService, "getHealth" | "listChains">;
  healthFreshMs: number;
  /** @throws ConfigurationError that says what stands in the way, and what to do */
  start(): Promise<void>;
  isReady(): Promise<boolean>;
  /** Its figures, in the text form of Prometheus. */
  readMetrics(): Promise<string>;
  close(): Promise<void>;
}
