import { encodeFunctionData, parseAbi, parseGwei } from "viem";
import { expect, it, onTestFinished, vi } from "vitest";
import { deposit, present, signDepositRequest } from "../../testing/channel-deposits.ts";
import { patience, price, startClaimingDevnet } from "../../testing/claiming-devnet.ts";

const abi = parseAbi(["function transfer(address to, uint256 value) returns (bool)"]);

it("deposits of one payer at once cost three transactions in vain, where its balance goes before them", async () => {
  const here = await startClaimingDevnet("sqlite");
  onTestFinished(() => here.stop());
  const { devnet, channels } = here;
  const { client, accounts, token } = devnet;
  const { buyer, deployer, relayer } = accounts;
  const facilitator = await here.start();
  await here.admit(facilitator, price, channels.configOf());
  const sign = () => signDepositRequest(here, channels.configOf(), { timeoutMs: 100 });
  const requests = await Promise.all(Array.from({ length: 8 }, sign));
  await devnet.setAutomine(false);
  const outcomes = await Promise.all(requests.map((each) => present(facilitator, each)));
  const states = outcomes.map(({ state }) => state).sort();
  expect(states).toEqual([...Array(5).fill("busy"), ...Array(3).fill("pending")]);
  await vi.waitFor(async () => {
    expect(await client.getTxpoolStatus()).toMatchObject({ pending: 3 });
  }, patience);
  const value = await here.balanceOf(buyer.address);
  await client.sendTransaction({
    account: buyer,
    to: token,
    data: encodeFunctionData({ abi, functionName: "transfer", args: [deployer.address, value] }),
    gas: 200_000n,
    maxFeePerGas: parseGwei("500"),
    maxPriorityFeePerGas: parseGwei("200"),
  });
  await devnet.mine(1);
  await devnet.setAutomine(true);
  const [first] = requests;
  if (first === undefined) throw new Error("Nothing was signed.");
  await devnet.mint({ to: buyer.address, amount: value });
  expect(await deposit(here, facilitator, await sign())).toMatchObject({ state: "payer_limited" });
  expect(await client.getTransactionCount({ address: relayer.address })).toBe(3);
});
