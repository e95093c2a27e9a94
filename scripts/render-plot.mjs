/** A picture of lines on two logarithmic axes, as SVG that reads on light and dark pages; and their exponents. Pure. */

const [width, height] = [720, 380];
const margin = { left: 64, right: 16, top: 30, bottom: 92 };
/** Told apart without colour too, by their marks. */
const styles = [
  ['#3366cc', 'circle'],
  ['#cc6622', 'square'],
  ['#2a8a4a', 'diamond'],
  ['#aa3377', 'circle'],
  ['#777777', 'square'],
  ['#1a8fa0', 'diamond'],
  ['#8a6d1a', 'circle'],
  ['#5544aa', 'square'],
];

/** The exponent of the power law that fits the points best; 0 is flat, 1 grows in proportion. */
export function fitPower(points) {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(y)]);
  const mean = (place) => logs.reduce((sum, point) => sum + point[place], 0) / logs.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const across = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  return across / logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
}

/** `lines` is a list of [name, points]; every value must be above zero. */
export function renderPlot({ lines, of, unit }) {
  const points = lines.flatMap(([, found]) => found);
  const x = axis(
    points.map(([value]) => value),
    margin.left,
    width - margin.right,
  );
  const y = axis(
    points.map(([, value]) => value),
    height - margin.bottom,
    margin.top,
  );
  const marks = [
    ...x.ticks.map((value) => tickX(x.at(value), value)),
    ...y.ticks.map((value) => tickY(y.at(value), value)),
    text((margin.left + width - margin.right) / 2, height - margin.bottom + 36, of, 'middle'),
    text(margin.left, margin.top - 14, unit, 'end'),
    ...lines.flatMap(([name, found], place) => drawLine(name, found, place, { x, y })),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<title>${escaped(`${unit} by ${of}: ${lines.map(([name]) => name).join('; ')}`)}</title>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${marks.join('\n')}
</svg>
`;
}

function axis(values, from, to) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const at = (value) => from + ((Math.log10(value) - low) / (high - low)) * (to - from);
  return { at, ticks: Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step)) };
}

function drawLine(name, points, place, { x, y }) {
  const [colour, shape] = styles[place % styles.length];
  const spots = points.map(([at, value]) => [x.at(at), y.at(value)]);
  const path = spots.map(([left, top]) => `${left.toFixed(1)},${top.toFixed(1)}`).join(' ');
  const columns = 2;
  const left = margin.left + (place % columns) * ((width - margin.left) / columns);
  const top = height - margin.bottom + 54 + Math.floor(place / columns) * 14;
  return [
    `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="1.5"/>`,
    ...spots.map(([a, b]) => drawMark(shape, a, b, colour)),
    drawMark(shape, left, top - 4, colour),
    text(left + 10, top, name, 'start'),
  ];
}

function drawMark(shape, left, top, colour) {
  const [a, b] = [left.toFixed(1), top.toFixed(1)];
  if (shape === 'circle') return `<circle cx="${a}" cy="${b}" r="4" fill="${colour}"/>`;
  const turn = shape === 'diamond' ? ` transform="rotate(45 ${a} ${b})"` : '';
  return `<rect x="${(left - 3.5).toFixed(1)}" y="${(top - 3.5).toFixed(1)}" width="7" height="7" fill="${colour}"${turn}/>`;
}

function tickX(left, value) {
  const bottom = height - margin.bottom;
  const line = `<path d="M${left.toFixed(1)} ${margin.top}V${bottom}" stroke="#dddddd"/>`;
  return `${line}${text(left, bottom + 16, label(value), 'middle')}`;
}

function tickY(top, value) {
  const line = `<path d="M${margin.left} ${top.toFixed(1)}H${width - margin.right}" stroke="#dddddd"/>`;
  return `${line}${text(margin.left - 6, top + 4, label(value), 'end')}`;
}

function label(value) {
  return value.toLocaleString('en-US', { maximumFractionDigits: 3 });
}

function text(left, top, words, anchor) {
  const place = `x="${left.toFixed(1)}" y="${top.toFixed(1)}" text-anchor="${anchor}"`;
  return `<text ${place} fill="#333333">${escaped(words)}</text>`;
}

const escaped = (words) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
