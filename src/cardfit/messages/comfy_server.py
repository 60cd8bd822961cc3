"""Sentences of the room `comfy` about servers: deployments, checks, models folders, prompts that are recorded."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # files
    "comfy-file-not-json": N_("{path} is not JSON ({why}). Save the workflow again in ComfyUI"),
    "comfy-file-not-graph": N_(
        "{path} is not a workflow as the editor saves it: it has no list of nodes, so it names no model files. "
        "Save it with Workflow > Save, not with Export (API)"
    ),
    "comfy-file-not-api": N_(
        "{path} is a workflow as the editor saves it; a server runs the API format. Export it with "
        "Workflow > Export (API)"
    ),
    "comfy-file-not-workflow": N_(
        "{path} is not a workflow in the API format: an object of nodes by their ids, at least one"
    ),
    "comfy-file-bad-node": N_(
        "{path}: node {node} is not one; in the API format each has class_type and inputs"
    ),
    "comfy-file-not-compose": N_("{path} is not a Compose file: it has no services"),
    # model files
    "comfy-model-unnamed": N_(
        "node {node} lists a model without a name or a folder; it was left out"
    ),
    "comfy-model-outside": N_(
        "node {node} asks for {name}, which is no plain path below the models folder; it was left out"
    ),
    "comfy-bad-url": N_(
        "{path}: the workflow's address {url} was left out. Only https addresses of named hosts are taken; put the "
        "file there by hand"
    ),
    "comfy-pickle": N_(
        "{path} is a pickle, a format that can run code when it is loaded: download.sh leaves it out unless "
        "ALLOW_PICKLE=1 is set. Look for a safetensors of it"
    ),
    "comfy-pickle-left-out": N_("{path} was left out: a safetensors of the same name is listed"),
    # what cannot be deployed
    "comfy-no-image": N_(
        "name the image with --image NAME@sha256:DIGEST. `docker buildx imagetools inspect NAME:TAG` tells the digest"
    ),
    "comfy-bad-image": N_(
        "--image {asked}: pin it by its digest, as in --image name/comfyui@sha256:... with 64 hexadecimal digits. What "
        "a tag names can change overnight; `docker buildx imagetools inspect NAME:TAG` tells the digest of today"
    ),
    "comfy-bad-path": N_(
        "{flag} {asked}: give a whole path on the server, as in {flag} /mnt/nvme/models"
    ),
    "comfy-bad-port": N_("{flag} {asked}: a port is a number from 1 to 65535"),
    "comfy-bad-ssh": N_("--ssh {asked}: give a name or user@name, as in --ssh root@203.0.113.7"),
    "comfy-bad-gpu": N_("--gpu {asked}: give the number of a card, counted from 0"),
    "comfy-bad-shm": N_("--shm: give at least {least}, as in --shm 8GB"),
    "comfy-bad-size": N_("{flag} {asked}: give a number with a unit, as in {flag} {example}"),
    "comfy-bad-start": N_(
        '--start {asked}: give a command as in a shell, as in --start "python main.py"'
    ),
    "comfy-publish-refused": N_(
        "Port {port} is not published. ComfyUI has no login: whoever reaches the port can run code on the machine, and "
        "open ones have been found and used for mining. Use the tunnel (tunnel.sh, tunnel.ps1), "
        "or put a proxy with a login before it: --behind-proxy proxy.yaml"
    ),
    "comfy-pod-proxy": N_(
        "--pod and --behind-proxy do not go together: a container cannot start a second one. Use the tunnel"
    ),
    "comfy-proxy-redefines": N_(
        "{path} has a service {service} of its own. It may hold the proxy alone; ComfyUI stands in compose.yaml"
    ),
    "comfy-proxy-opens": N_("{path} was refused: {why}"),
    "comfy-proxy-no-port": N_(
        "{path} publishes no port, so it is no proxy that others could reach"
    ),
    "comfy-proxy-no-login": N_(
        "{path} was refused: nothing in it asks for a login. Looked for in its labels, commands, environment and "
        "inline configs: {allowed}"
    ),
    "comfy-files-exist": N_(
        "{folder} holds {files} already. Name another folder with -o, or write over them with --force"
    ),
    # notes of a deployment
    "comfy-manager-on": N_(
        "the Manager is on: who reaches the port can install code on the server. Turn it off when you have installed "
        "what you need"
    ),
    "comfy-behind-proxy": N_(
        "{file} is started with ComfyUI; that it names a login was seen, not that the login is a good one. Put the "
        "files that it mounts beside it"
    ),
    # heads of files
    "comfy-compose-head": N_(
        "Written by cardfit comfy deploy. Start: docker compose up -d\n"
        "The port is bound to 127.0.0.1 of the server: ComfyUI has no login. Reach it with tunnel.sh or tunnel.ps1."
    ),
    "comfy-paths-head": N_("Where ComfyUI finds models, in the container."),
    "comfy-list-head": N_(
        "What is fetched: bytes|SHA-256|path below the models folder|address\n"
        "- is not known; a file without an address is put there by hand."
    ),
    "comfy-tunnel-server": N_("USER@SERVER"),
    # the page of a deployment
    "comfy-wrote": N_("wrote {count} files to {folder}"),
    "comfy-col-file": N_("file"),
    "comfy-col-size": N_("size"),
    "comfy-col-sum": N_("checksum"),
    "comfy-col-from": N_("from"),
    "comfy-col-kind": N_("kind"),
    "comfy-col-count": N_("files"),
    "comfy-sum-known": N_("known"),
    "comfy-by-hand": N_("by hand"),
    "comfy-total": N_("{count} files, {size} and {unknown} of unknown size"),
    "comfy-no-models": N_("no workflow was given, so there is nothing to download"),
    "comfy-next-copy": N_("{command}"),
    "comfy-next-server": N_(
        "there, in the folder: bash download.sh && docker compose up -d && bash check.sh"
    ),
    "comfy-next-paste": N_("paste {folder}/pod.sh into a terminal of the container"),
    "comfy-next-tunnel": N_("here, in bash or PowerShell: {command}"),
    # checks
    "comfy-check-what": N_(
        "say what to check: a folder that cardfit comfy deploy wrote, --server with the tunnel's address, or --public "
        "with an address that must not answer"
    ),
    "comfy-host-network": N_(
        "service {service} shares the network of the machine: every port that it opens is open to others"
    ),
    "comfy-port-open": N_(
        "service {service} publishes port {published} on more than loopback. Write 127.0.0.1 before it; a firewall "
        "such as ufw does not stop docker"
    ),
    "comfy-check-closed": N_("{path} binds port {port} to loopback alone"),
    "comfy-check-pinned": N_("the image is pinned: {image}"),
    "comfy-check-not-pinned": N_("the image is not pinned by a digest: {image}"),
    "comfy-check-answers": N_("{server} answers: ComfyUI {version}"),
    "comfy-check-device": N_("{name}: {free} of {total} free"),
    "comfy-check-no-tunnel": N_("{server} does not answer: {why}"),
    "comfy-check-public": N_(
        "ComfyUI answers at {address} without a login: anyone can run code there. Close it now"
    ),
    "comfy-check-other": N_("something else than ComfyUI answers at {address}"),
    "comfy-check-refused": N_("{address} refuses with status {status}"),
    "comfy-check-nothing": N_("no ComfyUI at {address} ({why})"),
    # servers
    "comfy-bad-server": N_(
        "{asked}: not a server's address. Give http://HOST:PORT without a path, a name or a word, as in "
        "http://127.0.0.1:8188"
    ),
    "comfy-server-remote": N_(
        "{host} is not this machine. Open a tunnel (ssh -N -L {port}:127.0.0.1:{port} USER@{host}) and use "
        "http://127.0.0.1:{port}, or say --allow-remote: what is sent to a ComfyUI over a network can be read there"
    ),
    "comfy-server-redirects": N_(
        "the server answered {status} and sent us to {target}. Redirects are not followed; name the right address"
    ),
    "comfy-server-refused": N_("the server answered {path} with status {status}"),
    "comfy-server-away": N_("the server does not answer at {path}: {why}"),
    "comfy-server-too-much": N_("the server sent more than {limit} at {path}"),
    "comfy-server-not-json": N_("what the server sent at {path} is not what ComfyUI sends"),
    "comfy-server-not-one": N_("what answers at {server} is no ComfyUI"),
    "comfy-needs-extra": N_(
        "Following a server needs {package}, which is not installed. Install it: pip install 'cardfit[comfy]'"
    ),
    # recording
    "comfy-prompt-refused": N_("the server refuses the workflow: {why}"),
    "comfy-bad-timeout": N_("--timeout {asked}: give seconds above zero"),
    "comfy-node-runs": N_("node {node} {kind}"),
    "comfy-interrupted": N_("interrupted before it had ended"),
    "comfy-timed-out": N_("not done when its time was up; it was interrupted on the server"),
    "comfy-server-lost": N_(
        "the server went away and did not come back ({why}). A server that vanishes was often killed for want of host "
        "memory: look into its log"
    ),
    "comfy-forgotten": N_(
        "the server no longer knows the prompt: it was started anew, or its history was cleared. If it was killed, "
        "host memory is the usual reason: look into its log"
    ),
    "comfy-sampled": N_(
        "memory was sampled every {seconds:g} s from /system_stats: a peak between two samples was not seen"
    ),
    "comfy-cached": N_(
        "{count} nodes were cached from an earlier prompt and did not run: these are not the seconds of a first run"
    ),
    "comfy-broke-off": N_(
        "the connection broke {count} times: nodes that ran meanwhile have no times of their own"
    ),
    "comfy-no-samples": N_("the server did not say it while the prompt ran"),
    "comfy-no-counters": N_("ComfyUI does not tell torch's peaks"),
    "comfy-no-outputs": N_("the server named no output file"),
    "comfy-output-unread": N_("the outputs could not be read: {why}"),
    # inventories
    "inventory-no-folder": N_("{path} is not a folder. Name the models folder of a ComfyUI"),
    "inventory-too-many": N_("{path} holds more than {most} files: no models folder does"),
    "inventory-not-read": N_("{path} cannot be read: {why}"),
    "inventory-link-outside": N_("{path} leads out of the folder and was not followed"),
    "inventory-not-one": N_(
        "{path} is not an inventory. Write one: cardfit comfy inventory DIR --json > {path}"
    ),
    "inventory-head": N_("{folder}: {count} files, {size}"),
    "inventory-same": N_("Twice     {size} in files that are there more than once"),
    "inventory-unused": N_("Unused    {size} in {count} files that no given workflow asks for"),
    "inventory-missing": N_("Missing   {count} files that the workflows ask for"),
    "inventory-rebuild": N_("Rebuild"),
    "inventory-rebuild-size": N_("{count} files, {size}"),
    "inventory-rebuild-time": N_("{time} of downloading"),
    "inventory-rebuild-cost": N_("{money} for the machine meanwhile"),
    "inventory-rebuild-keep": N_("{money} a month to keep it on the disk"),
    "figure-host-used": N_("machine {size}"),
    # help
    "help-comfy-workflows": N_("workflow files as the editor saves them"),
    "help-comfy-out": N_("folder to write into"),
    "help-comfy-image": N_("image with its digest: name@sha256:..."),
    "help-comfy-models": N_("models folder on the server's fast disk"),
    "help-comfy-root": N_("folder of ComfyUI in the image"),
    "help-comfy-start": N_("command that starts ComfyUI there"),
    "help-comfy-port": N_("port of ComfyUI on the server"),
    "help-comfy-local-port": N_("port of the tunnel on your own machine"),
    "help-comfy-ssh": N_("the server, as ssh knows it: user@name"),
    "help-comfy-ssh-port": N_("port of ssh on the server"),
    "help-comfy-gpu": N_("only the card with this number"),
    "help-comfy-shm": N_("shared memory of the container, as in 8GB; left out: the host's"),
    "help-comfy-manager": N_("with ComfyUI-Manager"),
    "help-comfy-pod": N_("a block to paste, for hosts that give a container and no machine"),
    "help-comfy-publish": N_("make the port reachable for others; refused without a login"),
    "help-comfy-proxy": N_("Compose file of a proxy that asks for a login"),
    "help-comfy-folder": N_("folder that deploy wrote, or a Compose file"),
    "help-comfy-server": N_("address of ComfyUI, through the tunnel"),
    "help-comfy-public": N_("an address that must not answer; can be repeated"),
    "help-comfy-dir": N_("models folder"),
    "help-comfy-against": N_("workflow files: what they do not ask for is unused; can be repeated"),
    "help-comfy-down": N_("download rate, as in 500Mbit"),
    "help-comfy-hourly": N_("price of the machine an hour"),
    "help-comfy-disk": N_("price of a GB of disk a month"),
    "help-comfy-api-file": N_("workflow in the API format"),
    "help-comfy-remote": N_("speak to a server that is not this machine"),
    "help-comfy-here": N_("the server uses this machine's card of that number: read its driver"),
    "help-comfy-timeout": N_("seconds after which it is interrupted"),
}
