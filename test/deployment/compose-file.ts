import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import * as z from "zod";
import { root } from "../docs/code-block.ts";

const condition = z.enum(["service_started", "service_healthy", "service_completed_successfully"]);

const service = z.object({
  /** None: in all of them, and without one. */
  profiles: z.array(z.string()).default([]),
  build: z.object({ context: z.literal("."), target: z.string() }).optional(),
  image: z.string().optional(),
  init: z.boolean().optional(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  restart: z.string(),
  stop_grace_period: z.string().optional(),
  ports: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
  secrets: z.array(z.string()).default([]),
  depends_on: z.record(z.string(), z.object({ condition })).default({}),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  entrypoint: z.array(z.string()).optional(),
  command: z.array(z.string()).optional(),
  networks: z
    .strictObject({ default: z.strictObject({ aliases: z.array(z.string()) }) })
    .optional(),
});

const composeFile = z.object({
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.unknown()),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});

/** A service of docker-compose.yml, with its inherited members. */
export type ComposeService = z.output<typeof service>;

/** docker-compose.yml as it is written, with its anchors followed. */
export function parseComposeFile(): unknown {
  return parse(readFileSync(join(root, "docker-compose.yml"), "utf8"), { merge: true });
}

/** The same, read in the form that this project gives it. */
export function readComposeFile(): z.output<typeof composeFile> {
  return composeFile.parse(parseComposeFile());
}
