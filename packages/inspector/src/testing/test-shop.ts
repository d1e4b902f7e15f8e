import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import {
  type Authorization,
  type ExactEvmPayload,
  encodePaymentPayload,
  formatAuthorization,
  plasmaUsdt0,
  type TokenDomain,
  toLowerHex,
  transferTypedData,
  transferWithAuthorizationTypes,
} from "@coinslot/protocol";
import express from "express";
import { bytesToHex } from "viem";
import { writeSignatureForm } from "../checks/signature-form.ts";
import { type Inspector, type InspectorOptions, startInspector } from "../create-inspector.ts";
import type { SignedUnder } from "../cycles/cycle.ts";

/** A seller of weather on a devnet, and an inspector before it. */
export interface TestShop {
  devnet: Devnet;
  facilitator: CoinslotFacilitator;
  seller: Listening;
  inspect(options?: Partial<InspectorOptions>): Promise<Inspector>;
  close(): Promise<void>;
}

/** Opens a shop: `GET /weather` and `POST /echo` for 0.001 USDT0, by every wire; `GET /free`. */
export async function openTestShop(): Promise<TestShop> {
  const devnet = await startDevnet({ accountCount: 4 });
  const { network, rpcUrl, accounts } = devnet;
  await devnet.mint({ to: accounts.buyer.address, amount: 1_000_000n });
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
  });
  const accepts = {
    scheme: "exact",
    network,
    payTo: accounts.seller.address,
    price: "$0.001",
  } as const;
  const routes = { "GET /weather": { accepts }, "POST /echo": { accepts } };
  const gate = paymentMiddleware(routes, facilitator, { mpp: true });
  const app = express();
  app.use(gate);
  app.get("/weather", (_request, response) => void response.json({ forecast: "sun" }));
  app.post("/echo", express.text({ type: () => true }), (request, response) => {
    response.cookie("sid", "s3cr3t-session-value").json({ got: request.body });
  });
  app.get("/free", (_request, response) => void response.send("free"));
  await gate.ready();
  const seller = await listen(app);
  const inspectors: Inspector[] = [];
  return {
    devnet,
    facilitator,
    seller,
    async inspect(options = {}) {
      const inspector = await startInspector({ seller: seller.url, ...options });
      inspectors.push(inspector);
      return inspector;
    },
    async close() {
      for (const inspector of inspectors) await inspector.close();
      await seller.close();
      await facilitator.close();
      await devnet.stop();
    },
  };
}

/** Signs a payment of version 2 for the shop, with what is changed in it. */
export async function signPayment(
  { devnet }: TestShop,
  changes: {
    authorization?: Partial<Authorization>;
    domain?: Partial<TokenDomain>;
    network?: `eip155:${number}`;
    accepted?: Record<string, unknown>;
    primaryType?: SignedUnder["primaryType"];
    form?: SignedUnder["form"];
  } = {},
): Promise<{ header: string; signature: string; payload: ExactEvmPayload }> {
  const { accounts, network, token } = devnet;
  const { name, version } = plasmaUsdt0;
  const authorization: Authorization = {
    from: toLowerHex(accounts.buyer.address),
    to: toLowerHex(accounts.seller.address),
    value: 1_000n,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1000) + 300),
    nonce: bytesToHex(crypto.getRandomValues(new Uint8Array(32))),
    ...changes.authorization,
  };
  const domain = { name, version, ...changes.domain };
  const typed = { authorization, asset: token, domain, network: changes.network ?? network };
  const { primaryType = "TransferWithAuthorization" } = changes;
  const { TransferWithAuthorization: members } = transferWithAuthorizationTypes;
  const signed = await accounts.buyer.signTypedData({
    ...transferTypedData(typed),
    types: { [primaryType]: members },
    primaryType,
  });
  const signature = writeSignatureForm(signed, changes.form);
  const payload = { signature, authorization: formatAuthorization(authorization) };
  const header = encodePaymentPayload({
    x402Version: 2,
    payload,
    accepted: {
      scheme: "exact",
      network,
      amount: "1000",
      asset: token,
      payTo: accounts.seller.address,
      maxTimeoutSeconds: 300,
      extra: { name, version, decimals: 6 },
      ...changes.accepted,
    },
  });
  return { header, signature, payload };
}
