import { createCallBatcher, RpcError, type RpcRequester } from "@coinslot/chain";
import { type Address, FacilitatorError } from "@coinslot/protocol";
import * as z from "zod";

/** Senders with and without code, as read a moment ago. */
export interface SenderCodes {
  /** `undefined` where it is not known. */
  recall(sender: Address): boolean | undefined;
  /**
   * Asks the chain. Callers in the same turn of the event loop share one request.
   *
   * @throws FacilitatorError when the chain is unreachable.
   */
  read(sender: Address): Promise<boolean>;
  /** Keeps the result of another read. */
  remember(sender: Address, hasCode: boolean): void;
}

/**
 * Either answer may be out of date: an account delegates (EIP-7702), a wallet is deployed. An old
 * "code" costs one trial, which reads the code again. An old "no code" refuses a wallet that has
 * just been deployed, so it is kept for a shorter time.
 */
const keptMs = { code: 60_000, noCode: 10_000 };
const maxKept = 10_000;

const codeSchema = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]);

/** Creates a cache of senders' codes on one chain. */
export function createSenderCodes(options: {
  rpc: RpcRequester;
  /** Unix milliseconds. */
  now: () => number;
}): SenderCodes {
  const { now } = options;
  const rpc = createCallBatcher({ rpc: options.rpc });
  /** Insertion order is age order. */
  const known = new Map<Address, { hasCode: boolean; untilMs: number }>();
  const reads = new Map<Address, Promise<boolean>>();

  function remember(sender: Address, hasCode: boolean): void {
    known.delete(sender);
    const [oldest] = known.size >= maxKept ? known.keys() : [];
    if (oldest !== undefined) known.delete(oldest);
    known.set(sender, { hasCode, untilMs: now() + (hasCode ? keptMs.code : keptMs.noCode) });
  }

  async function ask(sender: Address): Promise<boolean> {
    try {
      const params = [sender, "latest"];
      const code = codeSchema.parse(await rpc.request({ method: "eth_getCode", params }));
      remember(sender, code !== "0x");
      return code !== "0x";
    } catch (cause) {
      if (!(cause instanceof RpcError || cause instanceof z.ZodError)) throw cause;
      const kind = cause instanceof RpcError ? "unavailable" : "bad_response";
      throw new FacilitatorError("The chain cannot be read at the moment", { kind, cause });
    } finally {
      reads.delete(sender);
    }
  }

  return {
    recall(sender) {
      const entry = known.get(sender);
      return entry !== undefined && now() < entry.untilMs ? entry.hasCode : undefined;
    },
    read(sender) {
      const underWay = reads.get(sender) ?? ask(sender);
      reads.set(sender, underWay);
      return underWay;
    },
    remember,
  };
}
