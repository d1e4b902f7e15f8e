import { multicall3 } from "@coinslot/devnet";
import fc from "fast-check";
import { bytesToHex, encodeFunctionData, hexToBytes } from "viem";
import { expect, it } from "vitest";
import { anyAddress } from "../testing/arbitraries.ts";
import { countBatch, encodeBatch } from "./batch-calldata.ts";
import { calldataGas } from "./relay/gas.ts";

const anyCall = fc.record({
  target: anyAddress,
  callData: fc.uint8Array({ maxLength: 200 }).map((bytes) => bytesToHex(bytes)),
});

it("the calldata of a batch equals viem's", () => {
  fc.assert(
    fc.property(fc.array(anyCall, { maxLength: 20 }), (calls) => {
      const args = [calls.map((call) => ({ ...call, allowFailure: true }))] as const;
      expect(encodeBatch(calls)).toBe(
        encodeFunctionData({ abi: multicall3.abi, functionName: "aggregate3", args }),
      );
      expect(countBatch(hexToBytes(encodeBatch(calls)))).toBe(calls.length);
    }),
  );
});

it("the gas of calldata is counted byte by byte", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
      const gas = bytes.reduce((total, byte) => total + (byte === 0 ? 4n : 16n), 0n);
      expect(calldataGas(bytesToHex(bytes))).toBe(gas);
    }),
  );
});
