import * as z from "zod";
import { documented } from "./documentation.ts";

const wellOrNot = z.enum(["healthy", "unhealthy"]);
const check = documented(z.object({ status: wellOrNot }), { id: "Check" });
const count = z.int().min(0);

/** The state of the whole service, and of each chain and token. */
export const healthBody = documented(
  z.object({
    status: z.enum(["healthy", "degraded", "unhealthy"]),
    timestamp: z.iso.datetime(),
    summary: z.object({ healthy: count, unhealthy: count, total: count }),
    checks: z.object({
      database: check,
      indexers: documented(
        z.record(
          z.string(),
          z.object({
            status: wellOrNot,
            rpcLatencyMs: documented(z.number().min(0).optional(), {
              description: "Latency of the chain's endpoint, lately.",
            }),
            lag: documented(z.number().min(0).optional(), {
              description: "Blocks between the chain's head and the newest indexed one.",
            }),
            indexedTo: documented(z.int().min(0).optional(), {
              description: "Up to this block everything was read.",
            }),
            verifiedTo: documented(z.int().min(0).optional(), {
              description:
                "Up to this block everything was read twice, or proven. Nothing above it is final.",
            }),
            db: check,
          }),
        ),
        { description: "By <blockchain>:<token>." },
      ),
    }),
  }),
  { id: "Health", description: "The state of the service, and of each chain and token." },
);

export type HealthBody = z.infer<typeof healthBody>;
