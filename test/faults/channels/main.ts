// Runs the fault test of channels once and prints its report. Environment, with defaults: SEED
// (random), VOUCHERS (20000), CHANNELS (200), KILLS (200), ENGINE (sqlite; or postgres), PROCESSES
// (1; on postgres 3).
import { randomBytes } from "node:crypto";
import { startPostgres } from "@coinslot/devnet";
import * as z from "zod";
import { runChannelFaults } from "./channel-run.ts";
import { summariseChannels } from "./channel-summary.ts";

const environment = z
  .object({
    SEED: z.string().default(() => randomBytes(4).toString("hex")),
    VOUCHERS: z.coerce.number().int().positive().default(20_000),
    CHANNELS: z.coerce.number().int().positive().default(200),
    KILLS: z.coerce.number().int().nonnegative().default(200),
    ENGINE: z.enum(["sqlite", "postgres"]).default("sqlite"),
    PROCESSES: z.coerce.number().int().positive().optional(),
    SECONDS_PER_BLOCK: z.coerce.number().int().positive().default(4),
  })
  .parse(process.env);
const { SEED: seed, VOUCHERS: vouchers, CHANNELS: channels, KILLS: kills } = environment;
const { ENGINE: engine, SECONDS_PER_BLOCK: secondsPerBlock } = environment;
const postgres = engine === "postgres" ? await startPostgres() : undefined;
console.log(
  `SEED=${seed} VOUCHERS=${vouchers} CHANNELS=${channels} KILLS=${kills} ENGINE=${engine}`,
);
try {
  const report = await runChannelFaults({
    ...{ seed, vouchers, channels, kills, secondsPerBlock },
    postgresUrl: (await postgres?.createDatabase())?.url,
    processes: environment.PROCESSES ?? (postgres === undefined ? 1 : 3),
  });
  console.log(summariseChannels(report));
  if (report.violations.length > 0) process.exitCode = 1;
} finally {
  await postgres?.stop();
}
