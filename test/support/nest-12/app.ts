import "reflect-metadata";
import * as decorators from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import { createShopModule } from "../nest-shop.ts";

/** The shop as an application of NestJS 12, on Express 5. */
export function createNestApp(files = "files/*rest"): Promise<NestExpressApplication> {
  const module = createShopModule(decorators, files);
  return NestFactory.create<NestExpressApplication>(module, { logger: false });
}
