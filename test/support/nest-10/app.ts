import "reflect-metadata";
import * as decorators from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import { createShopModule } from "../nest-shop.ts";

/** The shop as an application of NestJS 10, on Express 4. */
export function createNestApp(files = "files/*"): Promise<NestExpressApplication> {
  const module = createShopModule(decorators, files);
  return NestFactory.create<NestExpressApplication>(module, { logger: false });
}
