import { decodePaymentRequired, headerName, type PageDemand } from "@coinslot/protocol";
import express from "express";
import supertest from "supertest";
import { afterEach, describe, expect, it } from "vitest";
import type { PaymentMiddlewareOptions, PaymentRoutes } from "../index.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";

const opened: Shop[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

const navigation = {
  Accept: "text/html,application/xhtml+xml,*/*;q=0.8",
  "Sec-Fetch-Mode": "navigate",
  "Sec-Fetch-Site": "same-origin",
};
const description = "Weather </title><script>alert(1)</script> & \"more\" 'here'";

async function open(
  options: PaymentMiddlewareOptions = {},
  routes: PaymentRoutes = {},
  before?: (app: express.Express) => void,
): Promise<Shop> {
  const shop = await openShop({
    routes: {
      "GET /paid": { accepts: option(), description },
      "POST /form": { accepts: option() },
      ...routes,
    },
    serve: (app) => app.use((_request, response) => void response.send("sold")),
    options,
    before,
  });
  opened.push(shop);
  return shop;
}

/** Answers of the page's demand, in place of a page. */
function recordDemands() {
  const demands: PageDemand[] = [];
  const paywall = {
    writePage(demand: PageDemand) {
      demands.push(demand);
      return `<p>${demands.length}</p>`;
    },
  };
  return { demands, paywall };
}

describe("the page of an unpaid request", () => {
  it("is whole for a range, and its head alone for HEAD", async () => {
    const shop = await open();
    const whole = await supertest(shop.url).get("/paid").set(navigation).expect(402);
    const range = { ...navigation, Range: "bytes=0-9" };
    const ranged = await supertest(shop.url).get("/paid").set(range).expect(402);
    expect(ranged.get("Content-Range")).toBeUndefined();
    expect(ranged.text.length).toBe(whole.text.length);
    const head = await supertest(shop.url).head("/paid").set(navigation).expect(402);
    expect(head.text ?? "").toBe("");
    for (const name of ["Content-Type", "Content-Length", "Vary", headerName.paymentRequired]) {
      expect(head.get(name) !== undefined, name).toBe(whole.get(name) !== undefined);
    }
  });

  it("names price, token, network, recipient and a command, and keeps status and offer", async () => {
    const shop = await open();
    const answer = await supertest(shop.url).get("/paid?city=Bern").set(navigation).expect(402);
    expect(answer.get("Content-Type")).toBe("text/html; charset=utf-8");
    expect(answer.get("Cache-Control")).toBe("no-store");
    expect(answer.get("Vary")).toBe("Accept, Sec-Fetch-Mode");
    const offer = decodePaymentRequired(String(answer.get(headerName.paymentRequired)));
    const [way] = offer.accepts;
    expect(answer.text).toContain("0.001 USDT0");
    expect(answer.text).toContain("Plasma");
    expect(answer.text).toContain(way?.requirements.payTo);
    expect(answer.text).toContain(way?.requirements.asset);
    expect(answer.text).toContain(`npx @coinslot/cli pay &quot;${shop.url}/paid?city=Bern&quot;`);
    expect(answer.text).not.toContain("<script");
  });

  it("runs nothing but what carries its nonce, and no other page frames it", async () => {
    const shop = await open();
    const first = await supertest(shop.url).get("/paid").set(navigation);
    const second = await supertest(shop.url).get("/paid").set(navigation);
    const policy = String(first.get("Content-Security-Policy"));
    const [, nonce] = /script-src 'nonce-([\w-]{24})'/.exec(policy) ?? [];
    expect(policy).toBe(
      `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
    );
    expect(first.text).toContain(`<style nonce="${nonce}">`);
    expect(second.text).not.toContain(nonce);
  });

  it("escapes what buyer and seller wrote", async () => {
    const shop = await open();
    const script = "/paid?x='\"><script>alert(2)</script>";
    const { text } = await supertest(shop.url).get(script).set(navigation).expect(402);
    expect(text).not.toContain("<script");
    expect(text).toContain("Weather &lt;/title&gt;&lt;script&gt;");
  });

  it("goes to no program: the JSON of a 402 has the headers that it had", async () => {
    const { paywall, demands } = recordDemands();
    const [plain, themed] = [await open(), await open({ paywall })];
    for (const accept of ["*/*", "application/json, text/plain, */*", "application/json"]) {
      const answers = await Promise.all(
        [plain, themed].map(({ url }) => supertest(url).get("/paid").set("Accept", accept)),
      );
      for (const { headers, body, status } of answers) {
        expect(status).toBe(402);
        expect(body.accepts).toHaveLength(1);
        expect(headers["content-type"]).toBe("application/json; charset=utf-8");
        expect(headers).not.toHaveProperty("content-security-policy");
        expect(headers).not.toHaveProperty("vary");
      }
    }
    expect(demands).toEqual([]);
  });

  it("goes to nothing that brings a payment", async () => {
    const shop = await open();
    const answer = await supertest(shop.url)
      .get("/paid")
      .set({ ...navigation, [headerName.paymentSignature]: "e30=" })
      .expect(400);
    expect(answer.get("Content-Type")).toBe("application/json; charset=utf-8");
  });

  it("leaves the seller's own body in its place", async () => {
    const unpaidAnswer = () => ({ contentType: "text/html", body: "<p>ours</p>" });
    const shop = await open({ unpaidAnswer });
    const { text } = await supertest(shop.url).get("/paid").set(navigation).expect(402);
    expect(text).toBe("<p>ours</p>");
  });

  it("is written by the paywall, and by us where that throws", async () => {
    const { paywall } = recordDemands();
    const shop = await open({ paywall });
    expect((await supertest(shop.url).get("/paid").set(navigation)).text).toBe("<p>1</p>");
    const fault = new Error("No theme");
    const broken = await open({
      paywall: {
        writePage() {
          throw fault;
        },
      },
    });
    const { text } = await supertest(broken.url).get("/paid").set(navigation).expect(402);
    expect(text).toContain("0.001 USDT0");
    expect(broken.errors).toEqual([fault]);
  });

  it("is refused at the start where it is none", async () => {
    const paywall: unknown = {};
    await expect(open({ paywall } as PaymentMiddlewareOptions)).rejects.toThrow(
      "options.paywall must have writePage",
    );
  });
});

describe("the form of an unpaid request", () => {
  const type = "application/x-www-form-urlencoded";
  const send = (shop: Shop, body: string, headers: Record<string, string> = {}) =>
    supertest(shop.url)
      .post("/form")
      .set({ ...navigation, "Content-Type": type, ...headers })
      .send(body)
      .expect(402);

  it("is given to the page as it came, and to the command", async () => {
    const { paywall, demands } = recordDemands();
    const shop = await open({ paywall });
    await send(shop, "a=1&b=%3Cscript%3E+x");
    expect(demands[0]).toMatchObject({
      method: "POST",
      form: { state: "kept", body: "a=1&b=%3Cscript%3E+x" },
      command: `npx @coinslot/cli pay "${shop.url}/form" --header "content-type: ${type}" --data "a=1&b=%3Cscript%3E+x"`,
    });
  });

  it.each([
    ["express.urlencoded", express.urlencoded({ extended: false })],
    ["express.text", express.text({ type })],
  ])("is kept where %s has read it", async (_name, parser) => {
    const { paywall, demands } = recordDemands();
    const shop = await open({ paywall }, {}, (app) => void app.use(parser));
    await send(shop, "a=1&a=2&b=%C3%A4");
    expect(demands[0]?.form).toEqual({ state: "kept", body: "a=1&a=2&b=%C3%A4" });
  });

  it("is kept up to 16 KB", async () => {
    const { paywall, demands } = recordDemands();
    const shop = await open({ paywall });
    await send(shop, `a=${"x".repeat(16_382)}`);
    await send(shop, `a=${"x".repeat(16_383)}`);
    expect(demands.map(({ form }) => form.state)).toEqual(["kept", "lost"]);
  });

  it.each([
    ["another type", { "Content-Type": "text/plain" }],
    ["another origin", { "Sec-Fetch-Site": "cross-site" }],
    ["another site of the domain", { "Sec-Fetch-Site": "same-site" }],
    ["no browser that says where it is from", { "Sec-Fetch-Site": "" }],
  ])("is not kept of %s", async (_name, headers) => {
    const { paywall, demands } = recordDemands();
    const shop = await open({ paywall });
    await send(shop, "a=1", headers);
    expect(demands[0]).toMatchObject({ form: { state: "lost" }, command: undefined });
  });

  it.each([
    ["same-origin", "none"],
    ["same-site", "lost"],
    ["cross-site", "lost"],
  ])(
    "the form of an unpaid request without a field counts as one, where it comes from %s",
    async (site, state) => {
      const { paywall, demands } = recordDemands();
      const shop = await open({ paywall });
      await send(shop, "", { "Sec-Fetch-Site": site, "Content-Length": "0" });
      await supertest(shop.url)
        .get("/paid")
        .set({ ...navigation, "Sec-Fetch-Site": site });
      expect(demands.map(({ form }) => form.state)).toEqual([state, "none"]);
    },
  );

  it("is not kept where its body is empty but chunked", async () => {
    const { paywall, demands } = recordDemands();
    const shop = await open({ paywall });
    const headers = { ...navigation, "Content-Type": type, "Transfer-Encoding": "chunked" };
    const sent = { method: "POST", headers, body: "0\r\n\r\n" };
    expect((await sendTarget(shop, "/form", sent)).status).toBe(402);
    expect(demands[0]).toMatchObject({ form: { state: "lost" }, command: undefined });
  });

  it("is kept on plain HTTP where its origin is this host", async () => {
    const { paywall, demands } = recordDemands();
    const shop = await open({ paywall });
    for (const origin of [shop.url, "http://evil.example", "null"]) {
      await supertest(shop.url)
        .post("/form")
        .set({ Accept: "text/html", "Content-Type": type, Origin: origin })
        .send("a=1")
        .expect(402);
    }
    expect(demands.map(({ form }) => form.state)).toEqual(["kept", "lost", "lost"]);
  });
});
