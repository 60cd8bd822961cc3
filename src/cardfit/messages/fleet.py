"""What `cardfit.fleet` says."""

from __future__ import annotations

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    # joining
    "fleet-needs-ray": N_(
        "--ray needs {package}, which is not installed. Install it: pip install 'cardfit[fleet]'"
    ),
    "fleet-bad-address": N_(
        "--ray {asked}: give local, auto (the cluster that this machine is part of) or HOST:PORT of its head. From "
        "outside: ray start --address=HOST:PORT --num-cpus=0 here, then --ray auto"
    ),
    "fleet-not-reached": N_(
        "no Ray cluster at {address}: {why}. Start one there (ray start --head --port=6379), or open the port to this "
        "machine; --ray local tries the same here"
    ),
    "fleet-not-ray": N_(
        "what listens at {address} does not answer as a Ray cluster's head does. Give the port that ray start --head "
        "printed, usually 6379"
    ),
    "fleet-not-joined": N_(
        "the Ray cluster at {address} cannot be joined: {why}. This machine must be part of it (ray start "
        "--address=HOST:PORT --num-cpus=0), with the same Ray and Python"
    ),
    "fleet-joined-already": N_(
        "this process is part of a Ray cluster already. Leave it first: ray.shutdown()"
    ),
    "fleet-no-nodes": N_(
        "none of {count} nodes of the cluster may work. Install on them what is installed here, and start them with "
        "processors"
    ),
    "fleet-node-differs": N_(
        "node {node} is left out: {package} {there} there, {here} here. Install the same version on both"
    ),
    "fleet-node-lost": N_("node {node} is lost; what ran there starts again elsewhere"),
    "fleet-again": N_("a run was lost with its node and starts again ({number} of {of} times)"),
    # asking
    "fleet-only-with-ray": N_("--card and --in-flight are for runs on a cluster: add --ray"),
    "fleet-bad-in-flight": N_("--in-flight {asked}: give a whole number from 1"),
    "fleet-bad-device": N_(
        "--device {asked}: on a cluster a run takes the card that its node gives it. Give auto, cpu, cuda or fake; "
        "cards with --card"
    ),
    "fleet-which-card": N_(
        "the cluster has several kinds of cards: {found}. Name some with --card"
    ),
    # ends without a record
    "fleet-failed": N_("not run: the node reported: {why}"),
    "fleet-lost": N_("not run: its node was lost {times} times. Ask again to go on"),
    "fleet-node-memory": N_(
        "not run: the node ended its worker for want of host memory. To have it measured as an outcome, start the node "
        "with RAY_memory_monitor_refresh_ms=0"
    ),
    "fleet-no-room": N_(
        "not run: it takes {needs}, and no node has that. The nodes have {offered}. Start one that has it: ray start "
        "--address=HOST:PORT --resources='{{\"card:ID\": 1}}'"
    ),
    "fleet-other-card": N_(
        "asked was a {asked}, and the node has a {found}: that is what was measured"
    ),
    "fleet-files-left": N_(
        "latents, outputs and log take {size} and were left behind: {limit} come back at most"
    ),
    # progress
    "fleet-progress": N_("{done} of {of} · {going} running on {nodes} nodes"),
    # help
    "help-sweep-ray": N_(
        "run the cells on a Ray cluster: local (this machine), auto (the cluster it is part of), or HOST:PORT"
    ),
    "help-sweep-in-flight": N_("with --ray: so many runs at once at most [default: all that fit]"),
    "help-sweep-card": N_(
        "with --ray: run every cell on this card of the cluster; can be repeated"
    ),
}
