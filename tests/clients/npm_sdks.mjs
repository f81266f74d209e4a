// What applications on the npm SDKs are handed of each case: one JSON line a case and client. `sdks.py` starts it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { generateText, jsonSchema, streamText, tool } from "ai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";

const require = createRequire(import.meta.url);
const { base, tools, cases } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const version = (name) => JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url), "utf8")).version;
const schema = { type: "object", properties: {}, additionalProperties: true };
const parsed = (text) => {
  try {
    return typeof text === "string" ? JSON.parse(text || "{}") : text;
  } catch {
    return "unreadable"; // no tool runs with it
  }
};

// Each: wire, package, and a function that fills `calls`; whatever it throws, what is in `calls` was handed over.
const messages = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] };
const asked = { model: "m", messages: [{ role: "user", content: "x" }] };
const uses = (content) => (content ?? []).filter((block) => block?.type === "tool_use" || block?.type === "mcp_tool_use").map((block) => [block.name, block.input]);
const entries = (message) => [
  ...(message?.tool_calls ?? []).map((call) => [call.function?.name ?? call.custom?.name, parsed(call.function?.arguments ?? call.custom?.input)]),
  ...(message?.function_call ? [[message.function_call.name, parsed(message.function_call.arguments)]] : []),
];
const items = (output) => (output ?? []).filter((item) => /call$/.test(item?.type ?? "") && item.name).map((item) => [item.name, parsed(item.arguments ?? item.input)]);

const sdk = (url) => new Anthropic({ apiKey: "k", baseURL: url, maxRetries: 0 });
const openai = (url) => new OpenAI({ apiKey: "k", baseURL: url, maxRetries: 0 });
const runnable = (calls) =>
  Object.fromEntries(
    tools.map((name) => [
      name,
      tool({ inputSchema: jsonSchema(schema), execute: (input) => (calls.push([name, input]), "done") }),
    ]),
  );
const generated = async (model, whole, calls) => {
  const options = { model, prompt: "x", tools: runnable(calls), maxRetries: 0, onError: () => {} };
  if (whole) return generateText(options);
  for await (const part of streamText(options).fullStream) void part;
};

const clients = [
  ["messages", "@anthropic-ai/sdk", "final message", async (url, whole, calls) => {
    const client = sdk(url);
    const message = whole ? await client.messages.create(messages) : await client.messages.stream(messages).finalMessage();
    calls.push(...uses(message.content));
  }],
  ["messages", "@anthropic-ai/sdk", "as blocks end", async (url, whole, calls) => {
    if (whole) return calls.push(...uses((await sdk(url).beta.messages.create(messages)).content));
    const stream = sdk(url).messages.stream(messages);
    stream.on("contentBlock", (block) => calls.push(...uses([block])));
    await stream.done();
  }],
  ["chat", "openai", "final completion", async (url, whole, calls) => {
    const chat = openai(url).chat.completions;
    const done = whole ? await chat.create(asked) : await chat.stream(asked).finalChatCompletion();
    for (const choice of done.choices) calls.push(...entries(choice.message));
  }],
  ["chat", "openai", "chunks by index", async (url, whole, calls) => {
    const chat = openai(url).chat.completions;
    if (whole) return (await chat.create(asked)).choices.forEach((choice) => calls.push(...entries(choice.message)));
    const kept = new Map();
    try {
      for await (const chunk of await chat.create({ ...asked, stream: true }))
        for (const choice of chunk.choices ?? [])
          for (const entry of choice.delta?.tool_calls ?? []) {
            const key = `${choice.index} ${entry.index}`;
            const call = kept.get(key) ?? ["", ""];
            kept.set(key, [call[0] + (entry.function?.name ?? ""), call[1] + (entry.function?.arguments ?? "")]);
          }
    } finally {
      for (const [name, text] of kept.values()) calls.push([name, parsed(text)]);
    }
  }],
  ["responses", "openai", "final response", async (url, whole, calls) => {
    const api = openai(url).responses;
    const done = whole ? await api.create({ model: "m", input: "x" }) : await api.stream({ model: "m", input: "x" }).finalResponse();
    calls.push(...items(done.output));
  }],
  ["responses", "openai", "as items are done", async (url, whole, calls) => {
    const api = openai(url).responses;
    if (whole) return calls.push(...items((await api.create({ model: "m", input: "x" })).output));
    for await (const event of await api.create({ model: "m", input: "x", stream: true }))
      if (event.type === "response.output_item.done") calls.push(...items([event.item]));
  }],
  ["messages", "@ai-sdk/anthropic", "executes", (url, whole, calls) => generated(createAnthropic({ apiKey: "k", baseURL: `${url}/v1` })("m"), whole, calls)],
  ["chat", "@ai-sdk/openai", "chat, executes", (url, whole, calls) => generated(createOpenAI({ apiKey: "k", baseURL: url }).chat("m"), whole, calls)],
  ["responses", "@ai-sdk/openai", "responses, executes", (url, whole, calls) => generated(createOpenAI({ apiKey: "k", baseURL: url }).responses("m"), whole, calls)],
];

process.on("unhandledRejection", () => {}); // of streams that end in an error that was told already
process.on("uncaughtException", () => {});
for (const { id, wire, whole, which } of cases)
  for (const [its, name, how, ask] of clients) {
    if (its !== wire) continue;
    const calls = [];
    let error = "";
    try {
      await Promise.race([
        ask(`${base}/${id}/${which}`, whole, calls),
        new Promise((_, reject) => setTimeout(() => reject(new Error("no end within 10 s")), 10000).unref()),
      ]);
    } catch (problem) {
      error = String(problem).slice(0, 200);
    }
    console.log(JSON.stringify({ id, which, client: `${name} (${how})`, version: version(name), calls, error }));
  }
process.exit(0);
