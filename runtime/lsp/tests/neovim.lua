-- Writes to result.json what Neovim gets from the server for the buffer.
local result = {}

local function work()
  local buffer = vim.api.nvim_get_current_buf()
  local published = 0
  local handler = vim.lsp.handlers["textDocument/publishDiagnostics"]
  local client = vim.lsp.start_client({
    name = "rtc",
    cmd = { vim.env.LANGUAGE_SERVER },
    root_dir = vim.fn.getcwd(),
    -- Without a pause for more keys.
    flags = { debounce_text_changes = 0 },
    handlers = {
      ["textDocument/publishDiagnostics"] = function(...)
        handler(...)
        published = published + 1
      end,
    },
  })
  assert(client, "the server does not start")
  vim.lsp.buf_attach_client(buffer, client)

  local function wait(count)
    assert(vim.wait(60000, function() return published >= count end, 10), "no diagnostics")
    local shown = {}
    for _, d in ipairs(vim.diagnostic.get(buffer)) do
      table.insert(shown, { lnum = d.lnum, col = d.col, end_col = d.end_col, source = d.source, severity = d.severity })
    end
    return shown
  end
  local function ask(method, params)
    local answers = assert(vim.lsp.buf_request_sync(buffer, method, params, 60000))
    assert(answers[client] and not answers[client].err, method)
    return answers[client].result
  end
  local function at(line, character)
    return { textDocument = vim.lsp.util.make_text_document_params(buffer), position = { line = line, character = character } }
  end

  result.before = wait(1)

  local action = at(7, 0)
  action.range = { start = { line = 7, character = 43 }, ["end"] = { line = 7, character = 43 } }
  action.context = { diagnostics = {} }
  local first = ask("textDocument/codeAction", action)[1]
  result.title = first.title
  vim.lsp.util.apply_workspace_edit(first.edit, "utf-16")
  result.line = vim.api.nvim_buf_get_lines(buffer, 7, 8, false)[1]
  local after = wait(2)
  result.after = #after == 0 and vim.empty_dict() or after

  local started = vim.loop.hrtime()
  result.hover = ask("textDocument/hover", at(8, 5)).contents.value
  result.hover_ms = (vim.loop.hrtime() - started) / 1e6
  local there = ask("textDocument/definition", at(9, 22))[1]
  result.definition = { uri = there.uri, line = there.range.start.line }
end

local ok, problem = pcall(work)
if not ok then
  result.error = problem
end
local text = vim.fn.json_encode(result)
local file = assert(io.open("result.json", "w"))
file:write(text)
file:close()
vim.cmd("qa!")
