import { formatEther, formatUnits } from "viem";
import { testUsdt0 } from "../contracts/test-usdt0.generated.ts";
import { devSeedPhrase } from "./accounts.ts";
import type { Devnet } from "./devnet.ts";

/** Text for people: every address and URL of a devnet, with the present balances. */
export async function describeDevnet(
  devnet: Devnet,
  { blockTimeSeconds }: { blockTimeSeconds: number | undefined },
): Promise<string> {
  const { accounts, client, token } = devnet;
  const { others, ...named } = accounts;
  const everybody = [
    ...Object.entries(named),
    ...others.map((account, index) => [`others[${index}]`, account] as const),
  ];
  const described = await Promise.all(
    everybody.map(async ([name, { address, privateKey }]) => {
      const balance = await client.getBalance({ address });
      const tokens = await client.readContract({
        address: token,
        abi: testUsdt0.abi,
        functionName: "balanceOf",
        args: [address],
      });
      return [
        `  ${name.padEnd(11)} ${address}   ${formatEther(balance)} gas, ${formatUnits(tokens, 6)} USDT0`,
        `  ${" ".repeat(11)} ${privateKey}`,
      ].join("\n");
    }),
  );
  const mining =
    blockTimeSeconds === undefined
      ? "a block for each transaction"
      : `a block every ${blockTimeSeconds} s`;
  return `
Devnet

  RPC URL     ${devnet.rpcUrl}
  Chain       ${devnet.chainId} (${devnet.network}), ${mining}
  USDT0       ${token}   name "USDT0", version "1", 6 decimals; any account may mint
  Multicall3  ${devnet.multicall3}

Accounts, each with its private key. These keys are public: never send their accounts anything of value.

${described.join("\n")}

  Seed phrase ${devSeedPhrase}
`;
}

/** Shell exports for a seller and a buyer on a devnet: the names that README and command read. */
export function describeExports({ accounts, network, rpcUrl }: Devnet): string {
  return [
    `export COINSLOT_NETWORK=${network} COINSLOT_RPC_URL=${rpcUrl}`,
    `export FACILITATOR_PRIVATE_KEY=${accounts.relayer.privateKey}`,
    `export PAY_TO=${accounts.seller.address}`,
    `export WALLET_PRIVATE_KEY=${accounts.buyer.privateKey}`,
  ].join("\n");
}
