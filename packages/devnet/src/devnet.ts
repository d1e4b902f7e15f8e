import { findKnownChain, multicall3Address, networkOf, plasmaUsdt0 } from "@coinslot/protocol";
import { type Address, encodeFunctionData, type Hex, zeroAddress } from "viem";
import { lyingWallet } from "../contracts/lying-wallet.generated.ts";
import { multicall3 } from "../contracts/multicall3.generated.ts";
import { testUsdt0 } from "../contracts/test-usdt0.generated.ts";
import { createDevAccounts, type DevAccount, type DevAccounts, devAccount } from "./accounts.ts";
import { startAnvil } from "./anvil-process.ts";
import { type Behaviour, type WalletLie, walletLies } from "./contract-modes.ts";
import {
  deployLyingWallet,
  deployMisbehavingToken,
  deploySmartAccount,
  deployToken,
  deployTransferBatch,
  type SmartAccountOptions,
  type TokenOptions,
  tokenCreationCode,
} from "./deploy.ts";
import { createDevnetClient, type DevnetClient } from "./devnet-client.ts";
import { createFaucet, type Faucet } from "./faucet.ts";
import { placeContract } from "./place-contract.ts";

export type DevnetOptions = {
  /** Default 9745, Plasma. */
  chainId?: number;
  /** Seconds between blocks. By default each transaction is mined at once. */
  blockTimeSeconds?: number;
  /**
   * An address of this machine. Default 127.0.0.1; 0.0.0.0 lets other machines in, such as
   * containers.
   */
  host?: string;
  /** Default 0: any free one. */
  port?: number;
  /** Number of accounts with gas money. At least 4, default 20. */
  accountCount?: number;
  /** Default 100 million. */
  blockGasLimit?: bigint;
  /**
   * Default prague: it has EIP-7702 accounts, and not yet the limit of 2^24 gas for one
   * transaction. Shanghai has no transient storage (EIP-1153).
   */
  hardfork?: "prague" | "shanghai";
};

export type Devnet = {
  rpcUrl: string;
  chainId: number;
  /** CAIP-2, such as "eip155:9745" */
  network: `eip155:${number}`;
  /**
   * The stablecoin: EIP-712 domain name "USDT0", version "1", 6 decimals. On 9745 and 988 it has
   * its real address.
   */
  token: Address;
  multicall3: Address;
  /** Each holds 10,000 of the native coin, and no token. */
  accounts: DevAccounts;
  /** viem's test, public and wallet actions. The deployer is the default signer. */
  client: DevnetClient;

  /**
   * Mints `amount` smallest units of the token, or of another one; resolves to the transaction hash
   * when mined.
   */
  mint: (options: { to: Address; amount: bigint; token?: Address }) => Promise<Hex>;
  /** Mints of the token, each in a new block of its own; faster than as many calls of `mint`. */
  mintInBlocks: (mints: readonly { to: Address; amount: bigint }[]) => Promise<void>;
  deployToken: (options?: TokenOptions) => Promise<Address>;
  /** `setBehaviour(uint8)` changes the fault later. */
  deployMisbehavingToken: (behaviour: Behaviour, options?: TokenOptions) => Promise<Address>;
  /** `setAnswer(uint8)` changes the answer later. */
  deploySmartAccount: (options?: SmartAccountOptions) => Promise<Address>;
  /** Accepts any signature, also as the delegate of an EIP-7702 account. `setLie` changes that. */
  deployLyingWallet: () => Promise<Address>;
  /**
   * Makes a lying wallet, or an account that delegates to one, burn gas where the lie says. `hint`:
   * the last block in which it is honest, or the account whose balance it reads.
   */
  setLie: (wallet: Address, lie: WalletLie, hint?: bigint) => Promise<void>;
  /**
   * Lets an account run a contract's code (EIP-7702), or, without one, no code any more; resolves
   * when mined.
   */
  delegate: (account: DevAccount, contract?: Address) => Promise<void>;
  deployTransferBatch: () => Promise<Address>;
  /**
   * Puts a contract at an address of choice, as if its constructor had run there, and mines a
   * block.
   */
  place: (contract: { address: Address; creationCode: Hex }) => Promise<void>;
  /** Sends from an account that tests do not use; resolves when mined, rejects if it reverts. */
  send: Faucet;

  /** Mines `blocks` blocks, by default one; waiting transactions go into the first. */
  mine: (blocks?: number) => Promise<void>;
  /**
   * Replaces the last `depth` blocks by as many others. Their transactions are gone, from the
   * mempool too. Instead `transactions`, signed and serialized, are mined, each in the new block of
   * the given index.
   */
  reorg: (options: { depth: number; transactions?: ReorgTransaction[] }) => Promise<void>;
  /**
   * Switches the mining of each transaction at once. Otherwise only an interval or `mine` mines.
   */
  setAutomine: (enabled: boolean) => Promise<void>;
  /** Mines a block every `seconds` seconds; 0 stops that. */
  setIntervalMining: (seconds: number) => Promise<void>;
  /** Resolves to an id for `revert`. */
  snapshot: () => Promise<Hex>;
  /** Goes back to a snapshot, and uses it up. */
  revert: (id: Hex) => Promise<void>;

  /** Ends the chain. Idempotent. */
  stop: () => Promise<void>;
};

export type ReorgTransaction = { rawTransaction: Hex; blockIndex: number };

/**
 * Starts a chain in a process of its own, with a stablecoin, Multicall3 and accounts that can pay
 * for gas. Several may run at once. It ends with `stop`, or with this process, even if that is
 * killed.
 *
 * @throws if there is no anvil for this platform, or it does not start
 *
 * @example
 * ```ts
 * const devnet = await startDevnet(); // { chainId: 9745 } by default
 * const { buyer } = devnet.accounts;
 *
 * await devnet.mint({ to: buyer.address, amount: 5_000_000n }); // 5 USDT0
 *
 * await devnet.stop();
 * ```
 */
export async function startDevnet(options: DevnetOptions = {}): Promise<Devnet> {
  const { chainId = 9745, blockTimeSeconds, accountCount = 20 } = options;
  const { host = "127.0.0.1", port = 0, blockGasLimit = 100_000_000n } = options;
  const { hardfork = "prague" } = options;
  const accounts = createDevAccounts(accountCount);
  const token = findUsdt0(chainId) ?? plasmaUsdt0.address;
  const anvil = await startAnvil({
    chainId,
    host,
    port,
    accountCount: accountCount + 1,
    blockGasLimit,
    hardfork,
  });
  const client = createDevnetClient({ rpcUrl: anvil.rpcUrl, chainId, account: accounts.deployer });
  const send = createFaucet(client, devAccount(accountCount).address);

  try {
    await client.setLoggingEnabled(false);
    await placeContract({ client, send }, { address: token, creationCode: tokenCreationCode() });
    await placeContract(
      { client, send },
      { address: multicall3Address, creationCode: multicall3.bytecode },
    );
    await client.mine({ blocks: 1 });
    if (blockTimeSeconds !== undefined) {
      await client.setAutomine(false);
      await client.setIntervalMining({ interval: blockTimeSeconds });
    }
  } catch (error) {
    await anvil.stop();
    throw error;
  }

  return {
    rpcUrl: anvil.rpcUrl,
    chainId,
    network: `eip155:${chainId}`,
    token,
    multicall3: multicall3Address,
    accounts,
    client,
    mint: (mint) => mintToken(send, { token, ...mint }),
    async mintInBlocks(mints) {
      const from = devAccount(accountCount).address;
      // A reorganisation is the chain's one call that takes transactions with their blocks.
      await client.mine({ blocks: mints.length });
      await client.request({
        method: "anvil_reorg",
        params: [
          mints.length,
          mints.map(({ to, amount }, index) => [
            { from, to: token, data: mintData(to, amount) },
            index,
          ]),
        ],
      });
    },
    deployToken: (token) => deployToken(send, token),
    deployMisbehavingToken: (behaviour, token) => deployMisbehavingToken(send, behaviour, token),
    deploySmartAccount: (account) => deploySmartAccount(send, account),
    deployLyingWallet: () => deployLyingWallet(send),
    async setLie(wallet, lie, hint = 0n) {
      const args = [walletLies[lie], hint] as const;
      await send({
        to: wallet,
        data: encodeFunctionData({ abi: lyingWallet.abi, functionName: "setLie", args }),
      });
    },
    async delegate(account, contract = zeroAddress) {
      const authorization = await client.signAuthorization({ account, contractAddress: contract });
      const hash = await client.sendTransaction({
        to: accounts.deployer.address,
        authorizationList: [authorization],
      });
      await client.waitForTransactionReceipt({ hash });
    },
    deployTransferBatch: () => deployTransferBatch(send),
    async place(contract) {
      await placeContract({ client, send }, contract);
      await client.mine({ blocks: 1 });
    },
    send,
    mine: (blocks = 1) => client.mine({ blocks }),
    reorg: (reorg) => reorganise(client, reorg),
    setAutomine: (enabled) => client.setAutomine(enabled),
    setIntervalMining: (interval) => client.setIntervalMining({ interval }),
    snapshot: () => client.snapshot(),
    revert: (id) => client.revert({ id }),
    stop: anvil.stop,
  };
}

async function mintToken(
  send: Faucet,
  { token, to, amount }: { token: Address; to: Address; amount: bigint },
): Promise<Hex> {
  const { transactionHash } = await send({ to: token, data: mintData(to, amount) });
  return transactionHash;
}

function mintData(to: Address, amount: bigint): Hex {
  return encodeFunctionData({ abi: testUsdt0.abi, functionName: "mint", args: [to, amount] });
}

async function reorganise(
  client: DevnetClient,
  { depth, transactions = [] }: { depth: number; transactions?: ReorgTransaction[] },
): Promise<void> {
  await client.request({
    method: "anvil_reorg",
    params: [
      depth,
      transactions.map(({ rawTransaction, blockIndex }) => [rawTransaction, blockIndex]),
    ],
  });
}

/** The real address of USDT0, on a devnet whose token has it: its domain is that of USDT0. */
function findUsdt0(chainId: number): Address | undefined {
  const tokens = findKnownChain(networkOf(chainId))?.tokens ?? [];
  return tokens.find(({ name }) => name === plasmaUsdt0.name)?.address;
}
