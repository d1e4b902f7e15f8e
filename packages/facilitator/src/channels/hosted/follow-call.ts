import { CallerGoneError, type Hex } from "@coinslot/protocol";
import {
  type ReceiptLog,
  readReceipt,
  receiptCall,
  type TransactionReceipt,
} from "../../evm/transaction-receipt.ts";
import {
  type CallerCall,
  type CallerCallKey,
  endCall,
  readCall,
} from "../../ledger/channels/caller-calls.ts";
import type { BlockId } from "../watch/read-channels.ts";
import type { HostedContext, HostedNetwork, Permit } from "./hosted-context.ts";
import { readRecentHead, readServed } from "./read-channel.ts";

/**
 * Reads the outcome of a call in a block that is deep enough. A receipt's status proves nothing:
 * the escrow's events or its state do. `undefined`: the call has not happened.
 */
export type ReadOutcome = (
  receipt: TransactionReceipt,
  served: BlockId,
  call: CallerCall,
) => Promise<{ amount?: bigint | undefined } | undefined>;

/** Evidence of a call's outcome. */
export interface Evidence {
  /** Most that the call moves: the depth depends on it, and the time to wait. */
  value: bigint;
  /** Moved by its receipt's events: they decide the depth, whatever another request asks for. */
  amountOf?: (receipt: TransactionReceipt) => bigint | undefined;
  readOutcome: ReadOutcome;
}

/** Evidence by the event of a call that moves money: its data is the amount. */
export function byEvent(value: bigint, isIts: (log: ReceiptLog) => boolean): Evidence {
  const amountOf = ({ logs }: TransactionReceipt) => {
    const event = logs.find(isIts);
    return event && BigInt(event.data);
  };
  return {
    value,
    amountOf,
    async readOutcome(receipt) {
      const amount = amountOf(receipt);
      return amount === undefined ? undefined : { amount };
    },
  };
}

/**
 * Waits until a call has ended, for as long as a settlement of a payment. Any process may have sent
 * it.
 *
 * @returns the call, still `sent` where the time is over
 * @throws CallerGoneError, RpcError, ZodError, DatabaseError
 */
export async function followCall(
  hosted: Pick<HostedContext, "pause" | "looks">,
  { network, isGone, begunAt }: Permit,
  key: CallerCallKey,
  evidence: Evidence,
): Promise<CallerCall | undefined> {
  const { context, settlement } = network.escrow;
  const { times, serveAfter } = settlement.network;
  const until = begunAt + times.settleTimeoutMs(serveAfter(evidence));
  for (;;) {
    const call = await shareLook(hosted, network, { key, evidence });
    if (call?.state !== "sent" || context.clock.now() >= until) return call;
    if (isGone()) throw new CallerGoneError();
    await hosted.pause(network.deposits.pollMs());
  }
}

/**
 * A caller may ask for one call as often as it likes: its requests share the questions to a node. A
 * call that has ended asks none. Its look is not shared: the same request may have sent it again
 * meanwhile.
 */
function shareLook(
  { looks, pause }: Pick<HostedContext, "pause" | "looks">,
  network: HostedNetwork,
  { key, evidence }: { key: CallerCallKey; evidence: Evidence },
): Promise<CallerCall | undefined> {
  const name = `${key.network}/${key.id}`;
  const shared = looks.get(name);
  if (shared !== undefined) return shared;
  const look = lookAtCall(network, key, evidence);
  looks.set(name, look);
  const forget = async (call?: CallerCall) => {
    if (call?.state === "sent") await pause(network.deposits.pollMs() / 2);
    looks.delete(name);
  };
  void look.then(forget, () => forget());
  return look;
}

/**
 * Looks once at a call, and ends it where its outcome stands deep enough. No process has to: a call
 * that is asked for no more stays `sent`, and harms none but its own subject's next one.
 */
export async function lookAtCall(
  network: HostedNetwork,
  key: CallerCallKey,
  { value, amountOf, readOutcome }: Evidence,
): Promise<CallerCall | undefined> {
  const { context, settlement, metrics, place } = network.escrow;
  const { ledger } = context;
  const call = await readCall(ledger, key);
  if (call?.state !== "sent") return call;
  const { transaction } = call;
  // One with a filler in its place is open as well: a block may have either.
  if (transaction?.state === "open") return call;
  const end = async (
    state: "done" | "failed",
    outcome: { hash: Hex | undefined; amount?: bigint | undefined },
  ) => {
    if (await endCall(ledger, call, { state, ...outcome })) {
      metrics.callerCalls.inc({ network: place.network, kind: call.kind, outcome: state });
    }
    return readCall(ledger, key);
  };
  const hash = transaction?.state === "lost" ? undefined : transaction?.hash;
  if (hash === undefined) return end("failed", { hash });
  // The head first: a receipt whose block leaves meanwhile gains no depth by later blocks.
  const head = await readRecentHead(network);
  const [answer] = await settlement.network.rpc.requestMany([receiptCall(hash)]);
  const { receipt, fault } = readReceipt(hash, answer);
  if (fault !== undefined) throw fault;
  if (receipt === undefined) return call;
  const served = await readServed(network, amountOf?.(receipt) ?? value, head);
  if (served === undefined || receipt.blockNumber > served.number) return call;
  const outcome = await readOutcome(receipt, served, call);
  return outcome === undefined
    ? end("failed", { hash })
    : end("done", { hash, amount: outcome.amount });
}
