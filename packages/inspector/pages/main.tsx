import "@coinslot/pages/tokens.css";
import "./main.css";
import "./sequence.css";
import "./leg-view.css";
import { render } from "preact";
import { App } from "./app.tsx";

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
