;;; pinfold.el --- Agents' memory, and agents in buffers  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1") (eglot "1.9"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; pinfold as a language server under Eglot: what agents will not read of their memory documents, what
;; is protected, Pin and Unpin, and the file tools of agents on the buffers that are open.
;;
;; Memory lies outside of the project that it belongs to.  So start the gateway in the project, with
;; `pinfold-start' or `pinfold-memory': documents below the memory roots that it reports then
;; belong to that project for Eglot too.
;;
;; Agents written in Emacs Lisp use `pinfold-open', `pinfold-call' and `pinfold-request'.

;;; Code:

(require 'cl-lib)
(require 'eglot)
(require 'project)
(require 'subr-x)

(defgroup pinfold nil
  "Agents' memory, and agents in buffers."
  :group 'tools)

(defcustom pinfold-command '("pinfold" "serve")
  "The program that is the gateway, and its arguments."
  :type '(repeat string))

(defcustom pinfold-options nil
  "`initializationOptions.pinfold', as a property list; nil for none."
  :type 'plist)

(defcustom pinfold-confirm-edits nil
  "Whether to ask before an edit of an agent is made in a buffer.
The question must be answered within `limits.editorSeconds', by default
ten seconds."
  :type 'boolean)

(defconst pinfold-modes '(markdown-mode gfm-mode markdown-ts-mode)
  "The modes of memory documents.")

(defclass pinfold-server (eglot-lsp-server) ()
  :documentation "A gateway.")

(add-to-list 'eglot-server-programs
             (cons pinfold-modes
                   (lambda (&rest _) (cons 'pinfold-server pinfold-command))))

(cl-defmethod eglot-initialization-options ((_server pinfold-server))
  "What the user has set."
  (if pinfold-options (list :pinfold pinfold-options) (make-hash-table)))


;;; Projects and their memory

(defvar pinfold--roots nil "Alist of memory roots, as directories, and the projects they are of.")

(defun pinfold--project-of-memory (directory)
  "The project that DIRECTORY is memory of; nil for any other directory."
  (let ((name (file-name-as-directory (expand-file-name directory))))
    (cdr (cl-find-if (lambda (each) (string-prefix-p (car each) name)) pinfold--roots))))

(add-hook 'project-find-functions #'pinfold--project-of-memory)

(defun pinfold--project ()
  "The project of the current buffer, else its directory."
  (or (project-current) (cons 'transient default-directory)))

(defun pinfold--reported (server)
  "The memory roots that SERVER reports for the editor's own session."
  (let ((session (or (plist-get (plist-get pinfold-options :session) :sessionId) "editor")))
    (append (plist-get (jsonrpc-request server :memory/roots (list :sessionId session)) :roots)
            nil)))

(defun pinfold--learn (server project)
  "Ask SERVER for the memory of PROJECT, and manage what is open of it."
  (dolist (root (pinfold--reported server))
    (let ((path (file-name-as-directory (plist-get root :path))))
      (setf (alist-get path pinfold--roots nil nil #'equal) project)))
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (and buffer-file-name (memq major-mode pinfold-modes))
        (eglot--maybe-activate-editing-mode)))))

(defun pinfold--running (project)
  "The gateway of PROJECT that is running, if any."
  (cl-find-if (lambda (each) (and (pinfold--server-p each) (jsonrpc-running-p each)))
              (gethash project eglot--servers-by-project)))

;;;###autoload
(defun pinfold-start ()
  "Start the gateway for the project of the current buffer, unless it runs.
Return the server."
  (interactive)
  (let ((project (pinfold--project)))
    (unless (pinfold--running project)
      (pinfold--connect project))
    (let ((server (pinfold--running project)))
      (unless (rassoc project pinfold--roots)
        (pinfold--learn server project))
      server)))

(defun pinfold--connect (project)
  "Start a gateway for PROJECT and wait until it has answered."
  (let ((eglot-sync-connect t)
        (languages (mapcar (lambda (_) "markdown") pinfold-modes)))
    ;; Not in the buffer itself: its own language server would be shut down.
    (with-temp-buffer
      (setq default-directory (project-root project))
      (eglot pinfold-modes project 'pinfold-server pinfold-command
             (if (fboundp 'eglot--language-id) (car languages) languages)))))

(defun pinfold--server-p (server)
  "Whether SERVER is a gateway."
  (cl-typep server 'pinfold-server))

(defun pinfold--server ()
  "The gateway of the current buffer, started if need be."
  (let ((server (eglot-current-server)))
    (if (and (pinfold--server-p server) (jsonrpc-running-p server)) server (pinfold-start))))

;;;###autoload
(defun pinfold-memory ()
  "Visit the index of the memory of this project."
  (interactive)
  (let ((root (car (pinfold--reported (pinfold--server)))))
    (find-file (expand-file-name "MEMORY.md" (plist-get root :path)))))


;;; What the gateway does to buffers

(defun pinfold--buffers (server)
  "The buffers that SERVER knows."
  (cl-remove-if-not (lambda (buffer)
                      (with-current-buffer buffer
                        (and (eglot-managed-p) (eq (eglot-current-server) server))))
                    (buffer-list)))

(defun pinfold--tell-changes (server)
  "Tell SERVER what Eglot would tell it after a pause in typing."
  (dolist (buffer (pinfold--buffers server))
    (with-current-buffer buffer
      (eglot--signal-textDocument/didChange))))

(defun pinfold--break-undo (server)
  "Keep apart what was typed and what SERVER changes, for undo."
  (dolist (buffer (pinfold--buffers server))
    (with-current-buffer buffer
      (undo-boundary))))

(cl-defmethod eglot-handle-request
  ((server pinfold-server) (_method (eql workspace/applyEdit)) &key &allow-other-keys)
  "Make an edit that SERVER has decided, and tell of it at once."
  (pinfold--break-undo server)
  (unwind-protect
      (cl-progv (unless pinfold-confirm-edits
                  '(eglot-confirm-server-initiated-edits eglot-confirm-server-edits))
          '(nil nil)
        (cl-call-next-method))
    (pinfold--break-undo server)
    (pinfold--tell-changes server)))

(defun pinfold--disk-changed (path)
  "Show PATH as it is on the disk, in a buffer that has nothing unsaved."
  (let ((buffer (find-buffer-visiting path)))
    (when (and buffer (file-exists-p path))
      (with-current-buffer buffer
        (unless (or (buffer-modified-p) (verify-visited-file-modtime))
          (revert-buffer t t t))))))

(cl-defmethod eglot-handle-notification
  ((_server pinfold-server) (_method (eql memory/didChange)) &key path &allow-other-keys)
  "A call of this connection changed the memory document at PATH."
  (pinfold--disk-changed path))

(cl-defmethod eglot-handle-notification
  ((_server pinfold-server) (_method (eql file/didChange)) &key uri &allow-other-keys)
  "A call of this connection changed the file that URI names."
  (let ((name (url-unhex-string (string-remove-prefix "file://" uri))))
    (pinfold--disk-changed (decode-coding-string name 'utf-8))))


;;; Pin, Unpin, and who may change a document

(defun pinfold--follow (from to)
  "Show TO wherever the buffer of FROM is shown, at the same place."
  (let ((old (find-buffer-visiting from)))
    (when old
      (let ((new (find-file-noselect to))
            (place (with-current-buffer old (point))))
        (with-current-buffer new (goto-char place))
        (dolist (window (get-buffer-window-list old nil t))
          (let ((top (window-start window)) (point (window-point window)))
            (set-window-buffer window new)
            (set-window-start window top)
            (set-window-point window point)))
        (when (eq old (current-buffer)) (set-buffer new))
        (kill-buffer old)))))

(defun pinfold--command (server command arguments)
  "Run COMMAND of SERVER with ARGUMENTS and return its result.
A document that it moves is followed, and the links that it mends are
saved in every buffer that had nothing unsaved."
  (pinfold--tell-changes server)
  (let* ((clean (cl-remove-if #'buffer-modified-p (pinfold--buffers server)))
         (result (jsonrpc-request server :workspace/executeCommand
                                  (list :command (format "%s" command) :arguments arguments)
                                  :timeout 30)))
    (dolist (buffer clean)
      (when (and (buffer-live-p buffer) (buffer-modified-p buffer))
        (with-current-buffer buffer (save-buffer))))
    (when (plist-get result :to)
      (pinfold--follow (plist-get result :from) (plist-get result :to)))
    result))

(with-suppressed-warnings ((obsolete eglot-execute-command))
  (cl-defmethod eglot-execute-command ((server pinfold-server) command arguments)
    "What a code action does up to Eglot 1.12."
    (pinfold--command server command arguments)))

(when (fboundp 'eglot-execute)
  (cl-defmethod eglot-execute ((server pinfold-server) action)
    "What a code action does from Eglot 1.13 on."
    (let ((command (plist-get action :command)))
      (unless (stringp command) (setq action command))
      (pinfold--command server (plist-get action :command)
                        (plist-get action :arguments)))))

(defun pinfold--on-document (command)
  "The result of COMMAND for the document of the current buffer."
  (unless (eglot-managed-p) (user-error "This is no document of a gateway"))
  (let ((uri (plist-get (eglot--TextDocumentIdentifier) :uri)))
    (condition-case problem
        (pinfold--command (pinfold--server) command (vector (list :uri uri)))
      (jsonrpc-error
       (user-error "%s" (or (alist-get 'jsonrpc-error-message (cddr problem)) problem))))))

;;;###autoload
(defun pinfold-pin ()
  "Protect the current memory document.
It is moved below pinned/, and every link to it follows."
  (interactive)
  (message "Pinned: %s" (plist-get (pinfold--on-document "pinfold.pin") :to)))

;;;###autoload
(defun pinfold-unpin ()
  "Let agents change the current memory document again.
It is moved out of pinned/, and every link to it follows."
  (interactive)
  (message "Not pinned any more: %s" (plist-get (pinfold--on-document "pinfold.unpin") :to)))

;;;###autoload
(defun pinfold-explain ()
  "Show who may change the current memory document, and why not."
  (interactive)
  (let* ((told (pinfold--on-document "pinfold.explain"))
         (profiles (plist-get told :profiles)))
    (with-help-window "*pinfold*"
      (with-current-buffer standard-output (setq word-wrap t))
      (princ (format "%s\n\n" (plist-get told :path)))
      (cl-loop for (profile decision) on profiles by #'cddr do
               (princ (format "%-11s %s\n" (substring (symbol-name profile) 1)
                              (if (equal (plist-get decision :decision) "allow")
                                  "may change it"
                                (format "may not.  %s" (plist-get decision :reason)))))))))


;;; For agents

(defun pinfold-request (method params &optional callback)
  "Ask the gateway METHOD, a string, with PARAMS, a property list.
What was typed in any buffer is told first.  Return the result, or
signal `jsonrpc-error'.
With CALLBACK return at once; it is called with the error, a property
list, and the result, one of which is nil."
  (let ((server (pinfold--server))
        (name (intern (concat ":" method)))
        (object (or params (make-hash-table))))
    (pinfold--tell-changes server)
    (if callback
        (jsonrpc-async-request server name object :timeout 600
                               :success-fn (lambda (result) (funcall callback nil result))
                               :error-fn (lambda (problem) (funcall callback problem nil))
                               :timeout-fn (lambda ()
                                             (funcall callback '(:message "No answer") nil)))
      (jsonrpc-request server name object :timeout 600))))

(defun pinfold-open (profile &rest params)
  "Open a session of PROFILE on the open buffers.
Return what `session/open' gives.  PARAMS are further members, or other
values of `:projectRoot' and `:backend'."
  (let ((root (expand-file-name (project-root (pinfold--project)))))
    (pinfold-request "session/open"
                     (append (list :profile profile) params
                             (unless (plist-member params :projectRoot) (list :projectRoot root))
                             (unless (plist-member params :backend) '(:backend "editor"))))))

(defun pinfold-call (session name arguments &optional callback)
  "Call the tool NAME with ARGUMENTS, a property list, in SESSION, an id.
Return the result, or give it to CALLBACK, as `pinfold-request' does."
  (pinfold-request "tools/call"
                   (list :sessionId session :name name
                         :arguments (or arguments (make-hash-table)))
                   callback))

(provide 'pinfold)
;;; pinfold.el ends here
