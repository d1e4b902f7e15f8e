import { type Hex, keccak256 } from "@coinslot/protocol";
import { toRlp } from "viem";
import type { RelayerTransaction } from "./relayer-signer.ts";

type Fields = (Uint8Array | never[])[];

/** A transaction before its signature. */
export interface UnsignedTransaction {
  /** The digest to sign. */
  hash: Hex;
  /** The signed bytes. `signature`: r, s and v as 65 bytes; v is 27 or 28. */
  signedWith(signature: Uint8Array): Hex;
}

const nothing = new Uint8Array();
const eip1559Type = Buffer.from([2]);

/**
 * Encodes a transaction as viem does, without its passes over hex strings. A full batch has 17 kB
 * of call data: they took 6% of a paid GET's processor time and 15% of its garbage.
 */
export function encodeTransaction(transaction: RelayerTransaction): UnsignedTransaction {
  const fields = fieldsOf(transaction);
  return {
    hash: toHex(keccak256(encode(transaction, fields, unsignedEnd(transaction)))),
    signedWith: (signature) =>
      toHex(encode(transaction, fields, signedEnd(transaction, signature))),
  };
}

/** The fields that are signed, in their order: EIP-1559, and EIP-155 for the legacy form. */
function fieldsOf(transaction: RelayerTransaction): Fields {
  const { chainId, nonce, gas } = transaction;
  const call = [toBytes(gas), bytesOf(transaction.to), nothing, bytesOf(transaction.data)];
  return transaction.type === "legacy"
    ? [toBytes(nonce), toBytes(transaction.gasPrice), ...call]
    : [
        toBytes(chainId),
        toBytes(nonce),
        toBytes(transaction.maxPriorityFeePerGas),
        toBytes(transaction.maxFeePerGas),
        ...call,
        [],
      ];
}

function unsignedEnd({ type, chainId }: RelayerTransaction): Fields {
  return type === "legacy" ? [toBytes(chainId), nothing, nothing] : [];
}

/** @param signature r, s and v as 65 bytes; v is 27 or 28 */
function signedEnd({ type, chainId }: RelayerTransaction, signature: Uint8Array): Fields {
  const parity = BigInt((signature[64] ?? 0) - 27);
  const v = type === "legacy" ? 35n + 2n * BigInt(chainId) + parity : parity;
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32, 64)];
  return [toBytes(v), toBytes(BigInt(toHex(r))), toBytes(BigInt(toHex(s)))];
}

function encode({ type }: RelayerTransaction, fields: Fields, end: Fields): Uint8Array {
  const list = toRlp([...fields, ...end], "bytes");
  return type === "legacy" ? list : Buffer.concat([eip1559Type, list]);
}

/** Big-endian, without leading zeros; nothing for zero. */
function toBytes(value: number | bigint): Uint8Array {
  if (BigInt(value) === 0n) return nothing;
  const digits = value.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}

function bytesOf(hex: Hex): Uint8Array {
  return Buffer.from(hex.slice(2), "hex");
}

function toHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`;
}
