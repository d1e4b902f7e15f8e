import type { Address, Hex } from "@coinslot/protocol";
import { secp256k1 } from "@noble/curves/secp256k1";
import { parseTransaction } from "viem";
import { createSignerRecovery } from "../../evm/recover-signer.ts";
import { type KeySignature, splitSignature } from "../../evm/split-signature.ts";
import { encodeTransaction, type UnsignedTransaction } from "./encode-transaction.ts";
import {
  type RelayerSigner,
  type RelayerTransaction,
  SignerError,
  type SignerFault,
} from "./relayer-signer.ts";

/** A key that signs hashes, such as one in a cloud KMS. */
export interface HashSigner {
  /** Of the key. A signature of another one is refused. */
  address: Address;
  /**
   * Signs the hash of a transaction. Returns r, s and v as 65 bytes in hex, as viem's accounts do.
   * Or r and s in DER, as a KMS does. `signal` ends the wait.
   */
  sign(options: { hash: Hex; signal: AbortSignal }): Promise<Hex | Uint8Array>;
}

/** An account that signs transactions: a viem account of any kind. */
export interface TransactionSigner {
  address: Address;
  signTransaction(transaction: RelayerTransaction): Promise<Hex>;
}

export interface RemoteSignerOptions {
  /** Longest wait for a signature. Default 5,000. */
  timeoutMs?: number;
  /** Milliseconds, on a clock that does not go back. */
  now?: () => number;
}

const firstRestMs = 1_000;
const maxRestMs = 30_000;

/**
 * Signs with a key elsewhere, which may be slow, away, or wrong.
 *
 * ```text
 *              signed: the key of the address, for this transaction
 *        ┌───────────────────────────────────────────────────────────┐
 *        ▼                                                           │
 *   well ──► asked ──► no answer, an error, or a wrong signature ──► resting ──► asked
 *                                                                     1 s, doubled up to 30 s
 * ```
 *
 * Each signature is checked before anything is stored or sent: the signer is recovered from it, and
 * the transaction is encoded here. So a signer can refuse a transaction, and cannot change one. A
 * signature that comes late is dropped. While it rests, no transaction is planned for it; a
 * replacement that is due fails at once, and the form that was sent is sent again.
 */
export function createRemoteSigner(
  signer: HashSigner | TransactionSigner,
  { timeoutMs = 5_000, now = () => performance.now() }: RemoteSignerOptions = {},
): RelayerSigner {
  const { address } = signer;
  let error: SignerError | undefined;
  let failures = 0;
  let restsUntil = Number.NEGATIVE_INFINITY;

  function fault(): SignerFault | undefined {
    if (error === undefined) return undefined;
    const restsForMs = restsUntil - now();
    return restsForMs > 0 ? { error, restsForMs } : undefined;
  }

  return {
    address,
    fault,
    async signTransaction(transaction) {
      const resting = fault();
      if (resting !== undefined) throw resting.error;
      try {
        const signed = await askWithin(timeoutMs, (signal) =>
          signsTransactions(signer)
            ? checkTransaction(signer, transaction)
            : checkHash(signer, transaction, signal),
        );
        error = undefined;
        failures = 0;
        return signed;
      } catch (cause) {
        error = toSignerError(address, cause);
        restsUntil = now() + Math.min(maxRestMs, firstRestMs * 2 ** failures);
        failures += 1;
        throw error;
      }
    },
  };
}

/** Signs a hash by a key of the float. */
export type SignHash = (hash: Hex) => Promise<Hex>;

/**
 * Signs hashes with a key elsewhere. Each signature is checked: it has 65 bytes and a low s, and
 * its signer is recovered.
 *
 * @throws SignerError without such a signature in time
 */
export function createHashSigner(
  signer: HashSigner,
  { timeoutMs = 5_000 }: Pick<RemoteSignerOptions, "timeoutMs"> = {},
): SignHash {
  const { address } = signer;
  return async function signHash(hash) {
    try {
      return await askWithin<Hex>(timeoutMs, async (signal) => {
        const signature = toSignature(await signer.sign({ hash, signal }), { address, hash });
        if (signature !== undefined && isSignedBy(address, hash, signature)) {
          const { r, s, v } = signature;
          return `0x${r.slice(2)}${s.slice(2)}${v.toString(16)}`;
        }
        throw new SignerError("wrong", "it signed with another key, or something else");
      });
    } catch (cause) {
      throw toSignerError(address, cause);
    }
  };
}

function toSignature(
  answer: unknown,
  signed: { address: Address; hash: Hex },
): KeySignature | undefined {
  return answer instanceof Uint8Array ? readDer(answer, signed) : readSignature(answer);
}

function signsTransactions(signer: HashSigner | TransactionSigner): signer is TransactionSigner {
  return "signTransaction" in signer && typeof signer.signTransaction === "function";
}

async function askWithin<Result>(
  timeoutMs: number,
  ask: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const slow = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new SignerError("timeout", `no signature within ${timeoutMs} ms`);
      // First: a signer that ends at the signal must not make it a failure of another kind.
      reject(error);
      slow.abort(error);
    }, timeoutMs);
  });
  try {
    return await Promise.race([ask(slow.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function checkHash(
  signer: HashSigner,
  transaction: RelayerTransaction,
  signal: AbortSignal,
): Promise<Hex> {
  const unsigned = encodeTransaction(transaction);
  const answer = await signer.sign({ hash: unsigned.hash, signal });
  const signature = toSignature(answer, { address: signer.address, hash: unsigned.hash });
  return checked(unsigned, signature, signer.address);
}

async function checkTransaction(
  signer: TransactionSigner,
  transaction: RelayerTransaction,
): Promise<Hex> {
  const raw = await signer.signTransaction(transaction);
  const unsigned = encodeTransaction(transaction);
  const signed = checked(unsigned, readTransaction(raw), signer.address);
  if (signed === raw.toLowerCase()) return signed;
  throw new SignerError("wrong", "it signed another transaction than was asked");
}

const { recoverSigner } = createSignerRecovery();

/** The signed transaction, if the signature is the address's for it. */
function checked(
  { hash, signedWith }: UnsignedTransaction,
  signature: KeySignature | undefined,
  address: Address,
): Hex {
  if (signature === undefined) {
    throw new SignerError(
      "wrong",
      "its answer is no signature: 65 bytes in hex with a low s, or DER",
    );
  }
  if (!isSignedBy(address, hash, signature)) {
    throw new SignerError("wrong", "it signed with another key, or something else than was asked");
  }
  const { r, s, v } = signature;
  return signedWith(Buffer.from(`${r.slice(2)}${s.slice(2)}${v.toString(16)}`, "hex"));
}

function isSignedBy(address: Address, hash: Hex, signature: KeySignature): boolean {
  const signer = recoverSigner(Buffer.from(hash.slice(2), "hex"), signature);
  return signer === address.toLowerCase();
}

function readSignature(answer: unknown): KeySignature | undefined {
  if (typeof answer !== "string" || !/^0x[0-9a-fA-F]{130}$/.test(answer)) return undefined;
  return splitSignature(`0x${answer.slice(2)}`);
}

/**
 * A KMS returns r and s alone, and either of the two signatures that r has. The chain takes the low
 * s, and the parity is the one that recovers the address.
 */
function readDer(
  der: Uint8Array,
  { address, hash }: { address: Address; hash: Hex },
): KeySignature | undefined {
  let compact: string;
  try {
    compact = secp256k1.Signature.fromDER(der).normalizeS().toCompactHex();
  } catch {
    return undefined;
  }
  const either = ["1b", "1c"].map((v) => splitSignature(`0x${compact}${v}`));
  return either.find((each) => each !== undefined && isSignedBy(address, hash, each)) ?? either[0];
}

function readTransaction(raw: Hex): KeySignature | undefined {
  try {
    const { r, s, v = 0n, yParity = Number((v - 35n) % 2n) } = parseTransaction(raw);
    if (r === undefined || s === undefined) return undefined;
    const [first, second] = [r, s].map((hex) => hex.slice(2).padStart(64, "0"));
    return splitSignature(`0x${first}${second}${yParity === 0 ? "1b" : "1c"}`);
  } catch {
    return undefined;
  }
}

/** A signer's own words may hold its address, or a token: they are the cause, for the log alone. */
function toSignerError(address: Address, cause: unknown): SignerError {
  const of = `The signer of ${address}`;
  if (cause instanceof SignerError) {
    return new SignerError(cause.kind, `${of}: ${cause.message}`, { cause });
  }
  return new SignerError("failed", `${of} failed`, { cause });
}
