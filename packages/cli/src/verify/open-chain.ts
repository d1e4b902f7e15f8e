import { createChainClient, type RpcPool, sleep, systemClock } from "@coinslot/chain";
import { type Address, eip3009Abi, type Hex } from "@coinslot/protocol";
import { isHash, parseEventLogs, TransactionReceiptNotFoundError } from "viem";
import type { SignedPayment } from "./open-payer.ts";
import { NotCheckedError } from "./seller-error.ts";

/** Interval at which a node is asked again. */
const pollMs = 200;

/** A chain's records of payments. */
export interface ChainRecord {
  balanceOf(token: Address, account: Address): Promise<bigint>;
  /** Resolves to whether an account holds an amount, once it does, or the deadline has come. */
  untilHeld(token: Address, account: Address, amount: bigint): Promise<boolean>;
  /** Resolves to whether the authorization has been executed, or cancelled. */
  isUsed(payment: SignedPayment): Promise<boolean>;
  /** The same, once it is so, or the deadline has come. */
  untilUsed(payment: SignedPayment): Promise<boolean>;
  /**
   * Resolves to whether a transaction executed exactly this payment; `undefined` where the chain
   * knows no such transaction until the deadline.
   */
  hasPaid(payment: SignedPayment, transaction: string): Promise<boolean | undefined>;
}

/** Reads a chain through its nodes. */
export function openChain(
  pool: RpcPool,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): ChainRecord {
  const client = createChainClient(pool);

  function isUsed({ authorization, requirements }: SignedPayment): Promise<boolean> {
    const { from, nonce } = authorization;
    const contract = { address: requirements.asset, abi: eip3009Abi } as const;
    return read(() =>
      client.readContract({ ...contract, functionName: "authorizationState", args: [from, nonce] }),
    );
  }

  function balanceOf(address: Address, account: Address): Promise<bigint> {
    const contract = { address, abi: eip3009Abi } as const;
    return read(() =>
      client.readContract({ ...contract, functionName: "balanceOf", args: [account] }),
    );
  }

  /** A chain that cannot be read says nothing of the seller. */
  async function read<Result>(ask: () => Promise<Result>): Promise<Result> {
    try {
      return await ask();
    } catch (cause) {
      signal.throwIfAborted();
      throw new NotCheckedError("the chain could not be read", { cause });
    }
  }

  /** Asks until there is an answer, or the deadline has come. */
  async function poll<Result>(ask: () => Promise<Result | undefined>): Promise<Result | undefined> {
    const end = systemClock.now() + timeoutMs;
    for (;;) {
      const result = await ask();
      if (result !== undefined || systemClock.now() >= end) return result;
      await sleep(systemClock, pollMs, signal);
    }
  }

  return {
    balanceOf,
    async untilHeld(token, account, amount) {
      const isHeld = async () => (await balanceOf(token, account)) >= amount || undefined;
      return (await poll(isHeld)) === true;
    },
    isUsed,
    async untilUsed(payment) {
      return (await poll(async () => (await isUsed(payment)) || undefined)) === true;
    },
    async hasPaid(payment, transaction) {
      if (!isHash(transaction)) return false;
      const receipt = await poll(() => read(() => findReceipt(transaction)));
      if (receipt === undefined) return undefined;
      return receipt.status === "success" && isInLogs(receipt.logs, payment);
    },
  };

  async function findReceipt(hash: Hex) {
    try {
      return await client.getTransactionReceipt({ hash });
    } catch (error) {
      if (error instanceof TransactionReceiptNotFoundError) return undefined;
      throw error;
    }
  }
}

type Logs = Parameters<typeof parseEventLogs>[0]["logs"];

/** Returns whether logs hold the authorization's use, and its transfer, in its token. */
function isInLogs(logs: Logs, { authorization, requirements }: SignedPayment): boolean {
  const { from, to, value, nonce } = authorization;
  const ofToken = logs.filter(({ address }) => isSame(address, requirements.asset));
  const events = parseEventLogs({ abi: eip3009Abi, logs: ofToken });
  const isUse = events.some(
    (event) =>
      event.eventName === "AuthorizationUsed" &&
      isSame(event.args.authorizer, from) &&
      isSame(event.args.nonce, nonce),
  );
  const isTransfer = events.some(
    (event) =>
      event.eventName === "Transfer" &&
      isSame(event.args.from, from) &&
      isSame(event.args.to, to) &&
      event.args.value === value,
  );
  return isUse && isTransfer;
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
