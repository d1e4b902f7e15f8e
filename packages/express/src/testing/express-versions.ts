import { createRequire } from "node:module";
import express from "express";

/** The tests' use of either Express version. */
export type ExpressModule = typeof express;

// Express 4 brings no types of its own, and is used as Express 5 is.
const express4: ExpressModule = createRequire(import.meta.url)("express4");

/** Both Expresses that are supported, for tests that run on each. */
export const expressVersions: readonly { name: string; express: ExpressModule }[] = [
  { name: "Express 4", express: express4 },
  { name: "Express 5", express },
];
