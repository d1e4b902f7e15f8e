import { withDatabase } from "@coinslot/devnet";
import type { Figure } from "../../support/figure.ts";

/** Indexes by which a search finds archived payments. */
const names = ["archived_payments_nonce", "archived_payments_transaction"];

/** Bytes on disk of both archive indexes, for each archived payment. */
export async function measureArchiveIndexes(url: string): Promise<Figure[]> {
  return withDatabase(url, async ({ engine, read }) => {
    const [archived] = await read("select count(*) as count from archived_payments");
    const count = Number(archived?.count);
    const figures: Figure[] = [];
    for (const name of names) {
      const [row] = await read(
        engine === "sqlite"
          ? `select sum(pgsize) as bytes from dbstat where name = '${name}'`
          : `select pg_relation_size('${name}') as bytes`,
      );
      const bytes = Number(row?.bytes);
      const note = `${(bytes / 1e6).toFixed(1)} MB for ${count.toLocaleString("en")}`;
      figures.push({
        scenario: `index ${name}, of an archived payment`,
        ours: { value: bytes / count, unit: "bytes", note },
      });
    }
    return figures;
  });
}
