// Runs the fault test once and prints its report. Environment, with defaults: SEED (random),
// PAYMENTS (2000), KILLS (200), ENGINE (sqlite; or postgres), PROCESSES (1; on postgres 4).
import { randomBytes } from "node:crypto";
import { startPostgres } from "@coinslot/devnet";
import * as z from "zod";
import { runFaults } from "./fault-run.ts";
import { summarise } from "./summary.ts";

const environment = z
  .object({
    SEED: z.string().default(() => randomBytes(4).toString("hex")),
    PAYMENTS: z.coerce.number().int().positive().default(2_000),
    KILLS: z.coerce.number().int().nonnegative().default(200),
    ENGINE: z.enum(["sqlite", "postgres"]).default("sqlite"),
    PROCESSES: z.coerce.number().int().positive().optional(),
  })
  .parse(process.env);
const { SEED: seed, PAYMENTS: payments, KILLS: kills, ENGINE: engine } = environment;
const postgres = engine === "postgres" ? await startPostgres() : undefined;
console.log(`SEED=${seed} PAYMENTS=${payments} KILLS=${kills} ENGINE=${engine}`);
try {
  const report = await runFaults({
    seed,
    payments,
    kills,
    postgresUrl: (await postgres?.createDatabase())?.url,
    processes: environment.PROCESSES ?? (postgres === undefined ? 1 : 4),
  });
  console.log(summarise(report));
  if (report.violations.length > 0) process.exitCode = 1;
} finally {
  await postgres?.stop();
}
