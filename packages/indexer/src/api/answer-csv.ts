import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { csvHeader, encodeCsv } from "./csv.ts";
import { toRecord } from "./transfer-service.ts";
import type { TransferSource, TransfersQuery } from "./transfer-source.ts";

const pageSize = 1_000;

/**
 * Streams the whole history as CSV, page after page at the reader's pace, so that neither side
 * holds it. The first page is read before anything is sent. So a failure until then is still an
 * error in JSON; later the connection is cut.
 */
export async function answerCsv(
  response: Response,
  {
    source,
    query,
    limit,
  }: { source: TransferSource; query: TransfersQuery; limit?: number | undefined },
): Promise<void> {
  const pages = readPages(source, query, limit ?? Number.POSITIVE_INFINITY);
  const first = await pages.next();
  const name = `${query.blockchain}-${query.token}-${query.address}.csv`;
  response.setHeader("Content-Type", "text/csv; charset=utf-8");
  response.setHeader("Content-Disposition", `attachment; filename="${name}"`);
  async function* lines() {
    yield csvHeader;
    if (first.done !== true) yield first.value;
    yield* pages;
  }
  await pipeline(Readable.from(lines(), { highWaterMark: 1 }), response);
}

async function* readPages(source: TransferSource, query: TransfersQuery, limit: number) {
  let { after } = query;
  for (let left = limit; left > 0; left -= pageSize) {
    const page = await source.readTransfers({ ...query, after, limit: Math.min(left, pageSize) });
    const last = page.at(-1);
    if (last === undefined) return;
    yield encodeCsv(page.map(toRecord));
    if (page.length < pageSize) return;
    after = last;
  }
}
