// Reads prompts, one JSON object {name, format, doc} a line, and writes {name, format, problems} for each that a provider
// refuses. The rules are those of others: the message types of the SDKs of OpenAI and Anthropic, which are made from their
// published schemas, the validation of the AI SDK before it calls a model, and what the API references say of pairs.
import { createInterface } from 'node:readline';
import Ajv from 'ajv';
import { generateText } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { createGenerator } from 'ts-json-schema-generator';

function schema(path, type) {
  const made = createGenerator({ path: new URL('node_modules/' + path, import.meta.url).pathname, type, skipTypeCheck: true, additionalProperties: true }).createSchema(type);
  const validate = new Ajv({ strict: false, validateFormats: false, logger: false }).compile(made);
  return (v) => validate(v) ? [] : [`not a ${type}: ${JSON.stringify(v).slice(0, 300)}`];
}
const chatMessage = schema('openai/resources/chat/completions/completions.d.ts', 'ChatCompletionMessageParam');
const responsesItem = schema('openai/resources/responses/responses.d.ts', 'ResponseInputItem');
const anthropicMessage = schema('@anthropic-ai/sdk/resources/messages/messages.d.ts', 'MessageParam');

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const model = new MockLanguageModelV3({
  doGenerate: async () => ({ finishReason: { unified: 'stop', raw: 'stop' }, usage, content: [{ type: 'text', text: 'ok' }], warnings: [] }),
});

const reasoning = ['thinking', 'redacted_thinking', 'reasoning'];
const list = (content) => typeof content === 'string' ? [{ type: 'text', text: content }] : content ?? [];
const twice = (ids) => ids.filter((id, i) => ids.indexOf(id) < i);

// Calls of a message and their results: all of them, in the messages directly behind it. calls and answers return ids. Calls at
// the end may still wait.
function pairs(messages, calls, answers) {
  const problems = [];
  let open = new Set();
  messages.forEach((m, i) => {
    const results = answers(m);
    for (const id of results) if (!open.delete(id)) problems.push(`${i}: result of ${id} without its call`);
    if (results.length > 0 && !m.ends) return;
    for (const id of open) problems.push(`${i}: before it, call ${id} has no result`);
    const ids = calls(m);
    for (const id of twice(ids)) problems.push(`${i}: two calls ${id}`);
    open = new Set(ids);
  });
  return problems;
}

// The messages up to calls at the end that wait, without reasoning alone behind these: more may come of it.
function upToCalls(messages) {
  const alone = (m) => m.role === 'assistant' && !m.tool_calls && list(m.content).some((p) => reasoning.includes(p.type)) && list(m.content).every((p) => reasoning.includes(p.type) || p.text?.trim() === '');
  const last = messages.findLastIndex((m) => !alone(m));
  return messages[last]?.tool_calls ? messages.slice(0, last + 1) : messages;
}

function chat({ messages }) {
  const problems = messages.flatMap((m) => {
    const { id, created_at, source_id, ...body } = m;
    if (Array.isArray(body.content)) { // which of them gateways take, and the schema does not have
      body.content = body.content.filter((p) => !reasoning.includes(p.type));
      if (body.content.length === 0) body.content = null;
    }
    return chatMessage(body);
  });
  const calls = (m) => m.role === 'assistant' ? m.tool_calls?.map((c) => c.id) ?? (m.function_call ? [''] : []) : [];
  return problems.concat(pairs(upToCalls(messages), calls, (m) => m.role === 'tool' ? [m.tool_call_id] : m.role === 'function' ? [''] : []));
}

// The messages as the AI SDK has them, without calls at the end that wait for results. It knows no legacy calls.
function modelMessages(messages) {
  const names = {};
  messages = upToCalls(messages);
  let last = messages.length - 1;
  while (last >= 0 && messages[last].role === 'tool') last--;
  if (last >= 0 && (messages[last].tool_calls?.length ?? 0) > messages.length - 1 - last) messages = messages.slice(0, last);
  const text = (content) => list(content).filter((p) => p.type === 'text').map((p) => ({ type: 'text', text: p.text }));
  return messages.map((m) => {
    switch (m.role) {
      case 'system': case 'developer': return { role: 'system', content: text(m.content).map((p) => p.text).join('') };
      case 'tool': return { role: 'tool', content: [{ type: 'tool-result', toolCallId: m.tool_call_id, toolName: names[m.tool_call_id] ?? 'x', output: { type: 'text', value: text(m.content).map((p) => p.text).join('') } }] };
      case 'user': return { role: 'user', content: text(m.content) };
    }
    for (const c of m.tool_calls ?? []) names[c.id] = c.function?.name ?? 'x';
    return { role: m.role, content: [...text(m.content), ...(m.tool_calls ?? []).map((c) => ({ type: 'tool-call', toolCallId: c.id, toolName: names[c.id], input: {} }))] };
  });
}

async function aiSDK({ messages }) {
  if (messages.some((m) => m.role === 'function' || m.function_call)) return [];
  const given = modelMessages(messages);
  return generate(given);
}

async function generate(messages) {
  if (messages.length === 0) return [];
  try {
    await generateText({ model, messages, allowSystemInMessages: true });
    return [];
  } catch (e) {
    return [`AI SDK: ${e.name}: ${String(e.message).slice(0, 200)}`];
  }
}

function responses({ input }) {
  const problems = input.flatMap((item) => {
    // The API takes what an assistant said without an id and annotations, which the types demand.
    if (item.type === 'message' && item.role === 'assistant' && Array.isArray(item.content)) {
      item = { id: 'msg', status: 'completed', ...item, content: item.content.map((p) => p.type === 'output_text' ? { annotations: [], ...p } : p) };
    }
    return responsesItem(item);
  });
  const outputs = (i) => i.type.endsWith('_call_output') ? [i.call_id] : [];
  const calls = (i) => i.type.endsWith('_call') && i.call_id ? [i.call_id] : [];
  const waiting = new Set();
  let reasoned = false;
  const seen = [];
  input.forEach((item, i) => {
    const answers = outputs(item);
    for (const id of answers) if (!waiting.delete(id)) problems.push(`${i}: output of ${id} without its call`);
    const written = answers.length === 0 && (item.type !== 'message' || item.role === 'assistant');
    if (!written && answers.length === 0) for (const id of waiting) problems.push(`${i}: before it, call ${id} has no output`);
    for (const id of calls(item)) {
      if (seen.includes(id)) problems.push(`${i}: two calls ${id}`);
      seen.push(id);
      waiting.add(id);
    }
    if (item.type === 'reasoning') {
      reasoned = true;
      const next = input.slice(i + 1).find((x) => x.type !== 'reasoning');
      if (!next || outputs(next).length > 0 || next.type === 'message' && next.role !== 'assistant') problems.push(`${i}: reasoning without what it was for`);
    } else if (!written) {
      reasoned = false;
    } else if (/^(msg|fc|ctc)_/.test(item.id ?? '') && !reasoned) {
      problems.push(`${i}: ${item.id} without its reasoning`);
    }
  });
  return problems;
}

function anthropic({ messages }) {
  const problems = messages.flatMap(anthropicMessage);
  const blocks = (m, type) => list(m.content).filter((b) => b.type === type);
  if (messages.length > 0 && messages[0].role !== 'user') problems.push('0: not of the user');
  messages.forEach((m, i) => {
    if (i > 0 && m.role === messages[i - 1].role) problems.push(`${i}: ${m.role} again`);
    const content = list(m.content);
    if (content.length === 0) problems.push(`${i}: empty`);
    if (blocks(m, 'text').some((b) => b.text.trim() === '')) problems.push(`${i}: blank text`);
    if (blocks(m, 'tool_result').some((b) => list(b.content ?? []).some((p) => p.type === 'text' && Array.isArray(b.content) && p.text.trim() === ''))) problems.push(`${i}: blank text in a result`);
    if (blocks(m, 'tool_result').some((b) => b.is_error && list(b.content).every((p) => p.type === 'text' && p.text.trim() === ''))) problems.push(`${i}: a failure without content`);
    const firstText = content.findIndex((b) => b.type !== 'tool_result');
    if (firstText >= 0 && content.slice(firstText).some((b) => b.type === 'tool_result')) problems.push(`${i}: a result behind other content`);
  });
  const ids = messages.flatMap((m) => blocks(m, 'tool_use').map((b) => b.id));
  for (const id of ids) if (!/^[a-zA-Z0-9_-]+$/.test(id)) problems.push(`call ${id}: not an id`);
  for (const id of twice(ids)) problems.push(`two calls ${id}`);
  // Calls at the end may wait for results, as in modelMessages.
  const last = messages.findLastIndex((m) => blocks(m, 'tool_use').length > 0);
  const after = messages.slice(last + 1).flatMap((m) => list(m.content));
  if (last >= 0 && after.every((b) => b.type === 'tool_result') && after.length < blocks(messages[last], 'tool_use').length) messages = messages.slice(0, last);
  return problems.concat(pairs(messages.map((m) => ({ ...m, ends: true })), (m) => blocks(m, 'tool_use').map((b) => b.id), (m) => blocks(m, 'tool_result').map((b) => b.tool_use_id)));
}

// What the writer for the SDK makes of them, also without calls at the end that wait.
function written({ messages }) {
  const parts = (m, type) => list(m.content).filter((p) => p.type === type);
  let last = messages.length - 1;
  while (last >= 0 && messages[last].role === 'tool') last--;
  while (last >= 0 && messages[last].role === 'assistant' && list(messages[last].content).every((p) => p.type === 'reasoning' || p.text?.trim() === '')) last--;
  const answers = messages.slice(last + 1).flatMap((m) => parts(m, 'tool-result'));
  if (last >= 0 && parts(messages[last], 'tool-call').length > answers.length) messages = messages.slice(0, last);
  return generate(messages);
}

const rules = {
  'ai-sdk': written,
  chat: async (doc) => chat(doc).concat(await aiSDK(doc)),
  responses,
  anthropic,
};
let prompts = 0;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { name, format, doc } = JSON.parse(line);
  prompts++;
  const problems = await rules[format](doc);
  if (problems.length > 0) console.log(JSON.stringify({ name, format, problems: problems.slice(0, 5) }));
}
console.log(JSON.stringify({ prompts }));
