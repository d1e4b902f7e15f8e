import { get, type IncomingMessage } from "node:http";
import { type Listening, listen } from "@coinslot/devnet";
import { headerName } from "@coinslot/protocol";
import compression from "compression";
import type { Express, RequestHandler } from "express";
import session from "express-session";
import { afterEach, describe, expect, it } from "vitest";
import { createBuyer } from "../testing/buyer.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { openShop, option, type Shop } from "../testing/shop.ts";
import { waysToAnswer } from "../testing/ways-to-answer.ts";

const opened: Listening[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

/** An answer as it came over the wire. */
interface Received {
  status: number;
  statusMessage: string;
  headers: Record<string, unknown>;
  trailers: Record<string, unknown>;
  body: string;
}

function receive(
  url: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false, ...options }, (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          statusMessage: response.statusMessage ?? "",
          headers: { ...response.headers },
          trailers: { ...response.trailers },
          body: Buffer.concat(chunks).toString("latin1"),
        }),
      );
    });
    request.on("error", reject);
  });
}

/** The allowed differences between a sold answer and a free one. */
const ours = new Set([
  headerName.paymentResponse.toLowerCase(),
  "cache-control",
  "date",
  // A held answer is complete, so a chunked one gets a length.
  "content-length",
  "transfer-encoding",
  "set-cookie",
]);

function comparable({ headers, ...answer }: Received): unknown {
  const kept = Object.entries(headers).filter(([name]) => !ours.has(name));
  return { ...answer, headers: Object.fromEntries(kept) };
}

describe.each(expressVersions)("a sold answer on $name", ({ express }) => {
  async function open(
    handler: RequestHandler,
    around: { before?: (app: Express) => void; after?: (app: Express) => void } = {},
  ) {
    const serve = (app: Express) => {
      around.after?.(app);
      app.get("/answer", handler);
    };
    const shop = await openShop({
      express,
      routes: { "GET /answer": { accepts: option() } },
      before: around.before,
      serve,
    });
    const app = express();
    around.before?.(app);
    serve(app);
    const free = await listen(app);
    opened.push(shop, free);
    return { shop, free };
  }

  async function receiveSold(shop: Shop, init: Parameters<typeof receive>[1] = {}) {
    const { headers } = await createBuyer().payFor(`${shop.url}/answer`);
    return receive(`${shop.url}/answer`, { ...init, headers: { ...init.headers, ...headers } });
  }

  it.each(waysToAnswer)("equals the free one with %s", async (_case, handler, headers = {}) => {
    const { shop, free } = await open(handler);
    const sold = await receiveSold(shop, { headers });
    const given = await receive(`${free.url}/answer`, { headers });
    expect(comparable(sold)).toEqual(comparable(given));
    expect(sold.headers["cache-control"]).toMatch(/^private/);
    expect(sold.headers["payment-response"]).toBeTypeOf("string");
    expect(shop.facilitator.settled).toHaveLength(1);
  });

  // Node itself throws when HEAD is answered with trailers. It also garbles a Content-Disposition
  // outside ASCII by the length of a body that HEAD does not have.
  const answersToHead = waysToAnswer.filter(
    ([title]) => title !== "trailers" && !/^letters .*: end of (?!nothing)/.test(title),
  );

  it.each(answersToHead)(
    "equals the free one with %s, to HEAD",
    async (_case, handler, headers = {}) => {
      const { shop, free } = await open(handler);
      const sold = await receiveSold(shop, { method: "HEAD", headers });
      const given = await receive(`${free.url}/answer`, { method: "HEAD", headers });
      expect(comparable(sold)).toEqual(comparable(given));
      expect(shop.facilitator.settled).toHaveLength(1);
    },
  );

  it("equals the free one without trailers, which HEAD cannot have", async () => {
    const { shop } = await open((_request, response) => {
      response.setHeader("Trailer", "X-Sum");
      response.write("body");
      response.addTrailers({ "X-Sum": "7" });
      response.end();
    });
    expect(await receiveSold(shop, { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  });

  it.each([
    ["before", { before: (app: Express) => app.use(compression({ threshold: 0 })) }],
    ["after", { after: (app: Express) => app.use(compression({ threshold: 0 })) }],
  ])("equals the free one with compression %s the gate", async (_where, around) => {
    for (const [, handler] of waysToAnswer.slice(0, 2)) {
      const { shop, free } = await open(handler, around);
      const headers = { "Accept-Encoding": "gzip" };
      const sold = await receiveSold(shop, { headers });
      const given = await receive(`${free.url}/answer`, { headers });
      expect(sold.headers["content-encoding"]).toBe("gzip");
      expect(comparable(sold)).toEqual(comparable(given));
    }
  });

  it.each(["before", "after"] as const)(
    "equals the free one with a session %s the gate",
    async (where) => {
      const use = (app: Express) =>
        app.use(session({ secret: "s", resave: false, saveUninitialized: true }));
      const { shop } = await open(
        (request, response) => {
          Object.assign(request.session, { seen: true });
          response.send("hello");
        },
        { [where]: use },
      );
      const sold = await receiveSold(shop);
      expect(sold).toMatchObject({ status: 200, body: "hello" });
      expect(String(sold.headers["set-cookie"])).toContain("connect.sid");
    },
  );

  it("equals the free one with 'finish' emitted after its last byte", async () => {
    const order: string[] = [];
    const { shop } = await open((_request, response) => {
      response.on("finish", () => order.push("finish"));
      response.end("x", () => order.push("callback"));
      order.push(`ended, ${response.headersSent ? "sent" : "held"}`);
    });
    shop.facilitator.onSettle = async (settle) => {
      order.push("settled");
      return settle();
    };
    await receiveSold(shop);
    expect(order[0]).toBe("ended, held");
    expect(order[1]).toBe("settled");
    expect(order.slice(2).sort()).toEqual(["callback", "finish"]);
  });

  it.each([
    ["public, max-age=60, s-maxage=600", "private, max-age=60"],
    ["no-store", "private, no-store"],
    ["private, max-age=5", "private, max-age=5"],
  ])("except for a Cache-Control that excludes shared caches: %s", async (set, expected) => {
    const { shop } = await open((_request, response) => {
      response.set("Cache-Control", set).send("x");
    });
    expect((await receiveSold(shop)).headers["cache-control"]).toBe(expected);
  });

  it("except for headers of particular shared caches, removed before any other", async () => {
    const targeted = {
      "CDN-Cache-Control": "max-age=600",
      "Cloudflare-CDN-Cache-Control": "max-age=600",
      "Surrogate-Control": "max-age=600",
      "X-Accel-Expires": "600",
    };
    const { shop } = await open((_request, response) => void response.send("x"), {
      before: (app) =>
        app.use((_request, response, next) => {
          response.set(targeted);
          next();
        }),
    });
    const sold = await receiveSold(shop);
    const unpaid = await receive(`${shop.url}/answer`);
    expect([sold.status, unpaid.status]).toEqual([200, 402]);
    for (const name of Object.keys(targeted)) {
      expect(sold.headers).not.toHaveProperty([name.toLowerCase()]);
      expect(unpaid.headers).not.toHaveProperty([name.toLowerCase()]);
    }
  });
});
