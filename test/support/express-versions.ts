import { createRequire } from "node:module";
import express from "express";

// Express 4 brings no types of its own, and is used as Express 5 is.
const express4: typeof express = createRequire(import.meta.url)("express4");

/** Both versions of Express that are supported. */
export const expressVersions = [
  { name: "Express 4", express: express4 },
  { name: "Express 5", express },
] as const;
