import { type Address, encodeDeployData, encodeFunctionData, pad } from "viem";
import { testEndpoint } from "../contracts/test-endpoint.generated.ts";
import { testOft } from "../contracts/test-oft.generated.ts";
import { testOftAdapter } from "../contracts/test-oft-adapter.generated.ts";
import { testOmnichainToken } from "../contracts/test-omnichain-token.generated.ts";
import { testTether } from "../contracts/test-tether.generated.ts";
import type { Devnet } from "./devnet.ts";
import { createMessenger, type Messenger } from "./messenger.ts";

/** Address of LayerZero's EndpointV2 on Ethereum and most other chains; here on every devnet. */
const endpointAddress: Address = "0x1a44076050125825900e736c501f859c50fE728c";

/** One end of an omnichain token. */
export type OmnichainEnd = {
  devnet: Devnet;
  /** Address for its OFT. */
  oft: Address;
  /** Address for its token. A token that is there already keeps its balances. */
  token: Address;
  /**
   * `true`: the token is at home here, with the behaviour of USDT on Ethereum; outgoing tokens are
   * locked, by allowance. `false`: it is the devnets' stablecoin; outgoing tokens are burned and
   * incoming ones minted.
   */
  locks: boolean;
};

/** LayerZero between devnets: an endpoint on each, and the messenger between them. */
export type LayerZero = Messenger & {
  /** The same on each chain. */
  endpoint: Address;
  /** Puts an OFT and its token on each chain, and makes them peers of one another. */
  connect: (ends: readonly OmnichainEnd[]) => Promise<void>;
  /** Puts an OFT before an existing token. Its peer on another chain has the same address. */
  adapt: (token: {
    devnet: Devnet;
    token: Address;
    oft: Address;
    peerEid: number;
  }) => Promise<void>;
  /** Sets the fee of a message from a chain, in its native coin. */
  setNativeFee: (devnet: Devnet, nativeFee: bigint) => Promise<void>;
};

/**
 * Places endpoints, so that omnichain tokens can go from one devnet to another.
 *
 * @param options.nativeFee fee of a message. Default 0.0001 of the native coin
 */
export async function startLayerZero(options: {
  chains: readonly { devnet: Devnet; eid: number }[];
  nativeFee?: bigint;
}): Promise<LayerZero> {
  const { chains, nativeFee = 100_000_000_000_000n } = options;
  const endpoint = endpointAddress;
  for (const { devnet, eid } of chains) {
    const creationCode = encodeDeployData({ ...testEndpoint, args: [eid, nativeFee] });
    await devnet.place({ address: endpoint, creationCode });
  }

  return {
    ...createMessenger(chains.map((chain) => ({ ...chain, endpoint }))),
    endpoint,
    async connect(ends) {
      for (const end of ends) await placeEnd(end, endpoint);
      for (const end of ends) {
        for (const other of ends) {
          const eid = chains.find(({ devnet }) => devnet === other.devnet)?.eid;
          if (other === end || eid === undefined) continue;
          await setPeer(end, eid, other.oft);
        }
      }
    },
    async adapt({ devnet, token, oft, peerEid }) {
      const creationCode = encodeDeployData({ ...testOftAdapter, args: [endpoint, token] });
      await devnet.place({ address: oft, creationCode });
      await setPeer({ devnet, oft }, peerEid, oft);
    },
    async setNativeFee(devnet, fee) {
      const { abi } = testEndpoint;
      const data = encodeFunctionData({ abi, functionName: "setNativeFee", args: [fee] });
      await devnet.send({ to: endpoint, data });
    },
  };
}

async function setPeer(
  { devnet, oft }: Pick<OmnichainEnd, "devnet" | "oft">,
  eid: number,
  peer: Address,
): Promise<void> {
  const args = [eid, pad(peer)] as const;
  const data = encodeFunctionData({ abi: testOft.abi, functionName: "setPeer", args });
  await devnet.send({ to: oft, data });
}

async function placeEnd({ devnet, oft, token, locks }: OmnichainEnd, endpoint: Address) {
  const tokenCode = locks
    ? testTether.bytecode
    : encodeDeployData({ ...testOmnichainToken, args: ["USDT0", "1", "USDT0", 6] });
  await devnet.place({ address: token, creationCode: tokenCode });
  const { abi, bytecode } = locks ? testOftAdapter : testOft;
  const creationCode = encodeDeployData({ abi, bytecode, args: [endpoint, token] });
  await devnet.place({ address: oft, creationCode });
  if (locks) return;
  const data = encodeFunctionData({
    abi: testOmnichainToken.abi,
    functionName: "setOftContract",
    args: [oft],
  });
  await devnet.send({ to: token, data });
}
