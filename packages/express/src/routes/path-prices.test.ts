import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Listening, listen } from "@coinslot/devnet";
import type { ErrorRequestHandler, Express, RequestHandler } from "express";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type PaymentRoutes, paymentMiddleware } from "../index.ts";
import { expressVersions } from "../testing/express-versions.ts";
import { createPaperFacilitator } from "../testing/paper-facilitator.ts";
import { sendTarget } from "../testing/send-target.ts";
import { openShop, option } from "../testing/shop.ts";
import { applicationRouter, layersOf } from "./application-router.ts";

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const content = "the content that is sold";

/** Keys in their order, with prices in dollars. */
function sold(prices: Record<string, number>): PaymentRoutes {
  return Object.fromEntries(
    Object.entries(prices).map(([path, price]) => [
      `GET ${path}`,
      { accepts: option({ price: `$${price}` }) },
    ]),
  );
}

async function openFolder(...files: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "static-"));
  closing.push(() => rm(folder, { recursive: true }));
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content);
  }
  return folder;
}

describe.each(expressVersions)("a path of two prices on $name", ({ name, express }) => {
  async function open(routes: PaymentRoutes, serve: (app: Express) => void): Promise<Listening> {
    const shop = await openShop({ express, routes, serve, options: { app: express() } });
    closing.push(() => shop.close());
    return shop;
  }

  /** The status, or the price that a 402 names. */
  async function answerOf(shop: Listening, target: string): Promise<number | string> {
    const { status, answer } = await sendTarget(shop, target);
    expect([target, answer]).not.toEqual([target, expect.stringContaining(content)]);
    if (status !== 402) return status;
    return `$${Number(/"maxAmountRequired":"(\d+)"/.exec(answer)?.[1]) / 1e6}`;
  }

  const rest = name === "Express 4" ? "*" : "*rest";
  const end: RequestHandler = (_request, response) => void response.send(content);
  const free: RequestHandler = (_request, response) => void response.send("free");

  it.each([
    [
      { [`/files/cheap/${rest}`]: 0.001, [`/files/premium/${rest}`]: 5 },
      "/files/cheap/../premium/book.pdf",
      "/files/premium/book.pdf",
    ],
    [
      { "/previews/:name": 0.001, "/files/:name": 5 },
      "/previews/..%2Ffiles%2Fbook.pdf",
      "/files/book.pdf",
    ],
    [
      { "/files/:folder/:file": 0.001, "/files/premium.bin": 5 },
      "/files/./premium.bin",
      "/files/premium.bin",
    ],
    [
      { "/files/:name": 0.001, "/files/premium/:name": 5 },
      "/files/premium%2Fbook.pdf",
      "/files/premium/book.pdf",
    ],
    [
      { "/files/:name": 0.001, "/files/premium/:name": 5 },
      "/files/premium%2F100%25.pdf",
      "/files/premium/100%.pdf",
    ],
    [
      { "/previews/:name": 0.001, "/files/:name": 5 },
      "/previews/..%2Ffiles%2F100%25.pdf",
      "/files/100%.pdf",
    ],
    [
      { "/files/:name": 0.001, "/files/100%/:name": 5 },
      "/files/100%25%2Fbook.pdf",
      "/files/100%/book.pdf",
    ],
    [
      { "/files/:name": 0.001, "/files/premium/:name": 5 },
      "/files/premium%2F%20",
      "/files/premium/ ",
    ],
  ])("is sold by the dearer key before a static server: %j, %s", async (prices, target, file) => {
    const folder = await openFolder(file);
    const shop = await open(sold(prices), (app) => app.use(express.static(folder)));
    expect(await answerOf(shop, target)).toBe("$5");
    expect(await answerOf(shop, encodeURI(file))).toBe("$5");
  });

  it("is sold by it where middleware passes it on to a static server", async () => {
    const folder = await openFolder("/files/premium/book.pdf");
    const prices = sold({ "/files/:name": 0.001, "/files/premium/:name": 5 });
    const pass: RequestHandler = (_request, _response, next) => next();
    for (const path of ["/files/:name", `/files/${rest}`]) {
      const shop = await open(prices, (app) => app.all(path, pass).use(express.static(folder)));
      expect(await answerOf(shop, "/files/premium%2Fbook.pdf")).toBe("$5");
    }
  });

  it("is sold by it where that is its own key", async () => {
    const folder = await openFolder("/files/cheap/book.pdf");
    const prices = sold({ "/files/:name": 5, "/files/cheap/:name": 0.001 });
    const shop = await open(prices, (app) => app.use(express.static(folder)));
    expect(await answerOf(shop, "/files/cheap%2Fbook.pdf")).toBe("$5");
  });

  it.each(["/%09/a", "/\\a"])("is found before five of %s at most", async (part) => {
    const prices = sold({ [`/files/premium/${rest}`]: 5, [`/files/${rest}`]: 0.001 });
    const shop = await open(prices, (app) => app.get(`/files/${rest}`, end));
    expect(await answerOf(shop, `/files/premium%2Fx${part.repeat(5)}`)).toBe("$5");
    expect(await answerOf(shop, `/files/premium%2Fx${part.repeat(6)}`)).toBe(400);
  });

  it("is refused where the prices cannot be compared", async () => {
    const folder = await openFolder("/files/premium/book.pdf");
    const shop = await open(
      {
        "GET /files/:name": { accepts: option({ price: () => "$0.001" }) },
        "GET /files/premium/:name": { accepts: option({ price: "$5" }) },
      },
      (app) => app.use(express.static(folder)),
    );
    expect(await answerOf(shop, "/files/premium%2Fbook.pdf")).toBe(400);
  });

  it("is sold by either key of one function for both", async () => {
    const accepts = option({ price: () => "$2" });
    const routes = { "GET /files/:name": { accepts }, "GET /files/premium/:name": { accepts } };
    const shop = await open(routes, (app) => app.get("/files/premium/:name", end));
    expect(await answerOf(shop, "/files/premium%2Fbook.pdf")).toBe("$2");
  });

  it("is sold by its route, whose parameter holds an escaped slash", async () => {
    const prices = sold({ "/packages/:name/:version": 1, "/packages/:name": 0.001 });
    const shop = await open(prices, (app) => {
      app.get("/packages/:package", end).get("/packages/:name/:version", end);
    });
    expect(await answerOf(shop, "/packages/@acme%2Ftool")).toBe("$0.001");
    expect(await answerOf(shop, "/packages/@acme%2Ftool/2.0.0")).toBe("$1");
    const mounted = await open(prices, (app) => {
      const packages = express.Router().get("/:name", end).get("/:name/:version", end);
      app.use("/packages", packages);
    });
    expect(await answerOf(mounted, "/packages/@acme%2Ftool")).toBe("$0.001");
    const nested = await open(prices, (app) => {
      const versions = express.Router({ mergeParams: true }).get("/", end).get("/:version", end);
      app.use("/packages/:name", versions);
    });
    expect(await answerOf(nested, "/packages/@acme%2Ftool")).toBe("$0.001");
    const wild = await open(prices, (app) => {
      const files = express.Router({ mergeParams: true }).get("/", end);
      app.use(`/packages/${rest}`, files);
    });
    expect(await answerOf(wild, "/packages/@acme%2Ftool")).toBe("$1");
    const behind = await open(prices, (app) => {
      app.use(express().use(express.static("."))).get("/packages/:name", end);
    });
    expect(await answerOf(behind, "/packages/@acme%2Ftool")).toBe("$1");
  });

  it("is sold by the dearer key before a function at a mount, which may serve files", async () => {
    const folder = await openFolder("/premium/book.pdf");
    const prices = sold({ "/files/:name": 0.001, "/files/premium/:name": 5 });
    const serve = express.static(folder);
    const unnamed: RequestHandler = (...call) => serve(...call);
    const pass: RequestHandler = (_request, _response, next) => next();
    for (const mount of ["/files", /^\/(files)/]) {
      const shop = await open(prices, (app) => app.use(mount, unnamed).get("/files/:name", end));
      expect(await answerOf(shop, "/files/premium%2Fbook.pdf")).toBe("$5");
    }
    const explain: ErrorRequestHandler = (error, _request, _response, next) => next(error);
    const explained = await open(prices, (app) => {
      app.use("/files", explain).get("/files/:name", end);
    });
    expect(await answerOf(explained, "/files/premium%2Fbook.pdf")).toBe("$0.001");
    // Body parsers, cors and helmet.
    const parsed = await open(prices, (app) => {
      app.use(pass, express.json()).use(`/${rest}`, pass).get("/files/:name", end);
    });
    expect(await answerOf(parsed, "/files/premium%2Fbook.pdf")).toBe("$0.001");
  });

  it("is sold by it where a handler's fetch reads another one in a parameter", async () => {
    const shop = await open(sold({ "/files/:name/preview": 0.001, "/files/:name": 5 }), (app) => {
      app.get("/files/:name/preview", end).get("/files/:name", end);
    });
    expect(await answerOf(shop, "/files/book%3F/preview")).toBe("$5");
    expect(await answerOf(shop, "/files/book%23x/preview")).toBe("$5");
    expect(await answerOf(shop, "/files/book/preview")).toBe("$0.001");
    expect(await answerOf(shop, "/files/book%3F")).toBe("$5");
  });

  type Router = ReturnType<typeof express.Router>;
  type Arrange = (gate: RequestHandler, router: Router, mount: string) => Express;

  const inRouter: Arrange = (gate, router, mount) =>
    express().use(mount, express.Router().use(gate).use(router));
  const beside: Arrange = (gate, router, mount) => express().use(mount, gate, router);
  const inApplication: Arrange = (gate, router, mount) =>
    express().use(mount, express().use(gate).use(router));

  async function openMounted(
    arrange: Arrange,
    mount: string,
    { prices, router }: { prices: Record<string, number>; router: Router },
  ): Promise<Listening> {
    const gate = paymentMiddleware(sold(prices), createPaperFacilitator());
    await gate.ready();
    const shop = await listen(arrange(gate, router, mount));
    closing.push(() => shop.close());
    return shop;
  }

  it.each([inRouter, beside, inApplication])(
    "does not begin with the mount for its relative keys: %o",
    async (arrange) => {
      const router = express.Router().get("/", free);
      for (const path of ["/:city/:day", "/premium", "/:id"]) router.get(path, end);
      const prices = { "/:city/:day": 4, "/premium": 1, "/:id": 2 };
      const shop = await openMounted(arrange, "/weather", { prices, router });
      expect(await answerOf(shop, "/weather/premium")).toBe("$1");
      expect(await answerOf(shop, "/weather/berlin")).toBe("$2");
      expect(await answerOf(shop, "/weather/berlin/today")).toBe("$4");
      expect(await answerOf(shop, "/weather")).toBe(200);
    },
  );

  it("is sold by the dearer key where a mounted static server may read it either way", async () => {
    const folder = await openFolder("/premium.bin");
    const arrange: Arrange = (gate, _router, mount) =>
      express().use(mount, gate, express.static(folder));
    const prices = { "/:folder/:file": 0.001, "/premium.bin": 1 };
    const shop = await openMounted(arrange, "/files", { prices, router: express.Router() });
    expect(await answerOf(shop, "/files/premium.bin")).toBe("$1");
  });

  it("leaves pages beside relative keys free", async () => {
    const router = express.Router().get("/health", free).get("/:city/:day", end);
    const prices = { "/:city/:day": 0.001 };
    const shop = await openMounted(inRouter, "/weather", { prices, router });
    expect(await answerOf(shop, "/weather/health")).toBe(200);
    expect(await answerOf(shop, "/weather/berlin/today")).toBe("$0.001");
  });

  it.each([["/:language"], ["/en"]])("begins with it for full keys at %s", async (mount) => {
    const router = express.Router().get("/report", end).get("/free", free);
    const prices = { "/:language/report": 1 };
    const shop = await openMounted(inRouter, mount, { prices, router });
    expect(await answerOf(shop, "/en/report")).toBe("$1");
    expect(await answerOf(shop, "/en/free")).toBe(200);
  });

  it("is that of a key beside the mount, where a router is mounted twice", async () => {
    const gate = paymentMiddleware(
      sold({ "/v1/report": 1, "/:v/list": 2 }),
      createPaperFacilitator(),
    );
    await gate.ready();
    const router = express.Router().use(gate).get("/weather", free);
    const app = express().use("/v1", router);
    app.get("/v1/report", end).get("/:v/list", end).post("/list", end).use("/", router);
    const shop = await listen(app);
    closing.push(() => shop.close());
    expect(await answerOf(shop, "/v1/report")).toBe("$1");
    expect(await answerOf(shop, "/v1/list")).toBe("$2");
  });

  it.each([
    ["bytes that are no text", `/zz/${"%ffa".repeat(3_900)}`, 200],
    ["an escaped slash", `/zz%2f${"%ffa".repeat(990)}`, 200],
    ["characters beyond ASCII", `/zz%2f${"%c3%a9%ff".repeat(440)}`, 200],
    ["segments of two dots", `/${"%ffa".repeat(110)}/a/b/c/../../../%5c`, 200],
    ["a long host", `http://${"a".repeat(15_000)}/a/b/c/../../../%5c%ff`, 400],
  ])(
    "is read with few exceptions, and a bounded number of times, with %s",
    async (_case, target, status) => {
      const prices = { [`/a/${rest}`]: 1, [`/a/b/${rest}`]: 2, "/c/:name": 3 };
      const shop = await open(sold(prices), (app) => app.use(free));
      const work = { faults: 0, characters: 0 };
      const { decodeURIComponent: decode, encodeURI: encode } = globalThis;
      const spies = [
        vi.spyOn(globalThis, "decodeURIComponent").mockImplementation((text) => {
          work.characters += text.length;
          try {
            return decode(text);
          } catch (error) {
            work.faults += 1;
            throw error;
          }
        }),
        vi.spyOn(globalThis, "encodeURI").mockImplementation((text) => {
          work.characters += text.length;
          return encode(text);
        }),
      ];
      try {
        expect(await answerOf(shop, target)).toBe(status);
      } finally {
        for (const spy of spies) spy.mockRestore();
      }
      expect(work.faults).toBeLessThan(50);
      expect(work.characters).toBeLessThan(200_000);
    },
  );

  it.each([
    ["a text of lines", `/prompt/lines%0A${"%e4%bd%a0".repeat(277)}`],
    ["a signed URL", `/prompt/https%3A%2F%2Fhost%2Ffile%3Fsignature%3D${"a".repeat(3_900)}`],
  ])("is sold where a parameter holds %s", async (_case, target) => {
    const shop = await open(sold({ "/prompt/:text": 1 }), (app) => app.get("/prompt/:text", end));
    expect(await answerOf(shop, target)).toBe("$1");
  });

  it("is found without a look at each mount of a long path", async () => {
    let matches = 0;
    const app = express();
    const prices = sold({ [`/a/${rest}`]: 1 });
    const gate = paymentMiddleware(prices, createPaperFacilitator(), { app });
    await gate.ready();
    app.use(`/${rest}`, gate);
    for (const layer of layersOf(applicationRouter(app))) {
      const match: unknown = Reflect.get(layer, "match");
      if (!(match instanceof Function)) continue;
      const counted = (...given: unknown[]) => {
        matches += 1;
        return Reflect.apply(match, layer, given);
      };
      Reflect.set(layer, "match", counted);
    }
    const shop = await listen(app);
    closing.push(() => shop.close());
    expect(await answerOf(shop, "/a".repeat(1_000))).toBe("$1");
    expect(matches).toBeLessThan(10);
  });
});
