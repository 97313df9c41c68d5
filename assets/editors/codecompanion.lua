-- An ACP adapter for CodeCompanion: adapters.acp.zcode
return function()
  local helpers = require("codecompanion.adapters.acp.helpers")
  return {
    name = "zcode",
    formatted_name = "ZCode",
    type = "acp",
    roles = { llm = "assistant", user = "user" },
    commands = { default = { "zcode-acp", "serve" } },
    defaults = { timeout = 20000 },
    parameters = {
      protocolVersion = 1,
      clientCapabilities = { fs = { readTextFile = true, writeTextFile = true } },
      clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
    },
    handlers = {
      setup = function() return true end,
      form_messages = function(self, messages, capabilities)
        return helpers.form_messages(self, messages, capabilities)
      end,
      on_exit = function() end,
    },
  }
end
