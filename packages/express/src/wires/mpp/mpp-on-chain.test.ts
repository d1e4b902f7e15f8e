import { type Devnet, listen, startDevnet } from "@coinslot/devnet";
import { createFacilitator } from "@coinslot/facilitator";
import {
  type Credential,
  decodePaymentReceipt,
  eip3009Abi,
  encodeCredential,
  headerName,
  plasmaUsdt0,
} from "@coinslot/protocol";
import supertest from "supertest";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { facilitatorRouter, paymentMiddleware } from "../../index.ts";
import { createBuyer, fetchOffer } from "../../testing/buyer.ts";
import { expressVersions } from "../../testing/express-versions.ts";
import { createMppBuyer, fetchChallenges, type MppBuyer } from "../../testing/mpp-buyer.ts";

const price = 1000n;
let devnet: Devnet;
const opened: (() => Promise<void>)[] = [];

beforeAll(async () => {
  devnet = await startDevnet();
});

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

afterAll(async () => {
  await devnet?.stop();
});

function ownFacilitator() {
  const { network, rpcUrl, accounts } = devnet;
  const facilitator = createFacilitator({
    networks: [{ network, rpcUrls: [rpcUrl], relayer: accounts.relayer }],
    ledger: "sqlite::memory:",
  });
  opened.push(() => facilitator.close());
  return facilitator;
}

/** A seller with the secret of its ledger. */
async function open(express: (typeof expressVersions)[number]["express"]) {
  const app = express();
  const payTo = privateKeyToAccount(generatePrivateKey()).address;
  const facilitator = ownFacilitator();
  const accepts = {
    scheme: "exact",
    network: devnet.network,
    payTo,
    price: { amount: `${price}`, asset: devnet.token, extra: plasmaUsdt0 },
  } as const;
  const upfront = { accepts, paymentFlow: "upfront" } as const;
  const routes = { "GET /paid": { accepts }, "GET /upfront": upfront };
  let runs = 0;
  // Gates as processes of one ledger have them. The third has secrets of its own, and the fourth is
  // on the way there.
  const secrets = ["a-secret-of-a-test-with-32-bytes"] as const;
  const first = paymentMiddleware(routes, facilitator, { mpp: true });
  const second = paymentMiddleware(routes, facilitator, { mpp: true });
  const third = paymentMiddleware(routes, facilitator, { mpp: { mode: true, secrets } });
  const onTheWay = { mode: true, secrets: ["ledger", ...secrets] } as const;
  const fourth = paymentMiddleware(routes, facilitator, { mpp: onTheWay });
  const gates = [first, second, third, fourth];
  app.use((request, response, next) => {
    const gate = gates[Number(request.headers["x-gate"] ?? 1) - 1] ?? first;
    gate(request, response, next);
  });
  app.get(["/paid", "/upfront"], (_request, response) => {
    runs += 1;
    response.json({ content: "secret" });
  });
  await Promise.all(gates.map((gate) => gate.ready()));
  const listening = await listen(app);
  opened.push(listening.close);
  return { ...listening, payTo, facilitator, runs: () => runs };
}

async function fundedBuyer(): Promise<MppBuyer> {
  const buyer = createMppBuyer(plasmaUsdt0);
  await devnet.mint({ to: buyer.account.address, amount: price });
  return buyer;
}

async function credentialFor(buyer: MppBuyer, url: string, gate = "1"): Promise<Credential> {
  const [challenge] = await fetchChallenges(url, { headers: { "x-gate": gate } });
  if (challenge === undefined) throw new Error("No challenge");
  return buyer.answer(challenge);
}

describe.each(expressVersions)("MPP on $name, with our facilitator", ({ express }) => {
  it.each(["/paid", "/upfront"])(
    "%s moves the money, with a receipt that a redelivery repeats",
    async (path) => {
      const shop = await open(express);
      const credential = await credentialFor(await fundedBuyer(), `${shop.url}${path}`);
      const headers = {
        Authorization: encodeCredential(credential),
        [headerName.idempotencyKey]: "a-key-of-the-buyer",
      };
      const answer = await supertest(shop.url).get(path).set(headers).expect(200);
      const receipt = decodePaymentReceipt(answer.get(headerName.paymentReceipt) ?? "");
      expect(receipt).toMatchObject({ challengeId: credential.challenge.id, method: "evm" });
      const paid = await devnet.client.readContract({
        address: devnet.token,
        abi: eip3009Abi,
        functionName: "balanceOf",
        args: [shop.payTo],
      });
      expect(paid).toBe(price);
      const { payments } = await shop.facilitator.payments.list();
      expect(payments[0]?.inclusion?.transactionHash).toBe(receipt.reference);
      expect(Date.parse(receipt.timestamp)).toBe(payments[0]?.confirmedAt);
      if (path === "/upfront") return;
      const again = await supertest(shop.url).get(path).set(headers).expect(200);
      expect(again.get(headerName.paymentReceipt)).toBe(answer.get(headerName.paymentReceipt));
      expect(shop.runs()).toBe(1);
    },
  );

  it("leaves the hosted facilitator's answers as x402 has them", async () => {
    const shop = await open(express);
    const hosted = await listen(express().use(facilitatorRouter(shop.facilitator)));
    opened.push(hosted.close);
    const buyer = createBuyer();
    await devnet.mint({ to: buyer.account.address, amount: price });
    const { payload } = await buyer.payFor(`${shop.url}/paid`);
    const [offered] = (await fetchOffer(`${shop.url}/paid`, 2)).accepts;
    const { body } = await supertest(hosted.url)
      .post("/settle")
      .send({ x402Version: 2, paymentPayload: payload, paymentRequirements: offered?.requirements })
      .expect(200);
    const members = ["amount", "network", "payer", "success", "transaction"];
    expect(Object.keys(body).sort()).toEqual(members);
  });

  it.each([
    ["another gate of the ledger", "1", "2"],
    ["a gate that has secrets of its own since", "1", "3"],
    ["a gate where the ledger's comes first", "1", "4"],
    ["one of the ledger alone", "4", "1"],
    ["one with its own alone", "4", "3"],
    ["one where the ledger's still comes first", "3", "4"],
  ])("takes at %s what another gate has challenged: %s, %s", async (_name, maker, gate) => {
    const shop = await open(express);
    const credential = await credentialFor(await fundedBuyer(), `${shop.url}/paid`, maker);
    await supertest(shop.url)
      .get("/paid")
      .set("x-gate", gate)
      .set("Authorization", encodeCredential(credential))
      .expect(200);
  });

  it("delivers a settled payment once: without a key there is a fresh challenge then", async () => {
    const shop = await open(express);
    const credential = await credentialFor(await fundedBuyer(), `${shop.url}/paid`);
    const header = encodeCredential(credential);
    await supertest(shop.url).get("/paid").set("Authorization", header).expect(200);
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({
      type: "https://paymentauth.org/problems/invalid-challenge",
    });
    expect(answer.get(headerName.paymentReceipt)).toBeUndefined();
  });

  it("refuses a payer without money with a fresh challenge, and runs nothing", async () => {
    const shop = await open(express);
    const credential = await credentialFor(createMppBuyer(plasmaUsdt0), `${shop.url}/paid`);
    const header = encodeCredential(credential);
    const answer = await supertest(shop.url).get("/paid").set("Authorization", header).expect(402);
    expect(answer.body).toMatchObject({
      type: "https://paymentauth.org/problems/verification-failed",
      error: "invalid_exact_evm_insufficient_balance",
    });
    expect(shop.runs()).toBe(0);
  });
});
