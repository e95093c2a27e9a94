/** The script of the API reference. Text from the document is only ever set as text, never as markup. */
export const docsScript = String.raw`
const verbs = ['get', 'post', 'put', 'patch', 'delete'];
let spec;

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Words between backticks are code. */
const prose = (text) => text.split('\x60').map((part, index) => (index % 2 ? el('code', {}, part) : part));

const refName = (schema) => (schema && schema.$ref ? schema.$ref.split('/').pop() : null);
const resolve = (schema) => (refName(schema) ? spec.components.schemas[refName(schema)] : schema) || {};

function range(min, max) {
  if (max === Number.MAX_SAFE_INTEGER) max = undefined;
  if (min !== undefined && max !== undefined) return min + ' to ' + max;
  if (max !== undefined) return 'at most ' + max;
  return min ? 'at least ' + min : '';
}

function kindOf(schema) {
  const real = resolve(schema);
  if (real.enum) return 'one of ' + real.enum.join(', ');
  if (real.type === 'array') return 'list of ' + (refName(real.items) || kindOf(real.items));
  const parts = [refName(schema) || [real.type || 'any'].flat().join(' or ')];
  if (real.format) parts.push(real.format);
  const length = range(real.minLength, real.maxLength);
  if (length) parts.push(length + ' characters');
  const bounds = range(real.minimum, real.maximum);
  if (bounds) parts.push(bounds);
  if (real.default !== undefined) parts.push('default ' + JSON.stringify(real.default));
  return parts.join(' · ');
}

function inner(schema) {
  const real = resolve(schema);
  const target = real.type === 'array' ? resolve(real.items) : real;
  return target.properties ? target : null;
}

function field(name, schema, mark, note, depth, inReply) {
  const nested = inner(schema);
  const row = el('div', { class: 'field' },
    el('div', {}, el('code', {}, name), mark ? el('span', { class: mark }, mark) : null,
      el('span', { class: 'kind' }, kindOf(schema))),
    el('div', {}, prose(note || describe(schema))));
  if (!nested) return [row];
  const box = el('details', { class: 'more' }, el('summary', {}, 'Fields of ' + name));
  box.open = depth === 0;
  const fill = () => {
    if (box.children.length === 1) box.append(el('div', { class: 'nest' }, fields(nested, depth + 1, inReply)));
  };
  box.addEventListener('toggle', fill);
  if (box.open) fill();
  return [row, box];
}

const describe = (schema) => {
  const real = resolve(schema);
  return real.description || (real.type === 'array' && resolve(real.items).description) || '';
};

function fields(schema, depth, inReply) {
  const real = resolve(schema);
  const required = real.required || [];
  const markOf = (name) => (required.includes(name) ? (inReply ? null : 'required') : (inReply ? 'optional' : null));
  return Object.entries(real.properties || {})
    .map(([name, value]) => field(name, value, markOf(name), null, depth, inReply));
}

function sample(schema) {
  const real = resolve(schema);
  if (real.enum) return real.enum[0];
  if (real.type === 'array') return [sample(real.items)];
  if (real.type === 'integer' || real.type === 'number') return real.minimum || 0;
  if (real.type === 'boolean') return true;
  if (real.type !== 'object') return '…';
  const out = {};
  for (const name of real.required || []) out[name] = sample(real.properties[name]);
  return out;
}

function curlFor(path, verb, operation) {
  const needed = (operation.parameters || []).filter((p) => p.in === 'query' && p.required);
  const query = needed.map((p) => p.name + '=…').join('&');
  const url = spec.servers[0].url + path + (query ? '?' + query : '');
  const method = verb === 'get' ? '' : '-X ' + verb.toUpperCase() + ' ';
  const lines = ['curl ' + method + "'" + url + "'", '  -H "authorization: Bearer $CATNAP_API_KEY"'];
  const body = bodySchema(operation);
  if (body) lines.push('  -H "content-type: application/json"', "  -d '" + JSON.stringify(sample(body)) + "'");
  return lines.join(' \\\n');
}

const bodySchema = (operation) => operation.requestBody && operation.requestBody.content['application/json'].schema;

function copyButton(text) {
  const button = el('button', { class: 'copy', type: 'button' }, 'Copy');
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  });
  return button;
}

function detail(path, verb, operation) {
  const box = el('div', { class: 'detail' }, operation.description ? el('p', {}, prose(operation.description)) : null);
  const parameters = operation.parameters || [];
  for (const [place, title] of [['path', 'Path'], ['query', 'Query'], ['header', 'Headers']]) {
    const here = parameters.filter((parameter) => parameter.in === place);
    const rows = here.map((p) => field(p.name, p.schema, p.required ? 'required' : null, p.description, 1));
    if (rows.length > 0) box.append(el('h3', {}, title), el('div', {}, rows));
  }
  const body = bodySchema(operation);
  if (body) box.append(el('h3', {}, 'Body'), el('div', {}, fields(body, 0, false)));
  box.append(el('h3', {}, 'Replies'));
  for (const [status, reply] of Object.entries(operation.responses)) {
    const schema = reply.content && reply.content['application/json'] && reply.content['application/json'].schema;
    box.append(el('div', { class: 'status' }, status === 'default' ? 'any error' : status));
    const isList = schema && resolve(schema).type === 'array';
    const rows = isList ? field('items', schema, null, null, 1, true) : fields(schema, 1, true);
    if (schema) box.append(el('div', {}, rows));
  }
  const command = curlFor(path, verb, operation);
  box.append(el('h3', { class: 'bar' }, 'Try it', copyButton(command)), el('pre', {}, el('code', {}, command)));
  return box;
}

function article(path, verb, operation) {
  const node = el('article', { id: operation.operationId });
  const toggle = () => {
    const open = node.querySelector('.detail');
    if (open) open.hidden = !open.hidden;
    else node.append(detail(path, verb, operation));
    head.setAttribute('aria-expanded', String(!(open && open.hidden)));
  };
  const press = (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    toggle();
  };
  const attributes = { tabindex: '0', role: 'button', 'aria-expanded': 'false', onclick: toggle, onkeydown: press };
  const head = el('header', attributes, el('span', { class: 'verb ' + verb }, verb.toUpperCase()), el('code', {}, path),
    el('span', { class: 'sum' }, operation.summary));
  node.append(head);
  node.openUp = () => {
    const shown = node.querySelector('.detail');
    if (!shown || shown.hidden) toggle();
  };
  return node;
}

function draw() {
  const content = document.getElementById('content');
  const list = document.getElementById('list');
  document.getElementById('version').textContent = spec.info.version;
  content.replaceChildren(el('h1', {}, spec.info.title), el('p', { class: 'lead' }, spec.info.description),
    el('p', {}, el('code', {}, spec.servers[0].url)));
  for (const tag of spec.tags) {
    const group = el('div', {}, el('h2', {}, tag.name));
    content.append(el('h2', { class: 'tag' }, tag.name), el('p', { class: 'tagline' }, tag.description));
    for (const [path, item] of Object.entries(spec.paths)) {
      for (const verb of verbs) {
        const operation = item[verb];
        if (!operation || !(operation.tags || []).includes(tag.name)) continue;
        content.append(article(path, verb, operation));
        const words = (verb + ' ' + path + ' ' + operation.summary).toLowerCase();
        const link = { class: 'op', href: '#' + operation.operationId, 'data-words': words };
        group.append(el('a', link, el('span', { class: 'verb ' + verb }, verb.toUpperCase()), operation.summary));
      }
    }
    list.append(group);
  }
  openFromHash();
}

function openFromHash() {
  const node = document.getElementById(location.hash.slice(1));
  if (node && node.openUp) { node.openUp(); node.scrollIntoView(); }
}

document.getElementById('filter').addEventListener('input', (event) => {
  const wanted = event.target.value.toLowerCase();
  for (const link of document.querySelectorAll('a.op')) link.hidden = !link.dataset.words.includes(wanted);
  for (const group of document.getElementById('list').children) {
    group.hidden = !group.querySelector('a.op:not([hidden])');
  }
});
window.addEventListener('hashchange', openFromHash);
fetch('openapi.json').then((reply) => reply.json()).then((document_) => { spec = document_; draw(); })
  .catch(() => { document.getElementById('content').textContent = 'The API description could not be loaded.'; });
`;
