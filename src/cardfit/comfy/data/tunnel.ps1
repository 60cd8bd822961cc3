# Run on your own machine, in PowerShell: ComfyUI of the server on http://127.0.0.1 here, for as long as this runs.
# powershell -ExecutionPolicy Bypass -File tunnel.ps1 [-Server USER@SERVER] [-SshPort N] [-LocalPort N]
#@settings
$ErrorActionPreference = 'Stop'
if (-not $Server) {
    [Console]::Error.WriteLine('name the server: -Server user@server')
    exit 2
}
if (-not (Get-Command ssh -ErrorAction SilentlyContinue)) {
    [Console]::Error.WriteLine('ssh is not installed: Settings, Optional features, OpenSSH Client')
    exit 2
}
Write-Host ('open http://127.0.0.1:{0}    stop with Ctrl-C' -f $LocalPort)
$Forward = '127.0.0.1:{0}:127.0.0.1:{1}' -f $LocalPort, $Port
& ssh -N -L $Forward -o ExitOnForwardFailure=yes -o ServerAliveInterval=30 -p $SshPort -- $Server
exit $LASTEXITCODE
