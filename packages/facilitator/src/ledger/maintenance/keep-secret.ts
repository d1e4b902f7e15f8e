import { randomBytes } from "node:crypto";
import type { LedgerContext } from "../ledger-context.ts";

/**
 * The secret of that name which all processes of the ledger share: 32 random bytes, in base64url.
 * The first caller writes it. Of two at once the first row stays, and both read it.
 */
export async function keepSecret(
  { db, write }: Pick<LedgerContext, "db" | "write">,
  name: string,
): Promise<string> {
  const find = () =>
    db.selectFrom("secrets").select("secret").where("name", "=", name).executeTakeFirst();
  const known = await find();
  if (known !== undefined) return known.secret;
  const secret = randomBytes(32).toString("base64url");
  return write(async (transaction) => {
    await transaction
      .insertInto("secrets")
      .values({ name, secret })
      .onConflict((conflict) => conflict.column("name").doNothing())
      .execute();
    const kept = await transaction
      .selectFrom("secrets")
      .select("secret")
      .where("name", "=", name)
      .executeTakeFirstOrThrow();
    return kept.secret;
  });
}
