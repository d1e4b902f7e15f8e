/** A document of the repository, as text. */
declare module "*.md?raw" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: Vite exports a text by default
  export default text;
}
