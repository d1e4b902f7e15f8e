import { byDay } from "@coinslot/devnet/effort";
import { appendEvent, registerEndpoints } from "@coinslot/storage";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { indexerOutbox } from "../webhooks/indexer-outbox.ts";
import { indexerWebhooks } from "../webhooks/indexer-webhooks.ts";
import { stands, startApi, type TestAnswer, type TestApi } from "./testing/api-server.ts";

const addressOf = (value: number) => `0x${value.toString(16).padStart(40, "0")}`;
const range = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => addressOf(from + index));
const path = "/api/v1/webhooks/deposits/addresses";
const receivers = [
  { id: "whk_deposits", owner: "tests" },
  { id: "whk_theirs", owner: "them" },
  { id: "whk_operators", owner: undefined },
];

describe.each(stands)("webhooks by API keys, on $engine, Express $expressVersion", (stand) => {
  async function start() {
    const api = await startApi(stand, { receivers });
    const database = await api.source.database();
    const webhooks = indexerWebhooks(database);
    await webhooks.list();
    const outbox = indexerOutbox(database);
    await registerEndpoints(
      outbox,
      receivers.map(({ id }) => ({
        id,
        url: "https://example.com/…",
        secrets: ["abcd"],
        types: ["transfer.final"],
      })),
    );
    return { ...api, database, outbox, webhooks, patch: patchOf(api) };
  }

  it("change the addresses of the receivers of their owner, a page at a time", async () => {
    const { call, patch } = await start();
    const [first, second, third] = range(1, 3);
    expect((await call("/api/v1/webhooks")).body).toEqual({
      webhooks: [
        {
          id: "whk_deposits",
          url: "https://example.com/…",
          events: ["transfer.final"],
          isEnabled: true,
          watched: 0,
          pending: 0,
          dead: 0,
        },
      ],
    });
    expect((await patch(path, { add: range(1, 3) })).body).toEqual({
      added: 3,
      removed: 0,
      watched: 3,
    });
    const again = { add: [addressOf(1).toUpperCase().replace("0X", "0x")] };
    expect((await patch(path, again)).body).toEqual({ added: 0, removed: 0, watched: 3 });

    const page = await call(`${path}?limit=2`);
    expect(page.body).toEqual({ addresses: [first, second] });
    const rest = await call(nextOf(page));
    expect(rest.body).toEqual({ addresses: [third] });
    expect(rest.headers.get("link")).toBeNull();

    const change = { add: range(4, 1), remove: range(1, 2) };
    expect((await patch(path, change)).body).toEqual({ added: 1, removed: 2, watched: 2 });
    expect((await call("/api/v1/webhooks/whk_deposits/addresses")).body).toEqual({
      addresses: [third, addressOf(4)],
    });
  });

  it("know no receiver of another owner, of none, or that does not exist", async () => {
    const { call, patch, post, webhooks } = await start();
    for (const name of ["theirs", "whk_operators", "typo", "%00"]) {
      const own = `/api/v1/webhooks/${name}`;
      const answers = [
        await call(`${own}/addresses`),
        await patch(`${own}/addresses`, { add: range(1, 1) }),
        await call(`${own}/dead`),
        await post(`${own}/replay`, { deadOnly: true }),
        await call(`${own}/test`, { method: "POST" }),
      ];
      for (const { status, body } of answers) {
        expect({ name, status }).toEqual({ name, status: 404 });
        expect(body).toMatchObject({ message: "You have no such receiver." });
      }
    }
    expect((await webhooks.list()).map(({ watched }) => watched)).toEqual([0, 0, 0]);
  });

  it("change nothing by a wrong request", async () => {
    const { call, patch, post } = await start();
    for (const body of [
      {},
      { add: [] },
      { add: [addressOf(1), "0x12"] },
      { add: "0x12" },
      { add: range(1, 1_001) },
      { add: range(1, 1), colour: "blue" },
    ])
      expect(await patch(path, body)).toMatchObject({ status: 400 });
    expect((await call(path)).body).toEqual({ addresses: [] });
    expect(await patch(path, "a".repeat(100_000))).toMatchObject({ status: 413 });
    for (const query of ["limit=0", "limit=1001", "after=0x12"])
      expect(await call(`${path}?${query}`)).toMatchObject({ status: 400 });
    const own = "/api/v1/webhooks/deposits";
    expect(await call(`${own}/dead?cursor=abc`)).toMatchObject({ status: 400 });
    for (const body of [{}, { id: "evt_1" }, { from: -1 }, { from: "now" }])
      expect(await post(`${own}/replay`, body)).toMatchObject({ status: 400 });
  });

  it("list dead events, replay them, and test a receiver", async () => {
    const { call, post, outbox, database } = await start();
    const own = "/api/v1/webhooks/deposits";
    for (const endpoint of ["whk_deposits", "whk_deposits", "whk_theirs"])
      await appendEvent(outbox, { endpoint, key: endpoint, type: "transfer.final", payload: "{}" });
    await sql`
      update indexer_outbox_deliveries
      set state = 'dead', attempts = 15, ended_at = 1000 + event_seq, error = 'status 503'
    `.execute(database.kysely);

    const page = await call(`${own}/dead?limit=1`);
    const rest = await call(nextOf(page));
    const dead = { key: "whk_deposits", type: "transfer.final", attempts: 15, error: "status 503" };
    expect(page.body).toMatchObject({ dead: [{ ...dead, endedAt: 1_002 }] });
    expect(rest.body).toMatchObject({ dead: [{ ...dead, endedAt: 1_001 }] });
    expect((await call(nextOf(rest))).body).toEqual({ dead: [] });

    expect((await post(`${own}/replay`, { deadOnly: true })).body).toEqual({ replayed: 2 });
    expect((await call(`${own}/test`, { method: "POST" })).body).toEqual({ success: true });
    const stands = { webhooks: [{ pending: 3, dead: 0 }] };
    expect((await call("/api/v1/webhooks")).body).toMatchObject(stands);
  });
});

it.each(byDay(stands.slice(0, 1), stands))(
  "API keys watch 100,000 addresses in one receiver, and not one more, on $engine",
  async (stand) => {
    const [receiver] = receivers;
    const api = await startApi(stand, { receivers });
    const database = await api.source.database();
    const webhooks = indexerWebhooks(database);
    await webhooks.list();
    const endpoint = { id: receiver?.id ?? "", url: "", secrets: [], types: [] };
    await registerEndpoints(indexerOutbox(database), [endpoint]);
    const patch = patchOf(api);
    await webhooks.watch("deposits", range(0, 99_000));
    const last = await patch(path, { add: range(99_000, 1_000) });
    expect(last.body).toEqual({ added: 1_000, removed: 0, watched: 100_000 });
    const { status, body } = await patch(path, { add: range(100_000, 1) });
    expect(status).toBe(400);
    expect(body).toMatchObject({ message: expect.stringContaining("at most 100000 addresses") });
    // Removed addresses make room for added ones.
    const change = { add: range(100_000, 1), remove: range(0, 1) };
    expect((await patch(path, change)).body).toEqual({ added: 1, removed: 1, watched: 100_000 });
  },
  60_000,
);

function patchOf({ call }: TestApi) {
  return (target: string, body: unknown): Promise<TestAnswer> =>
    call(target, {
      method: "PATCH",
      body: typeof body === "string" ? JSON.stringify([body]) : JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
}

/** The path of the next page. */
function nextOf({ headers }: TestAnswer): string {
  return /^<([^>]+)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1] ?? "none";
}
