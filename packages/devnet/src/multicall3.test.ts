import { encodeFunctionData, erc20Abi, multicall3Abi, parseEventLogs } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { multicall3 } from "../contracts/multicall3.generated.ts";
import { testUsdt0 } from "../contracts/test-usdt0.generated.ts";
import { type Devnet, startDevnet } from "./devnet.ts";
import { createTokenFixture } from "./token-fixture.ts";

let devnet: Devnet;

beforeAll(async () => {
  devnet = await startDevnet();
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1000n });
});

afterAll(() => devnet.stop());

describe("Multicall3", () => {
  it("is deployed at its canonical address, where viem uses it", async () => {
    expect(devnet.multicall3).toBe("0xcA11bde05977b3631167028862bE2a173976CA11");
    const token = { address: devnet.token, abi: erc20Abi } as const;
    const answers = await devnet.client.multicall({
      contracts: [
        { ...token, functionName: "symbol" },
        { ...token, functionName: "transferFrom", args: [devnet.token, devnet.token, 1n] },
        { ...token, functionName: "decimals" },
      ],
    });
    expect(answers.map(({ status }) => status)).toEqual(["success", "failure", "success"]);
    expect(answers[0].result).toBe("USDT0");
  });

  it("settles the valid authorizations of a batch beside an invalid one that may fail", async () => {
    const { client, accounts } = devnet;
    const token = createTokenFixture({ devnet, token: devnet.token });
    const values = [1n, 2n, 3n];
    const calls = await Promise.all(
      values.map(async (value) => {
        const authorization = token.authorize({ value });
        const signer = value === 2n ? accounts.relayer : accounts.buyer;
        const signature = await token.sign(authorization, signer);
        const { from, to, validAfter, validBefore, nonce } = authorization;
        const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
        const callData = encodeFunctionData({
          abi: testUsdt0.abi,
          functionName: "transferWithAuthorization",
          args,
        });
        return { target: devnet.token, allowFailure: true, callData };
      }),
    );
    const batch = {
      address: devnet.multicall3,
      abi: multicall3Abi,
      account: accounts.relayer,
      functionName: "aggregate3",
    } as const;
    const strict = calls.map((call) => ({ ...call, allowFailure: false }));
    await expect(client.simulateContract({ ...batch, args: [strict] })).rejects.toThrow(
      "Multicall3: call failed",
    );
    const hash = await client.writeContract({ ...batch, args: [calls] });
    const { logs } = await client.waitForTransactionReceipt({ hash });
    const transfers = parseEventLogs({ abi: erc20Abi, logs, eventName: "Transfer" });
    expect(transfers.map(({ args }) => args.value)).toEqual([1n, 3n]);
  });

  it("offers the other aggregates and the getters", async () => {
    const { client, chainId, accounts } = devnet;
    const contract = { address: devnet.multicall3, abi: multicall3.abi } as const;
    const callData = encodeFunctionData({ abi: erc20Abi, functionName: "decimals" });
    const good = { target: devnet.token, callData };
    const bad = { target: devnet.token, callData: "0xdeadbeef" } as const;
    const six = `0x${"6".padStart(64, "0")}`;

    const aggregate = await client.simulateContract({
      ...contract,
      functionName: "aggregate",
      args: [[good]],
    });
    expect(aggregate.result[1]).toEqual([six]);
    await expect(
      client.simulateContract({
        ...contract,
        functionName: "blockAndAggregate",
        args: [[good, bad]],
      }),
    ).rejects.toThrow("Multicall3: call failed");
    const tried = await client.simulateContract({
      ...contract,
      functionName: "tryAggregate",
      args: [false, [good, bad]],
    });
    expect(tried.result).toEqual([
      { success: true, returnData: six },
      { success: false, returnData: "0x" },
    ]);

    const { relayer } = accounts;
    const pay = {
      target: relayer.address,
      allowFailure: false,
      value: 5n,
      callData: "0x",
    } as const;
    const withValue = { ...contract, functionName: "aggregate3Value", args: [[pay]] } as const;
    await expect(client.simulateContract({ ...withValue, value: 6n })).rejects.toThrow(
      "Multicall3: value mismatch",
    );
    expect((await client.simulateContract({ ...withValue, value: 5n })).result).toEqual([
      { success: true, returnData: "0x" },
    ]);

    expect(await client.readContract({ ...contract, functionName: "getChainId" })).toBe(
      BigInt(chainId),
    );
    expect(
      await client.readContract({
        ...contract,
        functionName: "getEthBalance",
        args: [relayer.address],
      }),
    ).toBe(await client.getBalance({ address: relayer.address }));
  });
});
