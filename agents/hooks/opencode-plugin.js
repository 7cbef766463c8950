// @MARK@
import { spawn } from "node:child_process"

const COMMAND = @COMMAND@
const ENVIRONMENT = @ENVIRONMENT@
const EVENTS = @EVENTS@
const WAIT_MS = 6000

/** Return the text of a hook. It is empty if the hook fails or has no text. */
function textOf(event, call) {
  return new Promise((resolve) => {
    const [program, ...args] = COMMAND
    const environment = { ...process.env, ...ENVIRONMENT }
    const options = { env: environment, stdio: ["pipe", "pipe", "ignore"], timeout: WAIT_MS }
    const child = spawn(program, [...args, "hooks", "run", event], options)
    let reply = ""
    child.stdout.on("data", (data) => (reply += data))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      try {
        resolve(JSON.parse(reply).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(call))
  })
}

/** Add the text of Palaver's hooks to a prompt, as a part that the program marks as its own. */
export const Palaver = async ({ client, directory }) => {
  const started = new Set()
  const compacted = new Set()

  async function texts(id, prompt) {
    const call = { session_id: id, cwd: directory, prompt }
    const found = []
    const isNew = !started.has(id)
    started.add(id)
    if (EVENTS.includes("session-start") && (isNew || compacted.delete(id))) {
      // Of a resumed session, Palaver knows if the session already contains the text.
      found.push(await textOf("session-start", { ...call, source: isNew ? "resume" : "compact" }))
    }
    if (EVENTS.includes("prompt")) found.push(await textOf("prompt", call))
    return found.filter(Boolean)
  }

  return {
    event: async ({ event }) => {
      if (event.type === "session.compacted") compacted.add(event.properties.sessionID)
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      try {
        const session = await client.session.get({ path: { id: sessionID } })
        if (session.data?.parentID) return // A sub-agent gets its prompt from its parent.
        const typed = parts.filter((part) => part.type === "text" && !part.synthetic)
        const prompt = typed.map((part) => part.text).join("\n")
        const last = parts.at(-1).id
        for (const [index, text] of (await texts(sessionID, prompt)).entries()) {
          const id = `${last}p${index}` // IDs order the parts of a message.
          parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
        }
      } catch {
        // A hook never disturbs the agent.
      }
    },
  }
}
