import { setTimeout as sleep } from "node:timers/promises";
import { createChannelFixture, type DevAccount, type Devnet } from "@coinslot/devnet";
import {
  type ChannelConfig,
  channelContracts,
  channelSettlementAbi,
  type Hex,
  type PaymentRequirements,
  toLowerHex,
} from "@coinslot/protocol";
import { encodeFunctionData, keccak256, numberToHex, parseEther, stringToHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const abi = channelSettlementAbi;
const gas = 300_000n;
/** Deposits in one transaction: a block has room for some hundred. */
const depositsAtOnce = 50;

/** A buyer's channel, with the keys of its payer. */
export interface ChannelAccount {
  config: ChannelConfig;
  channelId: Hex;
  payer: DevAccount;
}

/** Acts of buyers on the escrow, and the signatures of their vouchers. */
export interface ChannelBank {
  accounts: readonly ChannelAccount[];
  /** The header that pays with a voucher, by the offer of a route. */
  payWith(account: ChannelAccount, ceiling: bigint, accepted: PaymentRequirements): Promise<string>;
  /** Deposits on all channels. Needs a chain that mines each transaction at once. */
  depositAll(amount: bigint): Promise<void>;
  /** Broadcast, and not waited for: a block may never have them. */
  deposit(account: ChannelAccount, amount: bigint, salt: bigint): Promise<void>;
  withdraw(account: ChannelAccount, amount: bigint): Promise<void>;
  finish(account: ChannelAccount): Promise<void>;
  /** Sends claimed money to the seller, as any sender may. */
  settle(): Promise<void>;
  stateOf: ReturnType<typeof createChannelFixture>["stateOf"];
}

/** Makes channels of one payer each, with money for its deposits and gas. */
export async function openChannelBank(options: {
  devnet: Devnet;
  seed: string;
  channels: number;
  withdrawDelay: number;
  /** Of each payer, in the token's smallest unit. */
  funds: bigint;
}): Promise<ChannelBank> {
  const { devnet, seed, channels, withdrawDelay, funds } = options;
  const { client } = devnet;
  const fixture = createChannelFixture(devnet);
  const accounts = Array.from({ length: channels }, (_, index): ChannelAccount => {
    const privateKey = keccak256(stringToHex(`${seed}/payer ${index}`));
    const payer = { ...privateKeyToAccount(privateKey), privateKey };
    const address = toLowerHex(payer.address);
    const salt = numberToHex(index, { size: 32 });
    const config = fixture.configOf({
      payer: address,
      payerAuthorizer: address,
      withdrawDelay,
      salt,
    });
    return { config, channelId: fixture.idOf(config), payer };
  });
  await Promise.all(
    accounts.map(({ payer: { address } }) =>
      client.setBalance({ address, value: parseEther("1") }),
    ),
  );
  await devnet.mintInBlocks(accounts.map(({ payer }) => ({ to: payer.address, amount: funds })));

  async function encodeDeposit(account: ChannelAccount, amount: bigint, salt: bigint) {
    const { config, payer: signer } = account;
    const signed = { signer, salt: numberToHex(salt, { size: 32 }) };
    const data = await fixture.signDeposit(config, amount, signed);
    const args = [config, amount, channelContracts.erc3009Collector, data] as const;
    return encodeFunctionData({ abi, functionName: "deposit", args });
  }

  async function send(account: DevAccount, data: Hex): Promise<void> {
    const to = channelContracts.settlement;
    await client.sendTransaction({ account, to, data, gas });
  }

  return {
    accounts,
    async payWith({ config, channelId, payer }, ceiling, accepted) {
      const signature = await fixture.signVoucher(config, ceiling, payer);
      const voucher = { channelId, maxClaimableAmount: `${ceiling}`, signature };
      const payload = { type: "voucher", channelConfig: config, voucher };
      const payment = { x402Version: 2, accepted, payload };
      return Buffer.from(JSON.stringify(payment)).toString("base64");
    },
    async depositAll(amount) {
      for (let from = 0; from < accounts.length; from += depositsAtOnce) {
        const some = accounts.slice(from, from + depositsAtOnce);
        const calls = await Promise.all(some.map((each) => encodeDeposit(each, amount, 0n)));
        await fixture.multicall(calls);
      }
    },
    async deposit(account, amount, salt) {
      await send(account.payer, await encodeDeposit(account, amount, salt));
    },
    withdraw({ config, payer }, amount) {
      const args = [config, amount] as const;
      return send(payer, encodeFunctionData({ abi, functionName: "initiateWithdraw", args }));
    },
    finish({ config, payer }) {
      const args = [config] as const;
      return send(payer, encodeFunctionData({ abi, functionName: "finalizeWithdraw", args }));
    },
    async settle() {
      const args = [devnet.accounts.seller.address, devnet.token] as const;
      const data = encodeFunctionData({ abi, functionName: "settle", args });
      await send(devnet.accounts.seller, data);
    },
    async stateOf(config) {
      for (;;) {
        // The node refuses a read of a block that it replaces meanwhile.
        const state = await fixture.stateOf(config).catch(() => undefined);
        if (state !== undefined) return state;
        await sleep(50);
      }
    },
  };
}
