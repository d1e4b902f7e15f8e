import { type Devnet, startDevnet, testUsdt0 } from "@coinslot/devnet";
import { type Address, knownChains } from "@coinslot/protocol";
import { encodeDeployData } from "viem";
import { priceOfWeather } from "./seller.ts";

/** EIP-712 domain of the token, which released clients of MPP know by its address. */
export const usdcDomain = { name: "USDC", version: "2" } as const;

/** USDC of Base Sepolia. */
export const usdc: Address = findUsdc();

/** A devnet with the token of Base Sepolia, which released clients of every protocol know. */
export async function startUsdcDevnet(): Promise<Devnet> {
  const devnet = await startDevnet({ chainId: 84532 });
  const args = [usdcDomain.name, usdcDomain.version, "USDC", 6] as const;
  await devnet.place({ address: usdc, creationCode: encodeDeployData({ ...testUsdt0, args }) });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n, token: usdc });
  return devnet;
}

/** The price of one weather report in that token. */
export function usdcOffer({ network, accounts }: Devnet) {
  return {
    scheme: "exact",
    network,
    payTo: accounts.seller.address,
    price: { amount: `${priceOfWeather}`, asset: usdc, extra: { ...usdcDomain, decimals: 6 } },
  } as const;
}

function findUsdc(): Address {
  const chain = knownChains.find(({ network }) => network === "eip155:84532");
  if (chain === undefined) throw new Error("Base Sepolia is no known chain");
  return chain.tokens[0].address;
}
