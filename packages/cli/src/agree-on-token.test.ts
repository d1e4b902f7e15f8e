import { text } from "node:stream/consumers";
import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import type { ConfiguredNetwork } from "@coinslot/hosting/environment";
import { type Address, findKnownToken } from "@coinslot/protocol";
import { erc20Abi, getAbiItem, pad, toFunctionSelector, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { agreeOnToken } from "./agree-on-token.ts";
import { exitCode } from "./exit-code.ts";
import { readNetworks } from "./networks.ts";
import { inFolder, runCoinslot } from "./testing/run-coinslot.ts";

let devnet: Devnet;
let token: Address;

beforeAll(async () => {
  devnet = await startDevnet({ accountCount: 5 });
  token = await devnet.deployToken({ name: "Points", version: "7", decimals: 2 });
  await devnet.mint({ token, to: devnet.accounts.buyer.address, amount: 100_000n });
});
afterAll(() => devnet?.stop());

const points = () => ({ address: token, name: "Points", version: "7", decimals: 2 });

/** A node that returns these decimals for every token. */
async function startNode(decimals: number): Promise<string> {
  const selector = toFunctionSelector(getAbiItem({ abi: erc20Abi, name: "decimals" }));
  const server = await listen(async (request, response) => {
    const body = await text(request);
    const headers = { "content-type": "application/json" };
    const given = await (await fetch(devnet.rpcUrl, { method: "POST", headers, body })).text();
    const lie = (answer: unknown) => Object.assign({}, answer, { result: pad(toHex(decimals)) });
    const parsed: unknown = JSON.parse(given);
    const answer = Array.isArray(parsed) ? parsed.map(lie) : lie(parsed);
    response.writeHead(200, headers);
    response.end(body.includes(selector) ? JSON.stringify(answer) : given);
  });
  onTestFinished(server.close);
  return server.url;
}

/** Plasma with these nodes, and a token of `COINSLOT_TOKENS`. */
function networkOf(rpcUrls: readonly string[], more = ""): ConfiguredNetwork {
  const [network] = readNetworks({
    COINSLOT_NETWORK: devnet.network,
    COINSLOT_RPC_URL: rpcUrls.join(","),
    COINSLOT_TOKENS: `${devnet.network}/${token}${more}`,
  });
  if (network === undefined) throw new Error("There is no network");
  return network;
}

function agree(network: ConfiguredNetwork) {
  return agreeOnToken(network, network.tokens[0] ?? token);
}

describe("decimals and domain of a token", () => {
  it("are never accepted from one node alone, and the error names it", async () => {
    const network = networkOf([devnet.rpcUrl]);
    await expect(agree(network)).rejects.toThrow(
      `set COINSLOT_TOKENS to ${devnet.network}/${token}/2/7/Points`,
    );
    // The same host twice is one node.
    const twice = networkOf([devnet.rpcUrl, `${devnet.rpcUrl}/?other`]);
    await expect(agree(twice)).rejects.toThrow("of one host only");
  });

  it("are not suggested for the configuration with a name that would be more than one token", async () => {
    const other = `${devnet.network}/${devnet.token}/30/1/Other`;
    for (const name of [`Points,${other}`, "Points\u001b[2J"]) {
      const address = await devnet.deployToken({ name, version: "7", decimals: 2 });
      const refusal: unknown = await agreeOnToken(networkOf([devnet.rpcUrl]), address).catch(
        String,
      );
      expect(refusal).toContain("add an endpoint of another host");
      expect(refusal).not.toContain("set COINSLOT_TOKENS to");
      expect(refusal).not.toContain("\u001b");
    }
  });

  it("come from two nodes that agree", async () => {
    const network = networkOf([devnet.rpcUrl, await startNode(2)]);
    expect(await agree(network)).toEqual(points());
  });

  it("are refused where one of two nodes disagrees, in either order", async () => {
    const liar = await startNode(9);
    for (const urls of [
      [liar, devnet.rpcUrl],
      [devnet.rpcUrl, liar],
    ]) {
      await expect(agree(networkOf(urls))).rejects.toThrow("one of them is wrong");
    }
  });

  it("are refused where one of two nodes does not answer", async () => {
    const network = networkOf([devnet.rpcUrl, "http://127.0.0.1:1"]);
    await expect(agree(network)).rejects.toThrow("cannot be read");
  });

  it("come from the configuration, without regard to a node", async () => {
    const network = networkOf([await startNode(9)], "/2/7/Points");
    expect(await agree(network)).toEqual(points());
  });

  it("come from our table first", async () => {
    const usdc = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
    const [base] = readNetworks({
      COINSLOT_RPC_URL_8453: "http://127.0.0.1:1",
      COINSLOT_TOKENS: `eip155:8453/${usdc}/9/1/Liar`,
    });
    const asset = base && (await agreeOnToken(base, base.tokens[0] ?? usdc));
    expect(asset).toEqual(findKnownToken("eip155:8453", usdc));
    expect(asset?.decimals).toBe(6);
  });

  it.each(["/2", "/2/7", "/x/7/Points", "/100/7/Points", "/2//Points", "/2/7/"])(
    "are reported as wrong when they end in %s",
    (more) => {
      expect(() => networkOf([devnet.rpcUrl], more)).toThrow("is not like eip155:8453/0x8335…");
    },
  );

  it("may name a token with slashes and spaces", () => {
    const { tokens } = networkOf([devnet.rpcUrl], "/2/7/A / B");
    expect(tokens).toEqual([{ ...points(), name: "A / B" }]);
  });
});

describe("coinslot pay --yes --max-price 0.10 for 400 tokens by a node's decimals", () => {
  it.each([
    ["for a token by its address", "", exitCode.usage],
    ["for a described token", "/2/7/Points", exitCode.failed],
  ])("moves nothing %s", async (_name, more, code) => {
    const rpcUrl = await startNode(14);
    const server = await listen((request, response) => {
      const offered = {
        scheme: "exact",
        network: devnet.network,
        maxAmountRequired: "40000",
        resource: `http://${request.headers.host}/`,
        description: "",
        mimeType: "",
        payTo: devnet.accounts.seller.address,
        maxTimeoutSeconds: 60,
        asset: token,
      };
      response.writeHead(request.headers["x-payment"] === undefined ? 402 : 500);
      response.end(JSON.stringify({ x402Version: 1, accepts: [offered] }));
    });
    onTestFinished(server.close);
    await inFolder(async (folder) => {
      const env = {
        COINSLOT_NETWORK: devnet.network,
        COINSLOT_RPC_URL: rpcUrl,
        COINSLOT_TOKENS: `${devnet.network}/${token}${more}`,
        WALLET_PRIVATE_KEY: devnet.accounts.buyer.privateKey,
      };
      const args = ["pay", server.url, "--yes", "--max-price", "0.10"];
      const ran = await runCoinslot(args, { env, folder });
      expect(ran.err).not.toContain("costs");
      expect(ran.code).toBe(code);
    });
  });
});
