// The default theme in the reader's own fonts.
export { default } from "vitepress/theme-without-fonts";
