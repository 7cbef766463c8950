// Adds the bearer token to the requests of the conformance suite, which has no option for it. Other hosts never get it.
const channels = require("node:diagnostics_channel");

const authorization = `Bearer ${process.env.PALAVER_TOKEN}`;

channels.subscribe("undici:request:create", ({ request }) => {
  if (String(request.origin) === process.env.PALAVER_ORIGIN) request.addHeader("authorization", authorization);
});
channels.subscribe("http.client.request.created", ({ request }) => {
  if (`http://${request.getHeader("host")}` === process.env.PALAVER_ORIGIN) request.setHeader("authorization", authorization);
});
