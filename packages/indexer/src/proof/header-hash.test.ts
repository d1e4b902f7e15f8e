import { expect, it } from "vitest";
import * as z from "zod";
import { startUsedChain } from "../testing/scene.ts";
import { hashesToItsName } from "./header-hash.ts";

const answerSchema = z.object({ result: z.record(z.string(), z.unknown()) });

it("a header is proven by the hash of its fields, and refused with another field", async () => {
  const { rpcUrl } = await startUsedChain(2);
  for (const number of ["0x0", "0x1", "0x3"] as const) {
    const call = { jsonrpc: "2.0", id: 1, method: "eth_getBlockByNumber", params: [number, false] };
    const answer = await fetch(rpcUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call),
    });
    const { result: block } = answerSchema.parse(await answer.json());
    expect(hashesToItsName(block), number).toBe(true);
    for (const field of ["receiptsRoot", "stateRoot", "parentHash"] as const)
      expect(hashesToItsName({ ...block, [field]: `0x${"ab".repeat(32)}` }), field).toBe(false);
    for (const field of ["timestamp", "gasUsed", "baseFeePerGas"] as const)
      expect(hashesToItsName({ ...block, [field]: "0x1234" }), field).toBe(false);
    expect(hashesToItsName({ ...block, stateRoot: undefined })).toBe(false);
  }
  expect(hashesToItsName(null)).toBe(false);
});

it("the first block of Ethereum has its known hash", () => {
  const zeros = (bytes: number) => `0x${"00".repeat(bytes)}`;
  const genesis = {
    hash: "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
    parentHash: zeros(32),
    sha3Uncles: "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
    miner: zeros(20),
    stateRoot: "0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544",
    transactionsRoot: "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
    receiptsRoot: "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
    logsBloom: zeros(256),
    difficulty: "0x400000000",
    number: "0x0",
    gasLimit: "0x1388",
    gasUsed: "0x0",
    timestamp: "0x0",
    extraData: "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa",
    mixHash: zeros(32),
    nonce: "0x0000000000000042",
  };
  expect(hashesToItsName(genesis)).toBe(true);
});
