import fc from "fast-check";
import {
  decodeEventLog,
  encodeAbiParameters,
  encodeEventTopics,
  erc20Abi,
  type Hex,
  toHex,
} from "viem";
import { expect, it } from "vitest";
import { blockOfPosition, logOfPosition } from "../store/position.ts";
import { decodeTransferLog } from "./decode-transfer-log.ts";

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((value) => toHex(value));
const word = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });

const transferLog = fc
  .record({
    address: hex(20),
    from: hex(20),
    to: hex(20),
    amount: word,
    blockNumber: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    logIndex: fc.integer({ min: 0, max: 2 ** 21 - 1 }),
    transactionIndex: fc.nat(),
    blockHash: hex(32),
    transactionHash: hex(32),
    seconds: fc.option(fc.nat(), { nil: undefined }),
  })
  .map(({ from, to, amount, seconds, ...rest }) => ({
    ...rest,
    topics: encodeEventTopics({ abi: erc20Abi, eventName: "Transfer", args: { from, to } }),
    data: encodeAbiParameters([{ type: "uint256" }], [amount]),
    blockNumber: toHex(rest.blockNumber),
    logIndex: toHex(rest.logIndex),
    transactionIndex: toHex(rest.transactionIndex),
    ...(seconds !== undefined && { blockTimestamp: toHex(seconds) }),
  }));

it("a transfer log is decoded as viem decodes it", () => {
  fc.assert(
    fc.property(transferLog, (log) => {
      const [signature, ...topics] = log.topics.flat().filter((topic) => topic !== null);
      if (signature === undefined) throw new Error("no topics");
      const { args } = decodeEventLog({
        abi: erc20Abi,
        eventName: "Transfer",
        data: log.data,
        topics: [signature, ...topics],
      });
      const decoded = decodeTransferLog(log);
      if ("problem" in decoded) throw new Error(decoded.problem);
      expect(`0x${decoded.from}`).toBe(lower(args.from));
      expect(`0x${decoded.to}`).toBe(lower(args.to));
      expect(decoded.amount).toBe(args.value);
      expect(blockOfPosition(decoded.position)).toBe(Number(log.blockNumber));
      expect(logOfPosition(decoded.position)).toBe(Number(log.logIndex));
      // Nodes write zero for an unknown value.
      const seconds = "blockTimestamp" in log ? Number(log.blockTimestamp) : 0;
      expect(decoded.timestampMs).toBe(seconds === 0 ? undefined : seconds * 1000);
    }),
  );
});

it("takes a time beyond all dates as omitted", () => {
  fc.assert(
    fc.property(transferLog, (log) => {
      const timeOf = (blockTimestamp: Hex) => decodeTransferLog({ ...log, blockTimestamp });
      expect(timeOf("0x7dba8218000")).toMatchObject({ timestampMs: 8_640_000_000_000_000 });
      expect(timeOf("0x7dba8218001")).toMatchObject({ timestampMs: undefined });
    }),
  );
});

it("any other log is reported with its fault, without an exception", () => {
  fc.assert(
    fc.property(fc.anything(), (value) => {
      expect(decodeTransferLog(value)).toMatchObject({ isPossible: false });
    }),
  );
  fc.assert(
    fc.property(transferLog, fc.string(), fc.anything(), (log, key, value) => {
      expect(() => decodeTransferLog({ ...log, [key]: value })).not.toThrow();
    }),
  );
});

function lower(address: Hex): string {
  return address.toLowerCase();
}
