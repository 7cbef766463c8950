// Calls the tools of a toolset with the client of the TypeScript SDK, which compares each reply with its output schema.
// Arguments: the program, its arguments, and the calls as JSON. `FIRST` and `SECOND` are the IDs of stored memories.
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

async function main([command, args, calls]) {
  const client = new Client({ name: "typescript-client", version: "0" });
  await client.connect(new StdioClientTransport({ command, args: JSON.parse(args), env: process.env }));
  const { tools } = await client.listTools();
  const stored = [];
  let faults = 0;
  const check = async (name, text, failing) => {
    const given = text.replaceAll("FIRST", stored[0]).replaceAll("SECOND", stored[1]);
    try {
      const result = await client.callTool({ name, arguments: JSON.parse(given) });
      if (Boolean(result.isError) !== failing) throw new Error(result.content[0].text);
      const data = result.structuredContent?.data ?? result.structuredContent;
      const id = data?.id ?? data?.memory_id;
      if (id && !stored.includes(id)) stored.push(id);
    } catch (error) {
      faults += 1;
      console.log(`${name} ${given}: ${error.message}`);
    }
  };
  for (const [name, given] of JSON.parse(calls)) await check(name, JSON.stringify(given), false);
  for (const { name } of tools) await check(name, '{"unknown": 1}', true);
  await client.close();
  console.log(`TypeScript SDK: ${tools.length} tools, ${faults} faults`);
  process.exitCode = faults ? 1 : 0;
}

main(process.argv.slice(2));
