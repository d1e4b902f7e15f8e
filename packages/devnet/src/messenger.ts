import {
  type Address,
  concat,
  encodeFunctionData,
  getAbiItem,
  getAddress,
  type Hex,
  keccak256,
  slice,
} from "viem";
import { testEndpoint } from "../contracts/test-endpoint.generated.ts";
import type { Devnet } from "./devnet.ts";
import { type Packet, parsePacket } from "./packet.ts";

const { abi } = testEndpoint;
const packetSent = getAbiItem({ abi, name: "PacketSent" });

/** A chain as source and destination of messages, with its LayerZero number. */
export type MessengerChain = { devnet: Devnet; eid: number; endpoint: Address };

/**
 * Everything off the chains: verifier and executor of messages. Stateless: it reads all from the
 * chains.
 */
export type Messenger = {
  /**
   * Verifies and executes all messages that were sent and have not arrived; resolves to the GUIDs
   * of the executed ones. LzReceiveAlert announces one that reverts; it may be tried again.
   */
  deliver: () => Promise<Hex[]>;
  /** Verifies only, so that messages wait on their destination chain. */
  verify: () => Promise<void>;
};

/** Creates the messenger between endpoints. */
export function createMessenger(chains: readonly MessengerChain[]): Messenger {
  async function verify(): Promise<void> {
    for (const { chain, packet } of await findUndelivered(chains)) {
      if ((await payloadHashOf(chain, packet)) === payloadOf(packet)) continue;
      const { receiver } = targetOf(packet);
      const args = [originOf(packet), receiver, payloadOf(packet)] as const;
      const data = encodeFunctionData({ abi, functionName: "verify", args });
      await chain.devnet.send({ to: chain.endpoint, data });
    }
  }

  async function deliver(): Promise<Hex[]> {
    await verify();
    const executed: Hex[] = [];
    for (const { chain, packet } of await findUndelivered(chains)) {
      if (await execute(chain, packet)) executed.push(packet.guid);
    }
    return executed;
  }

  return { deliver, verify };
}

/** Messages to a known chain, in the order in which their chains sent them. */
async function findUndelivered(chains: readonly MessengerChain[]) {
  const found: { chain: MessengerChain; packet: Packet }[] = [];
  for (const source of chains) {
    const logs = await source.devnet.client.getLogs({
      address: source.endpoint,
      event: packetSent,
      fromBlock: 0n,
      strict: true,
    });
    for (const { args } of logs) {
      const packet = parsePacket(args.encodedPayload);
      const chain = chains.find(({ eid }) => eid === packet.dstEid);
      if (chain && (await isVerifiable(chain, packet))) found.push({ chain, packet });
    }
  }
  return found;
}

async function execute({ devnet, endpoint }: MessengerChain, packet: Packet): Promise<boolean> {
  const { receiver } = targetOf(packet);
  const origin = originOf(packet);
  const { guid, message } = packet;
  try {
    const args = [origin, receiver, guid, message, "0x"] as const;
    const data = encodeFunctionData({ abi, functionName: "lzReceive", args });
    await devnet.send({ to: endpoint, data });
    return true;
  } catch {
    const args = [origin, receiver, guid, 0n, 0n, message, "0x", "0x"] as const;
    const data = encodeFunctionData({ abi, functionName: "lzReceiveAlert", args });
    await devnet.send({ to: endpoint, data });
    return false;
  }
}

function isVerifiable({ devnet, endpoint }: MessengerChain, packet: Packet): Promise<boolean> {
  return devnet.client.readContract({
    address: endpoint,
    abi,
    functionName: "isVerifiable",
    args: [originOf(packet), targetOf(packet).receiver],
  });
}

function payloadHashOf({ devnet, endpoint }: MessengerChain, packet: Packet): Promise<Hex> {
  return devnet.client.readContract({
    address: endpoint,
    abi,
    functionName: "inboundPayloadHash",
    args: [targetOf(packet).receiver, packet.srcEid, packet.sender, packet.nonce],
  });
}

function payloadOf({ guid, message }: Packet): Hex {
  return keccak256(concat([guid, message]));
}

function originOf({ srcEid, sender, nonce }: Packet) {
  return { srcEid, sender, nonce };
}

function targetOf({ receiver }: Packet) {
  return { receiver: getAddress(slice(receiver, 12)) };
}
