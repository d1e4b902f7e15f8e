import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";

/** How the command was asked to pay. */
export interface PayContext {
  terminal: Terminal;
  io: Io;
  isJson: boolean;
  /** Pays without asking. */
  isSilent: boolean;
  allowInsecureHttp: boolean;
  /** The file that holds the payment already. */
  keptFile?: string | undefined;
}
