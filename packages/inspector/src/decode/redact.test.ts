import { describe, expect, it } from "vitest";
import { createRedactor } from "./redact.ts";

const secret = "s3cret-of-the-buyer";

describe("a redactor", () => {
  it.each([
    "Private-Token",
    "X-Vault-Token",
    "X-Amz-Security-Token",
    "Ocp-Apim-Subscription-Key",
    "X-Functions-Key",
    "X-Shop-Pin",
  ])("takes the value of the header %s", (name) => {
    const redactor = createRedactor(new Set());
    redactor.learn([[name, secret]]);
    expect(JSON.stringify(redactor.headers([[name, secret]]))).not.toContain(secret);
    expect(redactor.text(`echo ${secret}`)).not.toContain(secret);
  });

  it.each([
    ["in a list", { session: [secret] }],
    ["in an object", { credentials: { user: "u", value: secret } }],
    ["as a number", { password: 8_675_309_042 }],
    ["deeper", { a: [{ cookies: { sid: [secret] } }] }],
  ])("takes a secret of a body that stands %s", (_name, body) => {
    const redactor = createRedactor(new Set());
    const whole = JSON.stringify(body);
    for (const text of [whole, JSON.stringify(body, null, 2), whole.replace(/[\]}]+$/, "")]) {
      const clean = redactor.body(text);
      expect(clean).not.toContain(secret);
      expect(clean).not.toContain("8675309042");
    }
  });

  it("takes a secret wherever it is repeated, beside a list of secrets", () => {
    const body = JSON.stringify({ echo: secret, password: secret, session: [1] });
    expect(createRedactor(new Set()).body(body)).not.toContain(secret);
  });

  it("takes a secret of a form in parts", () => {
    const parts = ["--x", 'Content-Disposition: form-data; name="password"', "", secret];
    const others = ["--x", 'Content-Disposition: form-data; name="city"', "", "Bern", "--x--", ""];
    const clean = createRedactor(new Set()).body([...parts, ...others].join("\r\n"));
    expect(clean).not.toContain(secret);
    expect(clean).toContain("Bern");
  });

  it("takes a secret behind the # of a redirect", () => {
    const redactor = createRedactor(new Set());
    const value = `https://shop.example/done#access_token=${secret}&a=1`;
    expect(JSON.stringify(redactor.headers([["Location", value]]))).not.toContain(secret);
  });

  it("leaves what is no secret as it came", () => {
    const redactor = createRedactor(new Set());
    const body = '{ "token": "0xB8CE", "tokens": [1, 2],\n "key": "city" }';
    expect(redactor.body(body)).toBe(body);
    expect(redactor.headers([["X-Zip", "3000"]])).toEqual([["X-Zip", "3000"]]);
    redactor.learn([["Surrogate-Key", "weather"]]);
    expect(redactor.text("weather")).toBe("weather");
    const terms = '{"authorization":{"from":"0x01"}';
    expect([redactor.body(terms), redactor.body(`${terms}}`)]).toEqual([terms, `${terms}}`]);
  });
});
