// nodemailer composes each letter and sends it through its pool, as its documentation shows.
//   node nodemailer_pool.js PORT COUNT CONNECTIONS LETTER.json
import { readFileSync } from "node:fs";
import nodemailer from "nodemailer";

const [port, count, connections, letterFile] = process.argv.slice(2);
const letter = JSON.parse(readFileSync(letterFile, "utf8"));
const names = ["Anna", "Борис", "Zoë Müller", "Дмитрий Иванов", "José", "Elena", "O'Neill", "Мария", "Jan", "Ольга"];
const variable = /\{\{ *name[^}]*\}\}/g;

const transport = nodemailer.createTransport({
  host: "127.0.0.1",
  port: Number(port),
  pool: true,
  maxConnections: Number(connections),
  maxMessages: Infinity,
  ignoreTLS: true,
});

const send = (number) => {
  const name = `${names[number % names.length]} ${number % 1000}`;
  const address = `reader${String(number).padStart(7, "0")}@bench.example`;
  return transport.sendMail({
    from: "news@bench.example",
    to: { name, address },
    subject: letter.subject.replace(variable, name),
    text: letter.text.replace(variable, name),
    html: letter.html.replace(variable, name),
  });
};

// A few more in hand than there are connections, so that none of them waits for us.
const inHand = 2 * Number(connections);
const began = process.hrtime.bigint();
let next = 0;
const lane = async () => {
  while (next < Number(count)) await send(next++);
};
await Promise.all(Array.from({ length: inHand }, lane));
const seconds = Number(process.hrtime.bigint() - began) / 1e9;
transport.close();
console.log(JSON.stringify({ sent: next, seconds }));
