;; A configuration for agent-shell: M-x my/zcode
(require 'agent-shell)

(defun my/zcode ()
  "Chat with ZCode."
  (interactive)
  (agent-shell-start
   :config (agent-shell-make-agent-config
            :identifier 'zcode
            :mode-line-name "ZCode"
            :buffer-name "ZCode"
            :shell-prompt "ZCode> "
            :shell-prompt-regexp "ZCode> "
            :client-maker (lambda (buffer)
                            (agent-shell--make-acp-client
                             :command "zcode-acp"
                             :command-params '("serve")
                             :context-buffer buffer)))))
