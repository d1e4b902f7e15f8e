import { sleep } from "@coinslot/chain";
import type { Hash } from "viem";
import { BridgeError } from "../bridge-error.ts";
import type { BridgeContext } from "../bridge-options.ts";
import { checkContractAddress } from "../bridge-request.ts";
import { isClosed } from "../chains/ask-chain.ts";
import { findSourceChain } from "../chains/source-chain.ts";
import { createResender } from "../send/resend-transaction.ts";
import {
  type Delivered,
  describeWhereabouts,
  isNews,
  type TrackedProgress,
} from "../send/transfer-progress.ts";
import { createTransferReader } from "./read-transfer.ts";
import { checkWait, type TrackOptions } from "./track-options.ts";

/**
 * Waits until a transfer has arrived. Its state is read from the chains again and again. So a wait
 * can start in another process and at any time. It follows reorganisations of both chains, and
 * outlives endpoints that fail for a while.
 */
export async function trackTransfer(
  context: BridgeContext,
  options: TrackOptions,
): Promise<Delivered> {
  checkWait("track", options);
  const { hash, transaction, confirmations, signal, onProgress } = options;
  const { timeoutMs = 1_800_000, pollIntervalMs = 2_000 } = options;
  const { clock, replacedSince } = context;
  const deadline = clock.now() + timeoutMs;
  if (!/^0x[0-9a-fA-F]{64}$/.test(hash)) {
    throw new BridgeError("not_a_transfer", "The hash is not 0x and 64 hex digits");
  }
  const contract = checkContractAddress(options.oftContractAddress);
  const source = await findSourceChain(context);
  const resender = transaction && (await createResender(context, { source, hash, transaction }));
  const isWanted = () => signal?.aborted !== true && clock.now() < deadline;
  const wanted = { source, hash, contract, confirmations, isWanted };
  const read = createTransferReader(context, wanted);
  const poll = async () => {
    const progress = await read();
    if (progress.state !== "pending") replacedSince.delete(hash);
    else if (resender) await resender.resend();
    return progress;
  };
  let known: TrackedProgress | undefined;
  let outage: BridgeError | undefined;

  while (true) {
    signal?.throwIfAborted();
    const progress = await poll().catch((error: unknown) => {
      if (!(error instanceof BridgeError) || error.code !== "rpc_unavailable") throw error;
      return error;
    });
    if (progress instanceof BridgeError) outage = progress;
    else {
      outage = undefined;
      if (isNews(progress, known)) await onProgress?.(progress);
      known = progress;
      if (progress.state === "delivered") return progress;
    }
    if (clock.now() >= deadline || isClosed(outage)) {
      const refusal = resender?.refusal();
      throw tooLate(hash, { known, outage, refusal });
    }
    await sleep(clock, pollIntervalMs, signal);
  }
}

function tooLate(
  hash: Hash,
  last: {
    known: TrackedProgress | undefined;
    outage: BridgeError | undefined;
    refusal: string | undefined;
  },
): BridgeError {
  const { known, outage, refusal } = last;
  const isPending = known === undefined || known.state === "pending";
  const refused = isPending && refusal && `No RPC endpoint accepts it: ${refusal}`;
  const before = [known && describeWhereabouts(known), refused].filter(Boolean).join(". ");
  const texts = [before, outage?.message].filter(Boolean);
  return new BridgeError("delivery_timeout", texts.join(". Now: "), {
    hash,
    progress: known,
    cause: outage,
  });
}
