/** The content for sale. */
export const content = "the content that is sold";

/** The decorators of `@nestjs/common`, of any of its versions. */
interface NestDecorators {
  Controller(): ClassDecorator;
  Get(path: string): MethodDecorator;
  Module(metadata: { controllers: (new () => object)[] }): ClassDecorator;
  Param(name: string): ParameterDecorator;
}

/**
 * Makes the module of a shop: files under a wildcard, reports by their id, and a free route.
 *
 * @param files the wildcard, as the Express below reads it
 */
export function createShopModule(
  { Controller, Get, Module, Param }: NestDecorators,
  files: string,
): new () => object {
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
  onGet(files, "file");
  onGet("reports/:id", "report");
  onGet("free", "free");
  Param("id")(Shop.prototype, "report", 0);
  Controller()(Shop);
  Module({ controllers: [Shop] })(AppModule);
  return AppModule;
}
