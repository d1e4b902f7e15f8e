import type { Io } from "../io.ts";
import type { Terminal } from "../terminal.ts";

/** Options of one run of `coinslot pay`. */
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
