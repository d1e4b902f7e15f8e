import { type Devnet, startDevnet } from "@coinslot/devnet";
import { BaseError, ContractFunctionRevertedError, erc20Abi } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createChainClient, createRpcPool, RpcUnavailableError } from "../index.ts";
import { secret, startFaultServer } from "../testing/fault-server.ts";
import { answerStatus } from "../testing/faults.ts";

let devnet: Devnet;
beforeAll(async () => {
  devnet = await startDevnet();
});
afterAll(() => devnet.stop());

async function setUp() {
  const server = await startFaultServer(devnet.rpcUrl);
  const rpcUrls = [server.url, devnet.rpcUrl];
  const pool = createRpcPool({ chainId: devnet.chainId, rpcUrls, patienceMs: 0 });
  async function tearDown() {
    pool.close();
    await server.close();
  }
  return { server, pool, client: createChainClient(pool), tearDown };
}

describe("a viem client over a pool", () => {
  it("runs viem's actions, with failover", async () => {
    const { server, client, tearDown } = await setUp();
    expect(await client.getChainId()).toBe(devnet.chainId);
    server.set(answerStatus(500));

    const results = await client.multicall({
      allowFailure: false,
      contracts: [
        { address: devnet.token, abi: erc20Abi, functionName: "decimals" },
        { address: devnet.token, abi: erc20Abi, functionName: "name" },
      ],
    });

    expect(results).toEqual([6, "USDT0"]);
    await tearDown();
  });

  it("decodes revert reasons", async () => {
    const { client, tearDown } = await setUp();
    const { address } = devnet.accounts.deployer;

    const error = await client
      .simulateContract({
        address: devnet.token,
        abi: erc20Abi,
        functionName: "transferFrom",
        args: [address, address, 1n],
        account: address,
      })
      .catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(BaseError);
    if (!(error instanceof BaseError)) return;
    expect(error.walk((each) => each instanceof ContractFunctionRevertedError)).not.toBeNull();
    expect(error.message).not.toContain(secret);
    await tearDown();
  });

  it("has the pool's error as its cause, without a URL", async () => {
    const { server, pool, tearDown } = await setUp();
    const endpoint = pool.endpoints[0];
    if (!endpoint) return expect.unreachable("there are two");
    await pool.ready();
    server.set(answerStatus(500));

    const error = await createChainClient(endpoint)
      .getBlockNumber()
      .catch((reason: unknown) => reason);

    expect(error).toBeInstanceOf(BaseError);
    if (!(error instanceof BaseError)) return;
    expect(error.walk((each) => each instanceof RpcUnavailableError)).not.toBeNull();
    expect(error.message).not.toContain(secret);
    expect(error.message).not.toContain("127.0.0.1");
    await tearDown();
  });
});
