import "reflect-metadata";
import { Controller, Get, Module, Param } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";

/** What is sold. */
export const content = "the content that is sold";

class Shop {
  file(): string {
    return content;
  }

  report(id: string): string {
    return `${content}: ${id}`;
  }

  free(): string {
    return "free";
  }
}

class AppModule {}

// Decorators as the functions that they are.
function onGet(path: string, method: keyof Shop): void {
  const descriptor = Object.getOwnPropertyDescriptor(Shop.prototype, method) ?? {};
  Get(path)(Shop.prototype, method, descriptor);
}
onGet("files/*rest", "file");
onGet("reports/:id", "report");
onGet("free", "free");
Param("id")(Shop.prototype, "report", 0);
Controller()(Shop);
Module({ controllers: [Shop] })(AppModule);

/** An application of NestJS 12, with files under a wildcard, reports by their id, and a free route. */
export function createNestApp(): Promise<NestExpressApplication> {
  return NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
}
